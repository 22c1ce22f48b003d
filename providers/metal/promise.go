package metal

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// promiseKey is where a plan's private data keeps its promise.
const promiseKey = "interrupts"

// promise is what a plan has shown that apply interrupts on a machine at most.
type promise struct {
	Looked  bool            `json:"looked"` // the machine was looked at; if not, nothing is promised
	Most    host.Disruption `json:"most"`
	Reloads bool            `json:"reloads"`
}

func promising(changes []host.Change) promise {
	return promise{Looked: true, Most: host.Greatest(changes), Reloads: host.Reloads(changes)}
}

// forecastChanges adds what packages interrupt that nobody declared, and that
// come along. All that packages interrupt reloads systemd besides.
func forecastChanges(changes []host.Change, f packages.Forecast, at []string) []host.Change {
	if f.Disruption > host.Greatest(changes) || f.Disruption > host.None && !host.Reloads(changes) {
		changes = append(changes, host.Change{Fact: f.Because, Path: at, Disruption: f.Disruption, Reloads: f.Disruption > host.ReloadsSystemd})
	}
	return changes
}

func (p promise) keep(ctx context.Context, private privateSetter, diags *diag.Diagnostics) {
	b, err := json.Marshal(p)
	if err != nil {
		diags.AddError("The plan cannot be noted", err.Error())
		return
	}
	diags.Append(private.SetKey(ctx, promiseKey, b)...)
}

// promised is the promise that the plan of this Apply left. Where none can be
// read nothing is promised: under Terraform a create does not get it.
func promised(ctx context.Context) promise {
	var p promise
	var private map[string][]byte // as terraform-plugin-framework keeps it
	if json.Unmarshal(providers.CallFrom(ctx).Planned, &private) != nil || json.Unmarshal(private[promiseKey], &p) != nil {
		return promise{}
	}
	return p
}

// covers refuses what interrupts a node more than the plan has shown: the
// machine is not any more what it was then.
func (p promise) covers(m host.Machine, changes []host.Change) error {
	now := promising(changes)
	if !p.Looked || now.Most <= p.Most && (!now.Reloads || p.Reloads || p.Most >= host.Drains) {
		return nil
	}
	worst := host.Change{}
	for _, c := range changes {
		if c.Disruption == now.Most || now.Most <= p.Most && c.Reloads {
			worst = c
		}
	}
	would := worst.Disruption
	if now.Most <= p.Most {
		would = host.ReloadsSystemd
	}
	return fmt.Errorf("%s has changed since it was planned: what differs now (%s) %s, and the plan shows %s at most; nothing was changed, plan again", m.Name(), worst.Fact, would, p.Most)
}

type boundKey struct{}

// bounded is work on a node that must not interrupt more than changes say, as
// far as that turns out only when packages are downloaded.
func bounded(changes []host.Change, work func(context.Context) error) func(context.Context) error {
	most := host.None
	if host.Reloads(changes) { // as every package does that interrupts anything
		most = host.Greatest(changes)
	}
	return func(ctx context.Context) error { return work(context.WithValue(ctx, boundKey{}, most)) }
}

// bound is what installing packages may interrupt; nil for anything: no pods are
// there that it could hurt.
func bound(ctx context.Context) *host.Disruption {
	most, on := ctx.Value(boundKey{}).(host.Disruption)
	if !on || drain.IsDrained(ctx) {
		return nil
	}
	return &most
}
