//go:build e2e && linux

package metal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

const firewallConfiguration = `
terraform {
  required_providers {
    metal = { source = "stokehq/metal" }
  }
}

provider "metal" {
  ssh {
    user             = "ops"
    private_key_file = "key"
    retry_timeout    = "20s"
  }
}

variable "machines" { type = map(object({ address = string, key = string })) }
variable "ssh_from" { type = set(string) }
variable "node_port" { default = "30080/tcp" }

resource "metal_host" "node" {
  for_each = var.machines
  address  = each.value.address
  host_key = each.value.key
}

resource "metal_firewall" "node" {
  for_each       = var.machines
  host           = metal_host.node[each.key].ssh
  role           = each.key == "plane" ? "control-plane" : "worker"
  peers          = [for n in metal_host.node : n.node_address]
  control_planes = [metal_host.node["plane"].node_address]
  pod_network    = ["10.244.0.0/16"]
  cni            = "flannel"
  ssh_from       = var.ssh_from
  confirm_within = "10s"

  node_port { ports = [var.node_port] }

  rule {
    ports   = ["9400/tcp"]
    from    = ["nodes", "pods"]
    comment = "metrics"
  }
}

output "rules" { value = metal_firewall.node["plane"].rules }
`

// workspace is a folder with a configuration, and stoke.
type workspace struct {
	t     *testing.T
	dir   string
	stoke string
}

func newWorkspace(t *testing.T, l *lab.Lab, configuration, variables string) *workspace {
	t.Helper()
	w := &workspace{t: t, dir: t.TempDir(), stoke: programtest.Path(t, "stoke")}
	for name, content := range map[string]string{"main.tf": configuration, "terraform.tfvars": variables, "key": l.Key} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.run(0, "init")
	return w
}

// run runs stoke, which has to end with a status, and returns all that it said.
func (w *workspace) run(status int, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.stoke, args...)
	cmd.Dir = w.dir
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != status {
		w.t.Fatalf("stoke %s: exit code %d, not %d\n%s", strings.Join(args, " "), got, status, out)
	}
	return string(out)
}

// kill runs stoke and kills it as soon as a machine's rules have a text in
// them. It returns when the machine has gone back.
func (w *workspace) kill(m *lab.Machine, text string, args ...string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.stoke, args...)
	cmd.Dir = w.dir
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	has := func() bool { return strings.Contains(m.Exec("nft", "list", "table", "inet", "stoke"), text) }
	for end := time.Now().Add(time.Minute); !has(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Errorf("the rules never had %s", text)
			break
		}
	}
	cmd.Process.Kill() //nolint:errcheck // Wait says how it ended
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		w.t.Errorf("stoke was not killed: %v", err)
	}
	for end := time.Now().Add(time.Minute); has(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("the machine did not go back by itself")
		}
	}
}

// says checks that all texts are in what stoke said.
func (w *workspace) says(out string, texts ...string) {
	w.t.Helper()
	flat := unwrapped(out)
	for _, text := range texts {
		if !strings.Contains(flat, text) {
			w.t.Errorf("%q is missing in:\n%s", text, out)
		}
	}
}

func TestFirewallResource(t *testing.T) {
	l := lab.New(t)
	machines := l.Machines("plane", "worker")
	variables := "machines = {\n"
	for _, m := range machines {
		variables += fmt.Sprintf("  %s = { address = %q, key = %q }\n", m.Name, m.Address, m.HostKey)
	}
	gateway := machines[0].Address[:strings.LastIndexByte(machines[0].Address, '.')] + ".1"
	w := newWorkspace(t, l, firewallConfiguration, variables+"}\nssh_from = [\""+gateway+"\"]\n")
	plane, worker := machines[0], machines[1]
	before := []lab.Snapshot{plane.Snapshot(), worker.Snapshot()}

	worker.Script("systemd-run --quiet --unit=listen socat TCP-LISTEN:7777,fork,reuseaddr SYSTEM:cat; until ss -Hltn | grep -q :7777; do sleep 0.1; done")
	out := w.run(0, "plan")
	w.says(out, "tcp 7777 (socat) can no longer be reached", `@nodes: `+worker.Address, `ip saddr @ssh tcp dport 22 accept comment \"SSH\"`)
	worker.Exec("systemctl", "stop", "listen")

	w.run(0, "apply", "-auto-approve")
	w.run(0, "plan", "-detailed-exitcode")

	worker.Exec("nft", "delete", "element", "inet", "stoke", "nodes", "{ "+plane.Address+" }")
	plane.Exec("systemctl", "--quiet", "disable", "stoke-firewall")
	out = w.run(0, "apply", "-auto-approve") // with its plan
	w.says(out, `+ "@nodes: `+plane.Address+`"`, "persistent = false -> true", "2 to change")
	for _, m := range machines {
		m.Reboot()
	}
	w.run(0, "plan", "-detailed-exitcode")

	// A change that would lock us out comes back by itself, on both machines.
	out = w.run(1, "apply", "-auto-approve", "-var", `ssh_from=["192.0.2.0/24"]`)
	w.says(out, "Firewall rules were rolled back", "declare it in ssh_from", "Rules would cut stoke off", "cuts stoke's own way in: SSH from "+gateway)
	w.run(0, "plan", "-detailed-exitcode")

	w.kill(worker, "192.0.2.0/24", "apply", "-auto-approve", "-var", `ssh_from=["192.0.2.0/24"]`)
	w.run(0, "apply", "-auto-approve")
	w.run(0, "plan", "-detailed-exitcode")

	w.run(0, "apply", "-auto-approve", "-var", "node_port=30443/tcp")
	w.run(0, "plan", "-detailed-exitcode", "-var", "node_port=30443/tcp")
	out = w.run(1, "plan", "-var", "node_port=443/tcp")
	w.says(out, "Invalid firewall rules", "outside of 30000-32767")

	w.says(w.run(0, "plan", `-replace=metal_firewall.node["worker"]`), "everything is open in between")

	// Taken over from a state that is lost.
	w.run(0, "state", "rm", `metal_firewall.node["worker"]`)
	w.says(w.run(1, "plan"), "Firewall is managed already", "stoke import 'metal_firewall.node[\"worker\"]' '"+worker.Address+" "+worker.HostKey)
	w.run(0, "import", `metal_firewall.node["worker"]`, worker.Address+" "+worker.HostKey)
	w.run(0, "plan", "-detailed-exitcode", "-var", "node_port=30443/tcp") // as it was declared last

	w.says(w.run(0, "plan", "-destroy"), "firewall rules are removed, and whom they keep out may connect")
	w.run(0, "destroy", "-auto-approve")
	for i, m := range machines {
		if diff := lab.Diff(before[i], m.Snapshot()); len(diff) > 0 {
			t.Errorf("left on %s:\n%s", m.Name, strings.Join(diff, "\n"))
		}
	}
}
