package system

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// What turns forwarding on resets other values: it is written first, and what is
// declared of them after it, though it was right before.
func TestForwardingFirst(t *testing.T) {
	want := map[string]string{
		"net.ipv4.conf.all.accept_redirects": "1", "net.ipv4.conf.eth0.forwarding": "0", "net.ipv4.conf.eth0.rp_filter": "2",
		"net.ipv4.ip_forward": "1", "net.ipv6.conf.eth0.forwarding": "0", "vm.swappiness": "1",
	}
	set := []assigned{{"net.ipv4.conf.eth0.forwarding", "/proc/sys/net/ipv4/conf/eth0/forwarding", "0"}, {"net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward", "1"}}
	var keys []string
	for _, a := range inOrder(set, want) {
		keys = append(keys, a.key)
	}
	if diff := cmp.Diff([]string{"net.ipv4.ip_forward", "net.ipv4.conf.eth0.forwarding", "net.ipv4.conf.all.accept_redirects"}, keys); diff != "" {
		t.Error(diff)
	}
}

// A record of an earlier version has text alone, and so has one with nothing beside it.
func TestForwardingNote(t *testing.T) {
	m := &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) { return hosttest.Answer{}, cmd.Args[0] == "systemctl" }}
	rec, err := host.NewRecord(t.Context(), m, "host", "id", "")
	if err != nil {
		t.Fatal(err)
	}
	f := Facts{Sysctl: map[string]SysctlFacts{"net.ipv4.ip_forward": {State: SysctlValue, Live: "0"}}, Beside: map[string]string{
		redirects: "1", "/proc/sys/net/ipv4/conf/eth0/forwarding": "0", "/proc/sys/net/ipv6/conf/eth0/forwarding": "1",
	}}
	if was := f.priorOf("net.ipv4.ip_forward"); was != "0" {
		t.Errorf("all is as the kernel has it without forwarding, and the note is %v", was)
	}
	f.Beside[redirects], f.Beside["/proc/sys/net/ipv4/conf/eth1/forwarding"] = "0", "1"
	want := sysctlWas{"0", map[string]string{redirects: "0", "/proc/sys/net/ipv4/conf/eth1/forwarding": "1"}}
	for _, note := range []any{"0", f.priorOf("net.ipv4.ip_forward")} {
		if err := rec.Set(t.Context(), sysctlKey+"net.ipv4.ip_forward", note); err != nil {
			t.Fatal(err)
		}
		var was sysctlWas
		if _, err := rec.ReadNote(sysctlKey+"net.ipv4.ip_forward", &was); err != nil || was.Value != "0" {
			t.Errorf("%v is read as %v: %v", note, was, err)
		} else if _, text := note.(string); !text && cmp.Diff(want, was) != "" {
			t.Errorf("%v is read as %v", note, was)
		}
	}
	changes, err := Undoing(t.Context(), m, rec, Spec{})
	if err != nil || len(changes) != 1 || !strings.Contains(changes[0].Fact, "becomes 0 again") || !strings.Contains(changes[0].Says, "Docker turns forwarding on when it restarts") {
		t.Errorf("%v %v", changes, err)
	}
}

// Where Docker starts at boot, a plan says that it will find forwarding turned on.
func TestDockersForwarding(t *testing.T) {
	want := Spec{Sysctl: map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}}
	have := Facts{Docker: true, Sysctl: map[string]SysctlFacts{"net.ipv4.ip_forward": {State: SysctlValue, Live: "1"}}}
	if key, text := DockersForwarding(want, have); key != "net.ipv4.ip_forward" || !strings.Contains(text, "the policy is accept") {
		t.Errorf("%q %q", key, text)
	}
	already, none := have, have
	already.Sysctl = map[string]SysctlFacts{"net.ipv4.ip_forward": {State: SysctlValue, Live: "0", AtBoot: "1"}}
	none.Docker = false
	for _, f := range []Facts{already, none} {
		if key, text := DockersForwarding(want, f); key != "" {
			t.Errorf("%+v: %s %s", f, key, text)
		}
	}
}
