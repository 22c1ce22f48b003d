//go:build e2e && linux

package metal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stokehq/stoke/cmd/programtest"
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

// fewSudos fails where a plan runs more than two sudos on a machine: one for all its
// looks, and one for what is no look.
func fewSudos(t *testing.T, machines []*lab.Machine, plan func() string) string {
	t.Helper()
	commands := func(m *lab.Machine) []string {
		all := strings.Split(m.Exec("sh", "-c", "journalctl -q -o cat -t sudo | grep ' COMMAND=' | cut -c 1-400; :"), "\n")
		return slices.DeleteFunc(all, func(line string) bool { return line == "" })
	}
	before := map[*lab.Machine]int{}
	for _, m := range machines {
		before[m] = len(commands(m))
	}
	said := plan()
	for _, m := range machines {
		if ran := commands(m)[before[m]:]; len(ran) == 0 || len(ran) > 2 {
			t.Errorf("the plan runs %d sudos on %s:\n%s", len(ran), m.Name, strings.Join(ran, "\n"))
		}
	}
	return said
}

// shows checks that the plan in an example's README is the one that it prints.
func shows(t *testing.T, folder, plan string) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
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
}

// exampleProject is a copy of an example's files, and the key that logs in.
func exampleProject(t *testing.T, l *lab.Lab, folder string, names ...string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), program: programtest.Path(t, "stoke"), lab: l}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		p.file(name, string(content))
	}
	p.file("id", l.Key)
	if err := os.Chmod(filepath.Join(p.dir, "id"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestClusterExample plans examples/metal-gpu-cluster on three machines, two of them
// with GPUs. Its README shows that plan. What the plan says is carried out, without
// GPUs, by TestClusterRealKubeadm.
func TestClusterExample(t *testing.T) {
	const folder = "../../examples/metal-gpu-cluster"
	l := lab.New(t)
	runtime := l.ContainerdPackage("2.2.1")
	runtime.Name, runtime.Fields = "containerd", nil // as if Debian had it
	all := append(l.DriverPackages("580.126.20"), l.ToolkitPackages("1.20.0")...)
	repository := l.Repository(append(all, runtime)...)
	machines := []*lab.Machine{
		l.Machine("head", lab.NoMirror()), l.Machine("gpu1", lab.PCI(lab.H100, lab.H100), lab.NoMirror()), l.Machine("gpu2", lab.PCI(lab.H100, lab.H100), lab.NoMirror()),
	}
	var list strings.Builder
	documented := []string{}
	for i, m := range machines {
		repository.AddTo(m)
		more := ", gpu = true"
		if i == 0 {
			more = ", role = \"control-plane\""
		}
		fmt.Fprintf(&list, "  %s = { address = %q, host_key = %q%s }\n", m.Name, m.Address, m.HostKey, more)
		documented = append(documented, m.Address, fmt.Sprintf("192.0.2.1%d", i), m.HostKey, "ssh-ed25519 AAAA…"+m.Name)
	}
	p := exampleProject(t, l, folder, "main.tf")
	p.file("machines.auto.tfvars", "machines = {\n"+list.String()+"}\nprivate_key_file = \"id\"\ncontainerd_source = \"distribution\"\n")
	p.ok("init")
	// Machines have control groups of the version that the machine has which holds them.
	p.file(".terraform/modules/lab/lab_override.tf", "resource \"metal_host\" \"this\" {\n  allow_cgroup_v1 = true\n}\n"+
		"resource \"metal_cluster\" \"this\" {\n  kubelet_configuration   = yamlencode({ failCgroupV1 = false })\n  ignore_preflight_errors = [\"SystemVerification\"]\n}\n")
	plan := strings.NewReplacer(documented...).Replace(p.ok("plan"))
	shows(t, folder, plan)
	if t.Failed() {
		t.Log(plan)
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
		if m.Name == "gpu2" { // another user, with a password
			more = `, credential = "admin"`
		}
		fmt.Fprintf(&list, "  %s = { address = %q, host_key = %q%s }\n", m.Name, m.Address, m.HostKey, more)
		documented = append(documented, m.Address, fmt.Sprintf("192.0.2.1%d", i), m.HostKey, "ssh-ed25519 AAAA…"+m.Name)
	}
	p := exampleProject(t, l, exampleFolder, "main.tf", "variables.tf")
	// The machines have no network but that repository, and control groups of the
	// version that the machine has which holds them.
	p.file("machines.auto.tfvars", "machines = {\n"+list.String()+"}\nprivate_key_file = \"id\"\ncontainerd = \"*\"\ncontainerd_source = \"distribution\"\nadmin_password = \""+lab.AdminPassword+"\"\n")
	p.file("lab_override.tf", "resource \"metal_host\" \"node\" {\n  allow_cgroup_v1 = true\n}\n")
	p.ok("init")

	plan := strings.NewReplacer(documented...).Replace(fewSudos(t, machines, func() string { return p.ok("plan") }))
	for _, m := range machines {
		fits(t, plan, "metal_host.node[\""+m.Name+"\"]")
	}
	shows(t, exampleFolder, plan)
	if t.Failed() {
		t.Log(plan)
	}

	p.apply()
	machines[1].Reboot()
	p.settled()
	fewSudos(t, machines, func() string { return p.ok("plan") })
	p.ok("destroy", "-auto-approve")
	for _, m := range machines {
		unchanged(t, m, before[m.Name], "folder /var/lib/containerd/...", "folder /etc/cni/...", "file /var/lib/containerd/...", "content /var/lib/containerd/...")
	}
}
