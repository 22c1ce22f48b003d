//go:build e2e && linux

package metal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

type start struct{ name, declares, script string }

// startingPoints is what machines are like before stoke comes.
var startingPoints = []start{
	{name: "gate"},
	{name: "behind", declares: `bastion = "gate"`, script: `printf 'AllowUsers ops@%s\n' "$1" >/etc/ssh/sshd_config.d/only.conf; systemctl reload ssh`}, // $1 is gate
	{name: "password", declares: `credential = "admin"`, script: `printf 'AllowUsers admin\n' >/etc/ssh/sshd_config.d/only.conf; systemctl reload ssh`},
	{name: "ufw", script: "ufw allow 22/tcp comment theirs; ufw --force enable"},
	{name: "docker", declares: `forward = "1", containerd = true`, script: "apt-get -qq -y --no-install-recommends install docker.io >&2; systemctl is-active --quiet docker"},
	{name: "foreign", script: `nft 'add table inet mine; add chain inet mine input { type filter hook input priority 10; policy accept; }; add rule inet mine input tcp dport 9999 drop'`},
	{name: "written", declares: "containerd = true", script: `apt-get -qq -y install containerd >&2; mkdir -p /etc/containerd
printf 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "mine.lan/pause:3.9"\n' >/etc/containerd/config.toml
systemctl restart containerd`},
}

// TestStartingPoints: from wherever an operator begins, a second plan is empty, also
// after a reboot, and after the state was lost and every import ran that plans name.
func TestStartingPoints(t *testing.T) {
	l := lab.New(t)
	var names []string
	for _, s := range startingPoints {
		names = append(names, s.name)
	}
	machines := l.MachinesWith([]lab.Option{lab.Mirror("containerd", "runc", "docker.io", "iptables", "libip4tc2", "libip6tc2", "libnetfilter-conntrack3", "libnfnetlink0", "tini")}, names...)
	p := newProject(t, l)
	var list strings.Builder
	for i, s := range startingPoints {
		machines[i].Script("set -e\n"+s.script, machines[0].Address)
		fmt.Fprintf(&list, "  %s = { address = %q, host_key = %q, %s }\n", s.name, machines[i].Address, machines[i].HostKey, s.declares)
	}
	p.file("terraform.tfvars", "machines = {\n"+list.String()+"}\n")
	provider, err := os.ReadFile(filepath.Join(p.dir, "provider.tf"))
	if err != nil {
		t.Fatal(err)
	}
	p.file("provider.tf", strings.Replace(string(provider), "  ssh {\n", "  ssh {\n    credentials = { admin = { user = \"admin\", password = \""+lab.AdminPassword+"\", sudo_password = \""+lab.AdminPassword+"\" } }\n", 1))
	p.write("%s", `variable "machines" {
  type = map(object({ address = string, host_key = string, credential = optional(string), bastion = optional(string), containerd = optional(bool), forward = optional(string) }))
}
resource "metal_host" "m" {
  for_each   = var.machines
  address    = each.value.address
  host_key   = each.value.host_key
  credential = each.value.credential
  hostname   = each.key
  timezone   = "Asia/Tokyo"
  packages   = each.value.containerd == true ? { containerd = {} } : null
  containerd = each.value.containerd == true ? {} : null
  sysctl     = each.value.forward == null ? null : { "net.ipv4.ip_forward" = each.value.forward }
  dynamic "bastion" {
    for_each = each.value.bastion[*]
    content {
      address  = var.machines[bastion.value].address
      host_key = var.machines[bastion.value].host_key
    }
  }
}
resource "metal_firewall" "m" {
  for_each = metal_host.m
  host     = each.value.ssh
  role     = "worker"
  peers    = values(var.machines)[*].address
}`)
	docker := machines[slices.IndexFunc(startingPoints, func(s start) bool { return s.name == "docker" })]
	forwards := func(policy string) {
		t.Helper()
		if said := docker.Script("n=0; until systemctl is-active --quiet docker || [ $n -gt 300 ]; do n=$((n + 1)); sleep 0.2; done; nft list chain ip filter FORWARD; docker info 2>&1"); !strings.Contains(said, "policy "+policy) || !strings.Contains(said, "Server Version") {
			t.Errorf("Docker's policy is not %s: %s", policy, said)
		}
	}
	forwards("drop")
	p.has(flat(p.apply()), `replaces a foreign line: - sandbox_image = "mine.lan/pause:3.9"`, // what of others' is replaced
		"Docker loses containerd while it restarts, and connects again", "from the next boot on the policy is accept")
	p.settled()
	forwards("drop")
	var all sync.WaitGroup
	for i := range machines {
		all.Go(machines[i].Reboot)
	}
	all.Wait()
	p.settled()
	forwards("accept") // as the plan said

	for _, kind := range []string{"metal_firewall", "metal_host"} {
		for _, name := range names {
			p.ok("state", "rm", fmt.Sprintf("%s.m[%q]", kind, name))
		}
	}
	imported := map[string]bool{}
	for range 3 {
		out, status := p.run("plan", "-detailed-exitcode")
		if status == 0 {
			break
		}
		for line := range strings.Lines(out) {
			command := strings.TrimSpace(strings.TrimLeft(line, "│ \t"))
			if !strings.HasPrefix(command, "stoke import ") || imported[command] {
				continue
			}
			imported[command] = true
			cmd := p.command()
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `program=$1; stoke() { "$program" "$@"; }; eval "$2"`, "sh", p.program, command}
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, said)
			}
		}
	}
	if len(imported) != 2*len(names) {
		t.Errorf("%d imports were named: %v", len(imported), imported)
	}
	p.settled()
	p.has(flat(p.ok("plan", "-destroy")), "Docker turns forwarding on when it restarts")
	p.ok("destroy", "-auto-approve")
	docker.Reboot()
	forwards("drop")
}
