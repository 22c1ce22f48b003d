package metal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// refusingWall is a machine with a firewall that refuses one command, or one file.
type refusingWall struct {
	*firewalled
	passing int // how many before that one
}

func (r *refusingWall) refuses() bool { r.passing--; return r.passing == -1 }

func (r *refusingWall) Run(ctx context.Context, cmd host.Command) (ssh.Output, error) {
	if r.refuses() {
		return ssh.Output{}, &ssh.CommandError{Host: r.Name(), Command: ssh.QuoteAll(cmd.Args...), Status: 1, Output: "refused once"}
	}
	return r.firewalled.Run(ctx, cmd)
}

func (r *refusingWall) Put(ctx context.Context, f ssh.File) error {
	if r.refuses() {
		return errors.New("refused once")
	}
	return r.firewalled.Put(ctx, f)
}

func (r *refusingWall) Fresh(within time.Duration) (host.Machine, func()) { return r, func() {} }

// TestPlanAfterARefusedFirewall: each command of an apply and of a destroy of a
// firewall is refused once. The next plan has what is missing, and the next apply or
// destroy does it.
func TestPlanAfterARefusedFirewall(t *testing.T) {
	fresh := func() (*firewalled, *fire) {
		m := newFirewalled(t)
		return m, &fire{T: t, sample: firewallSamples().samples[0], m: m, sh: m.Sh, rounds: func() int { return m.rounds }}
	}
	_, x := fresh()
	nothing := x.sh(x.read)
	x.step("create", x.declared(true), nil, true)
	right := x.sh(x.read)
	for n := 0; ; n += wallEvery {
		m, x := fresh()
		r, want := &refusingWall{m, n}, x.declared(true)
		var diags diag.Diagnostics
		j := job[firewallModel]{machine: r, diags: &diags, begin: func() (*host.Record, error) { return openRecord(t.Context(), r, firewallRecord, imported) }}
		_, err := want.work(t.Context(), j)
		if r.passing >= 0 {
			if n < 5 || err != nil {
				t.Errorf("only %d commands, %v", n, err)
			}
			break
		}
		ahead := x.plan(want)
		if is := x.sh(x.read); len(ahead) == 0 && is != right {
			t.Errorf("command %d was refused (%v): the next plan has nothing to do, and the machine has\n%s", n, err, is)
			continue
		}
		x.step("again", want, nil, len(ahead) > 0)
		if is := x.sh(x.read); is != right {
			t.Errorf("command %d was refused: the next apply makes\n%s", n, is)
		}
	}
	for n := 0; ; n += wallEvery {
		m, x := fresh()
		want := x.declared(true)
		x.step("create", want, nil, true)
		r := &refusingWall{m, n}
		_, err := want.restore(t.Context(), nil, r, x.record())
		if r.passing >= 0 {
			break
		}
		if err != nil {
			_, err = want.restore(t.Context(), nil, m, x.record())
		}
		if is := x.sh(x.read); err != nil || is != nothing {
			t.Errorf("command %d of the destroy was refused: %v, and the machine has\n%s", n, err, is)
		}
	}
}
