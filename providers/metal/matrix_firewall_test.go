package metal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// firewallSamples are the rules, which are one fact.
func firewallSamples() sampled {
	return sampled{keys: firewall.Table.Keys(), samples: []sample{{
		key: "firewall rules",
		read: `nft -s list table inet stoke 2>/dev/null
			for f in /etc/stoke /etc/stoke/firewall.nft /etc/systemd/system/stoke-firewall.service; do [ ! -e "$f" ] || echo "$f"; [ ! -f "$f" ] || cat "$f"; done
			[ ! -e /etc/systemd/system/stoke-firewall.service ] || { systemctl is-active stoke-firewall.service; systemctl is-enabled stoke-firewall.service; }
			:`,
		write: `case $1 in
			"by hand") nft 'add table inet stoke; add chain inet stoke input { type filter hook input priority 0; policy drop; }; add rule inet stoke input ct state established accept; add rule inet stoke input tcp dport 22 counter accept' ;;
			drifted) nft insert rule inet stoke input tcp dport 81 accept ;;
			esac`,
		right: "as declared", before: "by hand", drift: "drifted",
	}}}
}

// fire is one machine with its firewall.
type fire struct {
	*testing.T
	sample
	m      firewall.Redialer
	sh     func(script string, args ...string) string
	rounds func() int // new connections so far
}

// declared is a firewall; wider opens a port more.
func (x *fire) declared(wider bool) *firewallModel {
	m := firewallOf(x.T)
	m.SSHFrom, m.SSHPort, m.ConfirmWithin = types.SetNull(types.StringType), types.Int64Value(22), types.StringValue("30s")
	m.ID = types.StringValue(imported)
	if !wider {
		m.Rules = ruleBlock(x.T)
	}
	return &m
}

// plan is what apply would change.
func (x *fire) plan(want *firewallModel) []host.Change {
	x.Helper()
	var diags diag.Diagnostics
	spec, known := want.spec(x.Context(), &diags)
	have, err := firewall.Observe(x.Context(), x.m, spec)
	if !known || err != nil {
		x.Fatal(err, diags)
	}
	return firewall.Table.Diff(spec, have)
}

// step applies: what changes was planned, and nothing is left to do.
func (x *fire) step(name string, want, prior *firewallModel, planned bool) {
	x.Helper()
	ahead, was, rounds := x.plan(want), x.sh(x.read), x.rounds()
	if planned != (len(ahead) > 0) {
		x.Errorf("%s: planned is %v", name, ahead)
	}
	var diags diag.Diagnostics
	j := job[firewallModel]{machine: x.m, prior: prior, diags: &diags, begin: func() (*host.Record, error) { return openRecord(x.Context(), x.m, firewallRecord, imported) }}
	if _, err := want.work(x.Context(), j); err != nil || len(diags) > 0 {
		x.Fatalf("%s: %v %v", name, err, diags)
	}
	if changes := x.sh(x.read) != was; changes != planned {
		x.Errorf("%s: it changes: %v, and planned is %v", name, changes, ahead)
	}
	if (x.rounds() > rounds) != slices.ContainsFunc(ahead, func(c host.Change) bool { return c.Path[0] == "rules" }) {
		x.Errorf("%s: %d new connections confirmed %v", name, x.rounds()-rounds, ahead)
	}
	if left := x.plan(want); len(left) > 0 {
		x.Errorf("%s: it is not as declared: %v", name, left)
	}
}

// start makes the machine what it was before us. What is not by hand is what a
// stoke left whose record is lost.
func (x *fire) start(how string) {
	x.Helper()
	switch how {
	case "as declared", "another's":
		x.step("before", x.declared(how == "as declared"), nil, true)
		x.sh(`rm -rf /var/lib/stoke`)
	default:
		x.sh(x.write, how)
	}
}

func (x *fire) record() *host.Record {
	x.Helper()
	rec, err := host.OpenRecord(x.Context(), x.m, firewallRecord)
	if err != nil {
		x.Fatal(err)
	}
	return rec
}

func (x *fire) note() string {
	x.Helper()
	var note json.RawMessage
	if known, err := x.record().ReadNote(x.key, &note); !known || err != nil {
		x.Errorf("create notes nothing of the rules: %v", err)
	}
	return string(note)
}

