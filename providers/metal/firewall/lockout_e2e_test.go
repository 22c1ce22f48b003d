//go:build e2e && linux

package firewall_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// lockedOut is a Spec that lets in everybody but us.
func lockedOut(t *testing.T) firewall.Spec {
	return firewall.Spec{Role: firewall.NoRole, SSH: []netip.Prefix{network(t, "192.0.2.0/24")}, Confirm: 10 * time.Second}
}

func TestLockOut(t *testing.T) {
	m := lab.New(t).Machine("m")
	gateway := around(m).Addr().Next().String()
	good := firewall.Spec{Role: firewall.NoRole, SSH: []netip.Prefix{around(m)}, Confirm: 5 * time.Minute}
	for _, before := range []string{"no rules before", "rules before"} {
		t.Run(before, func(t *testing.T) {
			remote := over(t, m)
			rec := record(t, remote)
			for _, name := range []string{"/etc/stoke/firewall.nft", "/etc/systemd/system/stoke-firewall.service"} {
				if err := rec.KeepFile(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			if before == "rules before" {
				mustApply(t, remote, good)
			}
			snapshot := m.Snapshot()
			err := firewall.Apply(t.Context(), remote, rec, lockedOut(t), observe(t, remote, lockedOut(t)))
			var rolledBack *firewall.RolledBackError
			if !errors.As(err, &rolledBack) {
				t.Fatalf("Apply: %v", err)
			}
			t.Log(err)
			if rolledBack.Allowed || rolledBack.From != gateway || rolledBack.Unseen != nil || !strings.Contains(err.Error(), "@ssh: 192.0.2.0/24") {
				t.Errorf("%+v", rolledBack)
			}
			if diff := lab.Diff(snapshot, m.Snapshot(), "* /var/lib/stoke/firewall/record.json"); len(diff) > 0 {
				t.Errorf("after the rollback:\n%s", strings.Join(diff, "\n"))
			}
			if !reachable(t, m) {
				t.Error("locked out")
			}
		})
	}
	mustApply(t, over(t, m), good)
}

// A stoke that is killed right after loading rules that cut it off: nobody but
// the machine itself can fix that.
func TestLockOutKilled(t *testing.T) {
	m := lab.New(t).Machine("m")
	good := firewall.Spec{Role: firewall.NoRole, SSH: []netip.Prefix{around(m)}, Confirm: 5 * time.Minute}
	mustApply(t, over(t, m), good)
	list := func() string { return m.Exec("nft", "-s", "list", "table", "inet", "stoke") }
	rules := list()

	killed := func(then func()) {
		t.Helper()
		killedApply(t, m, lockedOut(t))
		if now := list(); !strings.Contains(now, "192.0.2.0/24") {
			t.Fatalf("the new rules are not there:\n%s", now)
		}
		then()
		if now := list(); now != rules {
			t.Errorf("other rules than before:\n%s", now)
		}
	}
	killed(func() {
		if reachable(t, m) {
			t.Error("the rules do not lock anybody out")
		}
		for end := time.Now().Add(time.Minute); !reachable(t, m); {
			if time.Now().After(end) {
				t.Fatal("the machine did not go back by itself")
			}
		}
	})
	killed(m.Reboot) // nothing of it survives a reboot
	noDifference(t, over(t, m), good)

	// What a killed stoke left unconfirmed is no base for what comes next.
	other := good
	other.SSHPort = 2222
	other.Rules = []firewall.Rule{{Ports: []firewall.Ports{{Protocol: firewall.TCP, First: 22, Last: 22}}}}
	other.Confirm = 5 * time.Minute
	killedApply(t, m, other)
	if have := observe(t, over(t, m), other); have.Persistent || len(firewall.Table.Diff(other, have)) != 1 {
		t.Errorf("unconfirmed rules: %+v", firewall.Table.Diff(other, have))
	}
	if err := apply(t.Context(), t, over(t, m), lockedOut(t)); err == nil {
		t.Error("locked out")
	}
	if now := list(); now != rules {
		t.Errorf("rules that nobody confirmed came back:\n%s", now)
	}
	mustApply(t, over(t, m), good)
	left := m.Script("systemctl list-units --all --plain --no-legend 'stoke-firewall-rollback*'; ls /run/stoke-firewall")
	if strings.Contains(left, "timer") || strings.Contains(left, "pending") {
		t.Errorf("left: %s", left)
	}
}

// slowNft takes longer to load rules than stoke waits for it.
const slowNft = `#!/bin/sh
case "$*" in "-f /run/stoke-firewall/new-"*) sleep 8 ;; esac
exec /usr/sbin/nft "$@"
`

// Rules that are still being loaded when their time is up do not come after the
// rollback.
func TestLockOutSlowly(t *testing.T) {
	m := lab.New(t).Machine("m")
	m.Script(`printf %s "$1" >/usr/local/sbin/nft; chmod 755 /usr/local/sbin/nft`, slowNft)
	err := apply(t.Context(), t, over(t, m), lockedOut(t))
	var rolledBack *firewall.RolledBackError
	if !errors.As(err, &rolledBack) || rolledBack.Unseen != nil {
		t.Errorf("Apply: %v", err)
	}
	t.Log(err)
	time.Sleep(10 * time.Second) // whatever still runs there ends
	if out := m.Exec("nft", "list", "tables"); strings.Contains(out, "stoke") || !reachable(t, m) {
		t.Errorf("locked out: %s", out)
	}
}

// killedApply applies until the rules are loaded.
func killedApply(t *testing.T, m *lab.Machine, want firewall.Spec) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	err := apply(ctx, t, &dyingMachine{Remote: over(t, m), kill: kill}, want)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Apply: %v", err)
	}
}

// dyingMachine is one whose stoke dies as soon as rules are loaded.
type dyingMachine struct {
	*host.Remote
	kill func()
}

func (d *dyingMachine) Fresh(time.Duration) (host.Machine, func()) {
	d.kill()
	return d.Remote, func() {}
}

// reachable asks by a new connection.
func reachable(t *testing.T, m *lab.Machine) bool {
	fresh, done := over(t, m).Fresh(2 * time.Second)
	defer done()
	_, err := fresh.Run(t.Context(), host.Command{Args: []string{"true"}})
	return err == nil
}
