//go:build e2e && e2evm && linux

package metal_test

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestVirtualHost: what containers cannot show, because they have no kernel of
// their own. Modules, sysctls, swap, time synchronisation and the firewall hold
// through a reboot that is real, and all of it goes again.
func TestVirtualHost(t *testing.T) {
	l := lab.New(t)
	m := l.VM("node-1")
	m.Script("fallocate -l 64M /swapfile; chmod 600 /swapfile; mkswap -q /swapfile; echo '/swapfile none swap sw 0 0' >> /etc/fstab; systemctl daemon-reload; swapon -a; grep -q /swapfile /proc/swaps")
	m.Reboot() // all that is new at the first boot is there now
	before := m.Snapshot()
	p := newProject(t, l)
	p.write(`resource "metal_host" "node" {
  address        = %q
  host_key       = %q
  hostname       = "gpu-1"
  swap           = "off"
  kernel_modules = ["br_netfilter", "vxlan"]
  sysctl = {
    "net.bridge.bridge-nf-call-iptables" = 1
    "net.ipv4.ip_forward"                = 1
    "vm.max_map_count"                   = 262144
    "kernel.panic"                       = 10
  }
  time_sync = { servers = ["198.18.0.1"] }
}
resource "metal_firewall" "node" {
  host           = metal_host.node.ssh
  role           = "worker"
  peers          = [metal_host.node.node_address]
  control_planes = [metal_host.node.node_address]
  pod_network    = ["10.244.0.0/16"]
  cni            = "flannel"
  ssh_from       = [%q]
  confirm_within = "60s"
}`, m.Address, m.HostKey, m.Address[:strings.LastIndexByte(m.Address, '.')]+".0/24")
	p.apply()
	p.settled()
	holds := func() {
		t.Helper()
		for what, script := range map[string]string{
			"a module":  "grep -q ^vxlan /proc/modules && grep -q ^br_netfilter /proc/modules",
			"swap":      "! grep -q /swapfile /proc/swaps",
			"sysctls":   `[ "$(sysctl -n vm.max_map_count)$(sysctl -n kernel.panic)$(sysctl -n net.bridge.bridge-nf-call-iptables)" = 262144101 ]`,
			"time":      "systemctl is-active systemd-timesyncd && timedatectl show-timesync | grep -q 198.18.0.1",
			"the rules": "nft list table inet stoke | grep -q 10250",
		} {
			if out, err := m.Try("sh", "-c", script); err != nil {
				t.Errorf("%s: %s, %v", what, out, err)
			}
		}
	}
	holds()
	m.Reboot()
	holds()
	p.settled()

	m.Script("modprobe -r vxlan; sysctl -qw vm.max_map_count=65530; swapon /swapfile")
	p.differs()
	p.apply()
	p.settled()
	m.Crash()
	m.PowerOn()
	holds()
	p.settled()

	p.ok("destroy", "-auto-approve")
	m.Reboot()
	unchanged(t, m, before)
}
