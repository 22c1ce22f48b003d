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
  node_port { ports = ["30080/tcp"] }
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
	nodePorts(t, m, l.Machine("other"))
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

// nodePorts makes a pod with two node ports, of which one is declared, and knocks
// at them, on a kernel that has loaded what that takes by itself. What the pod
// sends is masqueraded to ports of node ports.
func nodePorts(t *testing.T, m, other *lab.Machine) {
	t.Helper()
	m.Script(`ip netns add pod
ip link add pod0 type veth peer name eth0 netns pod
ip addr add 10.244.1.1/24 dev pod0
ip link set pod0 up
ip -n pod link set lo up
ip -n pod addr add 10.244.1.2/24 dev eth0
ip -n pod link set eth0 up
ip -n pod route add default via 10.244.1.1
nft -f - <<'E'
table ip cluster {
	chain services {
		type nat hook prerouting priority dstnat
		fib daddr type local tcp dport { 30080, 30081 } dnat to 10.244.1.2:9000
	}
	chain masquerading {
		type nat hook postrouting priority srcnat
		ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 ip protocol tcp masquerade to :30000-32767 fully-random
	}
}
E
systemd-run --quiet --unit=pod ip netns exec pod socat TCP-LISTEN:9000,fork,reuseaddr SYSTEM:'echo pod'
until ip netns exec pod ss -Hltn | grep -q :9000; do sleep 0.2; done`)
	const knock = `for i in $(seq "$3"); do
  timeout 20 bash -c 'exec 3<>"/dev/tcp/$0/$1" && read -r line <&3 && [ -n "$line" ]' "$1" "$2" || { echo "lost number $i"; exit 1; }
done 2>/dev/null`
	if out, err := other.Try("bash", "-c", knock, "bash", m.Address, "30080", "20"); err != nil {
		t.Errorf("a node port that is declared: %s, %v", out, err)
	}
	if _, err := other.Try("bash", "-c", knock, "bash", m.Address, "30081", "1"); err == nil {
		t.Error("a node port that is not declared is open")
	}
	if out, err := m.Try("ip", "netns", "exec", "pod", "bash", "-c", knock, "bash", other.Address, "22", "20"); err != nil {
		t.Errorf("what a pod sends: %s, %v", out, err)
	}
}
