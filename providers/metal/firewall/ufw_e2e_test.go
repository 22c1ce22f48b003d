//go:build e2e && linux

package firewall_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// On a machine that uses ufw, our rules are ufw's, with our mark, and a table
// of our own judges node ports, which ufw does not see.
func TestUFW(t *testing.T) {
	machines := lab.New(t).Machines("m", "friend")
	m, friend := machines[0], machines[1]
	m.Script("ufw limit 83/tcp; ufw allow 22/tcp comment theirs; ufw deny 4444/tcp; ufw --force enable")
	before := m.Snapshot()
	gateway := around(m).Addr().Next()
	spec := firewall.Spec{
		Role: firewall.Worker, SSH: []netip.Prefix{netip.PrefixFrom(gateway, 32)}, Nodes: []netip.Addr{address(m.Address), address(friend.Address)},
		NodePorts: []firewall.Rule{{Ports: []firewall.Ports{{Protocol: firewall.TCP, First: 30080, Last: 30080}}}},
		Rules: []firewall.Rule{
			{Ports: []firewall.Ports{{Protocol: firewall.UDP, First: 9100, Last: 9110}}, From: []firewall.Source{{Group: firewall.Nodes}}, Comment: "a | b: ümläut, (c)"},
			{Ports: []firewall.Ports{{Protocol: 112}}, From: []firewall.Source{{Group: firewall.Nodes}}},
			{Ports: []firewall.Ports{{}}, From: []firewall.Source{{Range: network(t, "192.0.2.0/24")}}},
			{Ports: []firewall.Ports{{Protocol: firewall.TCP, First: 83, Last: 83}}, Comment: "what somebody else lets in already"},
			{Ports: []firewall.Ports{{Protocol: firewall.TCP, First: 84, Last: 84}}, From: []firewall.Source{{Range: network(t, "0.0.0.0/0")}}, Comment: "ends so |"},
		},
		Confirm: 5 * time.Minute,
	}
	mustApply(t, over(t, m), spec)
	if have := observe(t, over(t, m), spec); have.Backend != firewall.UFW {
		t.Errorf("backend %s", have.Backend)
	}
	reached := func(when string, from *lab.Machine, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, reach(from, m, "tcp 22", "tcp 4444", "tcp 9100", "tcp 10250", "tcp 30080", "udp 9100", "udp 9110", "udp 9111")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	reached("applied", friend, "tcp 22", "tcp 10250", "tcp 30080", "udp 9100", "udp 9110")
	m.Reboot()
	noDifference(t, over(t, m), spec)
	reached("rebooted", friend, "tcp 22", "tcp 10250", "tcp 30080", "udp 9100", "udp 9110")

	m.Script("ufw delete allow proto tcp from $1 to any port 10250; ufw allow 81/tcp comment 'stoke: by hand'; ufw allow 82/tcp comment mine", friend.Address)
	want := []host.Change{
		{Fact: "firewall rule", Path: []string{"rules"}, Have: `ufw: allow proto tcp from 0.0.0.0/0 to any port 81 comment "by hand"`},
		{Fact: "firewall rule", Path: []string{"rules"}, Have: `ufw: allow proto tcp from ::/0 to any port 81 comment "by hand"`},
		{Fact: "firewall rule", Path: []string{"rules"}, Want: `ufw: allow proto tcp from ` + friend.Address + ` to any port 10250 comment "kubelet"`},
	}
	if diff := cmp.Diff(want, firewall.Table.Diff(spec, observe(t, over(t, m), spec))); diff != "" {
		t.Errorf("by hand (-want +got):\n%s", diff)
	}
	mustApply(t, over(t, m), spec)
	if out := m.Exec("ufw", "status"); !strings.Contains(out, "82/tcp") || strings.Contains(out, "81/tcp") {
		t.Errorf("somebody else's rule went with ours:\n%s", out)
	}
	m.Script("ufw delete allow 82/tcp; systemctl --quiet disable ufw 2>&1")
	if have := observe(t, over(t, m), spec); have.Persistent {
		t.Error("ufw is not there after a reboot, and nobody says so")
	}
	m.Script("systemctl --quiet enable ufw 2>&1; ufw delete allow 22/tcp")

	rules := m.Script("cat /etc/ufw/user.rules /etc/ufw/user6.rules; iptables -S | grep -v -- -A; iptables -S ufw-user-input; nft -s list table inet stoke")
	other := spec
	other.SSH = []netip.Prefix{network(t, "192.0.2.0/24")}
	other.Confirm = 20 * time.Second
	var rolledBack *firewall.RolledBackError
	files := m.Script("cat /etc/ufw/user.rules /etc/ufw/user6.rules")
	killedApply(t, m, other)
	if diff := cmp.Diff(files, m.Script("cat /etc/ufw/user.rules /etc/ufw/user6.rules")); diff != "" || !strings.Contains(m.Exec("iptables", "-S", "ufw-user-input"), "192.0.2.0/24 -p tcp") {
		t.Errorf("rules that nobody confirmed are on the disk, or not live:\n%s", diff)
	}
	m.Script("while ls /run/stoke-firewall/pending-* /run/stoke-firewall/going-back-* 2>/dev/null | grep -q .; do sleep 0.2; done") // the timer goes back, still or just now
	if err := apply(t.Context(), t, over(t, m), other); !errors.As(err, &rolledBack) {
		t.Fatalf("Apply: %v", err)
	}
	if diff := cmp.Diff(rules, m.Script("cat /etc/ufw/user.rules /etc/ufw/user6.rules; iptables -S | grep -v -- -A; iptables -S ufw-user-input; nft -s list table inet stoke")); diff != "" {
		t.Errorf("after the rollback:\n%s", diff)
	}
	noDifference(t, over(t, m), spec)
	if _, err := firewall.Restore(t.Context(), over(t, m), record(t, over(t, m))); !errors.As(err, &rolledBack) {
		t.Errorf("destroying what lets us in: %v", err)
	}

	m.Script("ufw allow 22/tcp comment theirs; ufw delete deny 4444/tcp; ufw deny 4444/tcp")
	outcomes := restore(t, over(t, m))
	if len(outcomes) != 14 || outcomes[0].Fate != host.Removed {
		t.Errorf("%d outcomes: %+v", len(outcomes), outcomes)
	}
	reached("destroyed", friend, "tcp 22")
	if diff := lab.Diff(before, m.Snapshot()); len(diff) > 0 {
		t.Errorf("left after destroy:\n%s", strings.Join(diff, "\n"))
	}
}
