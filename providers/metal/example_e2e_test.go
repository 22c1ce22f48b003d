//go:build e2e && linux

package metal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stokehq/stoke/providers/metal/lab"
)

const exampleFolder = "../../examples/metal-hosts"

// fits checks that what a plan says of one machine fits a screen: 40 lines of 120
// columns.
func fits(t *testing.T, plan, address string) {
	t.Helper()
	_, rest, found := strings.Cut(plan, "  # "+address+" will be ")
	block, _, ended := strings.Cut(rest, "\n    }\n")
	if !found || !ended {
		t.Fatalf("the plan says nothing of %s:\n%s", address, plan)
	}
	lines := strings.Split(block, "\n")
	if len(lines) > 39 {
		t.Errorf("the plan of %s has %d lines:\n%s", address, len(lines)+1, block)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 120 {
			t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
}

// TestExample runs examples/metal-hosts on three machines. Its README shows the
// plan that it prints.
func TestExample(t *testing.T) {
	l := lab.New(t)
	machines := l.MachinesWith([]lab.Option{lab.NoMirror()}, "head", "gpu1", "gpu2")
	runtime := l.ContainerdPackage("1.6.20") // as if Debian had it
	runtime.Name, runtime.Fields = "containerd", nil
	debian := l.Repository(runtime)
	before := map[string]lab.Snapshot{}
	var list strings.Builder
	// The README's addresses and keys stand for those of the machines.
	documented := []string{}
	for i, m := range machines {
		debian.AddTo(m)
		before[m.Name] = m.Snapshot()
		more := ""
		if m.Name == "gpu2" { // another user with a password, behind a bastion
			more = fmt.Sprintf(", credential = \"admin\", bastion = { address = %q, host_key = %q }", machines[0].Address, machines[0].HostKey)
		}
		fmt.Fprintf(&list, "  %s = { address = %q, host_key = %q%s }\n", m.Name, m.Address, m.HostKey, more)
		documented = append(documented, m.Address, fmt.Sprintf("192.0.2.1%d", i), m.HostKey, "ssh-ed25519 AAAA…"+m.Name)
	}
	program, err := stoke()
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, dir: t.TempDir(), program: program, lab: l}
	for _, name := range []string{"main.tf", "variables.tf"} {
		content, err := os.ReadFile(filepath.Join(exampleFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		p.file(name, string(content))
	}
	p.file("id", l.Key)
	if err := os.Chmod(filepath.Join(p.dir, "id"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The machines have no network but that repository, and control groups of the
	// version that the machine has which holds them.
	p.file("machines.auto.tfvars", "machines = {\n"+list.String()+"}\nprivate_key_file = \"id\"\ncontainerd = \"*\"\ncontainerd_source = \"distribution\"\nadmin_password = \""+lab.AdminPassword+"\"\n")
	p.file("lab_override.tf", "resource \"metal_host\" \"node\" {\n  allow_cgroup_v1 = true\n}\n")
	p.ok("init")

	plan := strings.NewReplacer(documented...).Replace(p.ok("plan"))
	for _, m := range machines { // one for all looks of a plan, and one for what is no look
		said := m.Exec("sh", "-c", "journalctl -q -o cat -t sudo | grep -c ' COMMAND=' ; :")
		if n, err := strconv.Atoi(strings.TrimSpace(said)); err != nil || n > 2 {
			t.Errorf("the plan runs %q sudos on %s: %s", said, m.Name, m.Exec("sh", "-c", "journalctl -q -o cat -t sudo | grep ' COMMAND=' | cut -c 1-400"))
		}
	}
	fits(t, plan, "metal_host.node[\"gpu1\"]")
	readme, err := os.ReadFile(filepath.Join(exampleFolder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```text\n")
	shown, _, _ = strings.Cut(shown, "```")
	if strings.TrimSpace(shown) == "" {
		t.Error("the README shows no plan")
	}
	for line := range strings.Lines(shown) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "…" && !strings.Contains(plan, line) {
			t.Errorf("the README shows a line that the plan does not have: %q", line)
		}
	}
	if t.Failed() {
		t.Log(plan)
	}

	p.apply()
	machines[1].Reboot()
	p.settled()
	p.ok("destroy", "-auto-approve")
	for _, m := range machines {
		unchanged(t, m, before[m.Name], "folder /var/lib/containerd/...", "folder /etc/cni/...", "file /var/lib/containerd/...", "content /var/lib/containerd/...")
	}
}
