//go:build e2e && linux

package firewall_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

func address(s string) netip.Addr { return netip.MustParseAddr(s) }

func network(t *testing.T, s string) netip.Prefix {
	t.Helper()
	r, err := firewall.ParseRange(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// around is the network that the lab's machines are in, this machine with them.
func around(m *lab.Machine) netip.Prefix {
	r, _ := address(m.Address).Prefix(24)
	return r
}

// over is the machine over SSH, tried again after a reboot.
func over(t *testing.T, m *lab.Machine) *host.Remote {
	pool := &ssh.Pool{Patience: 20 * time.Second}
	t.Cleanup(pool.Close)
	return &host.Remote{Pool: pool, Target: m.Target()}
}

// record opens or makes the record of a machine.
func record(t *testing.T, m host.Machine) *host.Record {
	t.Helper()
	rec, err := host.OpenRecord(t.Context(), m, "firewall")
	if err != nil {
		rec, err = host.NewRecord(t.Context(), m, "firewall", "id", "metal_firewall.test")
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func observe(t *testing.T, m host.Machine, want firewall.Spec) firewall.Have {
	t.Helper()
	have, err := firewall.Observe(t.Context(), m, want)
	if err != nil {
		t.Fatal(err)
	}
	return have
}

func apply(ctx context.Context, t *testing.T, m host.Machine, want firewall.Spec) error {
	t.Helper()
	return firewall.Apply(ctx, m, record(t, m), want, observe(t, m, want))
}

// mustApply applies, and then nothing differs.
func mustApply(t *testing.T, m host.Machine, want firewall.Spec) {
	t.Helper()
	if err := apply(t.Context(), t, m, want); err != nil {
		t.Fatal(err)
	}
	noDifference(t, m, want)
}

func noDifference(t *testing.T, m host.Machine, want firewall.Spec) {
	t.Helper()
	if changes := firewall.Table.Diff(want, observe(t, m, want)); len(changes) > 0 {
		t.Errorf("%s differs: %+v", m.Name(), changes)
	}
}

func restore(t *testing.T, m host.Machine) []host.Outcome {
	t.Helper()
	rec := record(t, m)
	outcomes, err := firewall.Restore(t.Context(), m, rec)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// probeScript knocks at ports, all at once. A port that nobody listens on
// answers with a refusal where it is open, and not at all where it is not.
const probeScript = `
tcp() { timeout 2 bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null; if [ $? = 124 ]; then echo "tcp $1 $2 closed"; else echo "tcp $1 $2 open"; fi; }
udp() { if bash -c 'exec 3<>"/dev/udp/$1/$2"; for i in 1 2 3 4; do echo >&3 && sleep 0.4 || exit 1; done' bash "$1" "$2" 2>/dev/null; then echo "udp $1 $2 closed"; else echo "udp $1 $2 open"; fi; }
for p in "$@"; do set -- $p; $1 "$2" "$3" & done
wait`

// reach is what of "tcp 22", "udp 8472" and so on a machine can reach on
// another.
func reach(from, to *lab.Machine, ports ...string) []string {
	var args []string
	for _, p := range ports {
		proto, port, _ := strings.Cut(p, " ")
		args = append(args, proto+" "+to.Address+" "+port)
	}
	out := from.Exec(append([]string{"bash", "-c", probeScript, "bash"}, args...)...)
	var open []string
	for _, p := range ports {
		proto, port, _ := strings.Cut(p, " ")
		if strings.Contains(out, fmt.Sprintf("%s %s %s open", proto, to.Address, port)) {
			open = append(open, p)
		}
	}
	return open
}

var probed = []string{
	"tcp 22", "tcp 80", "tcp 179", "tcp 2379", "tcp 2380", "tcp 6443", "tcp 9100", "tcp 10250", "tcp 10256", "tcp 30080", "tcp 30081", "tcp 32767",
	"udp 53", "udp 8472", "udp 30080", "udp 30090", "udp 51820",
}

func checkReach(t *testing.T, when string, from, to *lab.Machine, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, reach(from, to, probed...)); diff != "" {
		t.Errorf("%s: what %s reaches on %s (-want +got):\n%s", when, from.Name, to.Name, diff)
	}
}

// someoneElses are rules that are none of stoke's business, one of them made by
// iptables.
const someoneElses = `nft -f - <<'E'
table inet theirs {
	set friends { type ipv4_addr; elements = { 192.0.2.9 }; }
	chain in {
		type filter hook input priority 10; policy accept;
		ip saddr @friends counter accept
	}
}
E
iptables -A INPUT -p tcp --dport 8081 -m comment --comment theirs -j DROP
iptables -t nat -A PREROUTING -p tcp --dport 8443 -j REDIRECT --to-ports 443`

const listOthers = `for t in $(nft list tables | grep -v 'inet stoke' | cut -d' ' -f2- | tr ' ' ,); do nft -s list table $(echo $t | tr , ' '); done`

func TestLifeOfAFirewall(t *testing.T) {
	l := lab.New(t)
	all := l.Machines("plane", "worker", "outsider")
	plane, worker, outsider := all[0], all[1], all[2]
	worker.Script(someoneElses)
	before, others := worker.Snapshot(), worker.Script(listOthers)
	checkReach(t, "before", outsider, worker, probed...)

	flannel, _ := firewall.CNIPorts("flannel")
	spec := firewall.Spec{
		Role: firewall.Worker, CNI: flannel, SSH: []netip.Prefix{around(worker)}, Pods: []netip.Prefix{network(t, "10.244.0.0/16")},
		Nodes: []netip.Addr{address(plane.Address), address(worker.Address)}, ControlPlanes: []netip.Addr{address(plane.Address)},
		NodePorts: []firewall.Rule{
			{Ports: []firewall.Ports{{Protocol: firewall.TCP, First: 30080, Last: 30080}}},
			{Ports: []firewall.Ports{{Protocol: firewall.UDP, First: 30080, Last: 30090}}, From: []firewall.Source{{Group: firewall.Nodes}}},
		},
		Rules:   []firewall.Rule{{Ports: []firewall.Ports{{Protocol: firewall.TCP, First: 9100, Last: 9100}}, From: []firewall.Source{{Group: firewall.ControlPlanes}}, Comment: "metrics"}},
		Confirm: 5 * time.Minute,
	}
	controls := spec
	controls.Role, controls.APIClients = firewall.ControlPlane, []netip.Prefix{network(t, outsider.Address)}
	// A download that stands before connections are tracked, in which the
	// machine says nothing by itself.
	outsider.Script("systemd-run --quiet --unit=ticking sh -c 'while echo tick; do sleep 0.1; done | nc -l 9000'; until ss -Hltn | grep -q :9000; do sleep 0.1; done")
	mustApply(t, over(t, worker), spec)
	plane.Script(`systemd-run --quiet --unit=download sh -c "nc $1 9000 >/run/download"; until grep -q tick /run/download; do sleep 0.1; done`, outsider.Address)
	mustApply(t, over(t, plane), controls)
	plane.Script("had=$(wc -l </run/download); for i in $(seq 600); do if [ $(wc -l </run/download) -gt $((had + 5)) ]; then exit 0; fi; sleep 0.1; done; echo 'the download stands still'; exit 1")
	plane.Exec("systemctl", "stop", "download")

	matrix := func(when string) {
		t.Helper()
		checkReach(t, when, plane, worker, "tcp 22", "tcp 9100", "tcp 10250", "tcp 30080", "udp 8472", "udp 30080", "udp 30090", "udp 51820")
		checkReach(t, when, outsider, worker, "tcp 22", "tcp 30080")
		checkReach(t, when, worker, plane, "tcp 22", "tcp 6443", "tcp 10250", "tcp 30080", "udp 8472", "udp 30080", "udp 30090", "udp 51820")
		checkReach(t, when, outsider, plane, "tcp 22", "tcp 6443", "tcp 30080")
		outsider.Exec("ping", "-c1", "-W2", "-q", worker.Address)
	}
	matrix("applied")
	if diff := cmp.Diff(others, worker.Script(listOthers)); diff != "" {
		t.Errorf("somebody else's rules were touched:\n%s", diff)
	}

	t.Run("drift", func(t *testing.T) { driftByHand(t, worker, spec) })

	worker.Exec("systemctl", "--quiet", "enable", "nftables") // which flushes everybody's rules at every boot
	worker.Reboot()
	plane.Crash()
	plane.PowerOn()
	noDifference(t, over(t, worker), spec)
	noDifference(t, over(t, plane), controls)
	matrix("after reboot and power cut")
	worker.Exec("systemctl", "--quiet", "disable", "nftables")
	t.Run("bastion", func(t *testing.T) { overBastion(t, plane, outsider, controls) })

	changed := spec
	changed.NodePorts, changed.Rules = nil, nil
	changed.Nodes = append(slices.Clone(spec.Nodes), address(outsider.Address))
	mustApply(t, over(t, worker), changed)
	checkReach(t, "changed", outsider, worker, "tcp 22", "tcp 10250", "udp 8472", "udp 51820")

	t.Run("flushed", func(t *testing.T) { flushed(t, worker, changed) })
	worker.Script(someoneElses) // the reboot took them

	outcomes := restore(t, over(t, worker))
	want := []host.Outcome{
		{Fact: "nftables table inet stoke", Fate: host.Removed},
		{Fact: "file /etc/stoke/firewall.nft", Fate: host.Removed},
		{Fact: "file /etc/systemd/system/stoke-firewall.service", Fate: host.Removed},
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := lab.Diff(before, worker.Snapshot()); len(diff) > 0 {
		t.Errorf("left after destroy:\n%s", strings.Join(diff, "\n"))
	}
	checkReach(t, "destroyed", outsider, worker, probed...)
}

// overBastion has rules confirmed that let in nobody but a bastion.
func overBastion(t *testing.T, m, bastion *lab.Machine, want firewall.Spec) {
	through := over(t, m)
	through.Target.Hops = []ssh.Hop{bastion.Target().Hop}
	want.SSH = []netip.Prefix{network(t, bastion.Address)}
	mustApply(t, through, want)
	if reachable(t, m) {
		t.Error("it is reached without the bastion")
	}
	other := want
	other.SSH, other.Confirm = []netip.Prefix{network(t, "192.0.2.0/24")}, 20*time.Second
	var rolledBack *firewall.RolledBackError
	if err := apply(t.Context(), t, through, other); !errors.As(err, &rolledBack) || rolledBack.From != bastion.Address || rolledBack.Allowed || rolledBack.Unseen != nil {
		t.Errorf("Apply: %v", err)
	}
	noDifference(t, through, want)
}

// flushed is what Debian's nftables.service and people do to everybody's rules.
func flushed(t *testing.T, m *lab.Machine, want firewall.Spec) {
	for _, do := range []string{"systemctl restart nftables", "systemctl reload nftables", "systemctl stop nftables; systemctl start nftables"} {
		m.Script(do)
		// systemctl waits for nftables.service alone; ours comes right behind it.
		m.Script("for i in $(seq 100); do if nft list table inet stoke >/dev/null 2>&1; then exit 0; fi; sleep 0.1; done; echo \"our rules went with everybody's\"; exit 1")
		noDifference(t, over(t, m), want)
	}
	m.Script("systemctl stop nftables; nft flush ruleset")
	// Beside the rules there is the unit, which went with nftables.service.
	if changes := firewall.Table.Diff(want, observe(t, over(t, m), want)); len(changes) != len(want.Lines(firewall.Nftables))+1 {
		t.Errorf("all is gone: %+v", changes)
	}
	mustApply(t, over(t, m), want)
}

// driftByHand does by hand what people do, and finds just that, and fixes it.
func driftByHand(t *testing.T, m *lab.Machine, want firewall.Spec) {
	rules := func(have, want string) host.Change {
		return host.Change{Fact: "firewall rule", Path: []string{"rules"}, Have: have, Want: want}
	}
	persistent := func(why string) []host.Change {
		return []host.Change{{Fact: "firewall after a reboot", Path: []string{"persistent"}, Have: why, Want: "the same rules"}}
	}
	tests := []struct {
		name, script string
		changes      []host.Change
	}{
		{"a rule more", "nft insert rule inet stoke input tcp dport 81 accept", []host.Change{rules("input: tcp dport 81 accept", "")}},
		{"an address less", `nft delete element inet stoke nodes "{ $1 }"`, []host.Change{rules("", "@nodes: "+m.Address)}},
		{"policy", "nft chain inet stoke input '{ policy accept; }'", []host.Change{
			rules("input: type filter hook input priority 0; policy accept", ""), rules("", "input: type filter hook input priority 0; policy drop")}},
		{"switched off", "nft add table inet stoke '{ flags dormant; }'", []host.Change{rules("table: flags dormant", "")}},
		{"not running", "systemctl stop stoke-firewall.service", persistent("stoke-firewall.service does not run, so that it would not follow nftables.service")},
		{"not enabled", "systemctl --quiet disable stoke-firewall.service 2>&1", persistent("stoke-firewall.service is not enabled")},
		{"file", "echo '# mine' >>/etc/stoke/firewall.nft", persistent("/etc/stoke/firewall.nft differs from the declared rules")},
		{"unit", "echo '# mine' >>/etc/systemd/system/stoke-firewall.service", persistent("stoke-firewall.service is missing or was changed")},
		{"order", `h=$(nft -a list chain inet stoke nodeports | sed -n 's/^\t\tdrop # handle //p'); nft delete rule inet stoke nodeports handle $h; nft insert rule inet stoke nodeports drop`,
			[]host.Change{{Fact: "order of the firewall rules", Path: []string{"rules"}, Have: "changed by hand", Want: "as declared"}}},
	}
	for _, test := range tests {
		m.Script(test.script, m.Address)
		if diff := cmp.Diff(test.changes, firewall.Table.Diff(want, observe(t, over(t, m), want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		mustApply(t, over(t, m), want)
	}
}
