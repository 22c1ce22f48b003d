//go:build e2e && linux

package firewall_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// podNetwork makes on a machine what a cluster would: a pod, node ports that
// lead to it, and masquerading of what it sends, to the ports of node ports
// alone, where a filter that does not know replies hurts most.
const podNetwork = `ip netns add pod
ip link add pod0 type veth peer name eth0 netns pod
ip addr add 10.244.1.1/24 dev pod0
ip link set pod0 up
ip -n pod link set lo up
ip -n pod addr add 10.244.1.2/24 dev eth0
ip -n pod link set eth0 up
ip -n pod route add default via 10.244.1.1
sysctl -qw net.ipv4.ip_forward=1
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
E`

// echo answers on the ports 9000 to 9007.
const echo = `import socket, threading
def serve(port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", port)); s.listen(1024)
    while True:
        c, _ = s.accept(); c.sendall(c.recv(4)); c.close()
for p in range(9000, 9008): threading.Thread(target=serve, args=(p,)).start()`

// knock opens connections, with 16 at a time, and says how many did not answer.
const knock = `import socket, sys, threading
address, ports, count = sys.argv[1], [int(p) for p in sys.argv[2].split(",")], int(sys.argv[3])
numbers, lost, lock = iter(range(count)), [], threading.Lock()
def work():
    while True:
        with lock: i = next(numbers, None)
        if i is None or len(lost) > 50: return
        try:
            s = socket.create_connection((address, ports[i % len(ports)]), timeout=3)
            s.sendall(b"ping")
            if s.recv(4) != b"ping": raise OSError("no echo")
            s.close()
        except OSError as e: lost.append(str(e))
threads = [threading.Thread(target=work) for _ in range(16)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(lost), *sorted(set(lost)))`

func TestMasqueradedConnections(t *testing.T) {
	machines := lab.New(t).Machines("node", "other")
	node, other := machines[0], machines[1]
	serve := func(m *lab.Machine, before ...string) {
		m.Exec(append([]string{"systemd-run", "--quiet", "--unit=echo"}, append(before, "python3", "-c", echo)...)...)
	}
	node.Script(podNetwork)
	serve(node, "ip", "netns", "exec", "pod")
	serve(other)
	other.Script("until ss -Hltn | grep -q :9007; do sleep 0.1; done")
	node.Script("until ip netns exec pod ss -Hltn | grep -q :9007; do sleep 0.1; done")

	spec := firewall.Spec{
		Role: firewall.Worker, Nodes: []netip.Addr{address(node.Address)}, SSH: []netip.Prefix{around(node)},
		NodePorts: []firewall.Rule{{Ports: []firewall.Ports{{Protocol: firewall.TCP, First: 30080, Last: 30080}}}}, Confirm: 5 * time.Minute,
	}
	tables := node.Exec("nft", "-s", "list", "table", "ip", "cluster")
	other.Script("systemd-run --quiet --unit=held socat EXEC:'sleep 600' TCP:$1:30081", node.Address)
	held, remote := firewall.Peer{Address: address(other.Address), Port: 30081, NodePort: true}, over(t, node)
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		seen, err := firewall.ReadConnections(t.Context(), remote)
		if err == nil && slices.Contains(seen.Peers, held) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a connection to a node port is not seen: %+v, %v", seen, err)
		}
	}
	mustApply(t, remote, spec)
	other.Exec("systemctl", "stop", "held")
	const connections = "10000"
	// 8 ports, so that the 2,768 ports of the range are enough for all.
	if lost := node.Exec("ip", "netns", "exec", "pod", "python3", "-c", knock, other.Address, "9000,9001,9002,9003,9004,9005,9006,9007", connections); lost != "0" {
		t.Errorf("masqueraded connections that were lost: %s", lost)
	}
	if lost := other.Exec("python3", "-c", knock, node.Address, "30080", connections); lost != "0" {
		t.Errorf("connections to a node port that were lost: %s", lost)
	}
	if lost := other.Exec("python3", "-c", knock, node.Address, "30081", "4"); !strings.HasPrefix(lost, "4 ") {
		t.Errorf("connections to a node port that is not declared: lost %s of 4", lost)
	}
	if diff := cmp.Diff(tables, node.Exec("nft", "-s", "list", "table", "ip", "cluster")); diff != "" {
		t.Errorf("the cluster's rules were touched:\n%s", diff)
	}
	ports := strings.Fields(node.Script(`conntrack -L -p tcp --orig-src 10.244.1.2 2>/dev/null | sed -n 's/.* dport=\(3[0-9]*\) .*/\1/p' | sort -u`))
	if len(ports) < 1000 || slices.Min(ports) < "30000" || slices.Max(ports) > "32767" {
		t.Errorf("only %d ports were masqueraded to, from %s to %s: this proves nothing", len(ports), slices.Min(ports), slices.Max(ports))
	}
}