// live goes from before us to after us.
func (x *fire) live(before string, drifts, undeclared bool) {
	x.start(before)
	was := x.sh(x.read)
	all := x.declared(true)
	x.step("create", all, nil, before != x.right)
	note := x.note()
	if drifts {
		x.sh(x.write, x.drift)
		x.step("drift", all, all, true)
	}
	if undeclared {
		x.step("declared no more", x.declared(false), all, true)
	}
	if now := x.note(); now != note {
		x.Errorf("what was before us was %s, and is %s", note, now)
	}
	says := "firewall rules get their former values"
	if before == "nothing" {
		says = "firewall rules are removed, and whom they keep out may connect"
	}
	var diags diag.Diagnostics
	ahead := all.undoing(x.Context(), nil, x.m, x.record(), &diags)
	if len(ahead) != 1 || ahead[0].Fact != says || len(diags) != 1 || diags[0].Detail() != says+"." {
		x.Errorf("the plan to destroy says %v: %v", ahead, diags)
	}
	x.cutOff(before, was)
	rounds, changes := x.rounds(), x.sh(x.read) != was
	rec := x.record()
	if _, err := all.restore(x.Context(), nil, x.m, rec); err != nil {
		x.Fatal(err)
	}
	if diff := cmp.Diff(was, x.sh(x.read)); diff != "" {
		x.Errorf("after destroy (-before +after):\n%s", diff)
	}
	if confirmed := x.rounds() > rounds; before != "nothing" && changes != confirmed {
		x.Errorf("the former rules come back: %v, confirmed: %v", changes, confirmed)
	}
	if keys := rec.Keys(""); len(keys) > 0 {
		x.Errorf("the record still has %v", keys)
	}
	if err := rec.Delete(x.Context()); err != nil {
		x.Error(err)
	}
}

// cutOff destroys while nobody can connect anew: former rules do not stay then.
func (x *fire) cutOff(before, was string) {
	x.Helper()
	m, double := x.m.(*firewalled)
	now := x.sh(x.read)
	if !double || before == "nothing" || now == was {
		return
	}
	m.cut = true
	_, err := new(firewallModel).restore(x.Context(), nil, m, x.record())
	if rolledBack := new(firewall.RolledBackError); !errors.As(err, &rolledBack) || rolledBack.Unseen != nil {
		x.Errorf("destroying what cuts us off: %v", err)
	}
	if diff := cmp.Diff(now, x.sh(x.read)); diff != "" {
		x.Errorf("after the rollback (-before +after):\n%s", diff)
	}
	x.note() // for the next try
	m.cut = false
}

// firewalled is a machine in a folder, whose nft works in a network namespace of
// its own.
type firewalled struct {
	*hosttest.Tree
	cut    bool // no new connection comes about
	rounds int
}

func (m *firewalled) Fresh(time.Duration) (host.Machine, func()) {
	if m.rounds++; m.cut {
		return unreached{m}, func() {}
	}
	return m, func() {}
}

type unreached struct{ host.Machine }

func (u unreached) Run(context.Context, host.Command) (ssh.Output, error) {
	return ssh.Output{}, &ssh.LostError{Host: u.Name(), Err: errors.New("no answer")}
}

func newFirewalled(t *testing.T) *firewalled {
	t.Helper()
	m := &firewalled{Tree: hosttest.NewTree(t)}
	programs := map[string]string{"nft": "", "unshare": "", "nsenter": ""}
	for name := range programs {
		var err error
		if programs[name], err = exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	// It ends with its input, which ends with the test, and speaks from within.
	holder := exec.Command(programs["unshare"], "-n", "sh", "-c", "echo $$; read -r _")
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); holder.Wait() }) //nolint:errcheck // read fails at the end of its input
	said, err := bufio.NewReader(out).ReadString('\n')
	pid, number := strconv.Atoi(strings.TrimSpace(said))
	if err := errors.Join(err, number); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	nft := fmt.Sprintf("#!/bin/sh\nexec %s --target=%d --net %s \"$@\"\n", programs["nsenter"], pid, programs["nft"])
	if err := os.WriteFile(m.Root+"/bin/nft", []byte(nft), 0o755); err != nil {
		t.Fatal(err)
	}
	sleep := m.Root + "/bin/sleep" // a link to the one here; there are no connections that nft has to learn
	if err := errors.Join(os.Remove(sleep), os.WriteFile(sleep, []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	m.Sh(`mkdir -p /etc/systemd/system`)
	return m
}

// TestMatrixFirewall: (right before us | changed by us) × (drifted by hand | not) ×
// (an opening is declared no more | destroyed), where what there was before us is
// nothing, somebody's own rules or those of a stoke whose record is lost.
func TestMatrixFirewall(t *testing.T) {
	for n := range 16 {
		if !isTried(n) {
			continue
		}
		before := []string{"as declared", "nothing", "by hand", "another's"}[n%4]
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			m := newFirewalled(t)
			x := &fire{T: t, sample: firewallSamples().samples[0], m: m, sh: m.Sh, rounds: func() int { return m.rounds }}
			x.live(before, n&4 > 0, n&8 > 0)
		})
	}
}
