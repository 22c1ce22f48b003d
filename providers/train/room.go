package train

import (
	"context"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
)

// asking remembers what the pods of planned experiments ask for, until a review of
// the whole plan looks whether nodes have it.
type asking struct {
	mu sync.Mutex
	by map[string]roomRequest // by the experiment's address
}

// roomRequest is what the pods of one run ask of the nodes of a cluster.
type roomRequest struct {
	demands []connect.Demand
	dial    func(context.Context) (*connected.Client, error) // nil: the cluster is not known yet
	assume  bool                                             // that nodes take the pods
}

// forget makes way for another plan of an experiment.
func (a *asking) forget(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, address)
}

func (a *asking) note(address string, what roomRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[string]roomRequest{}
	}
	a.by[address] = what
}

// room refuses a run beyond the provider's limits, and remembers what its pods ask
// for.
func (p *planning) room() {
	if p.settings.unknown {
		return
	}
	p.resp.Diagnostics.Append(p.settings.limits.check(p.draft, p.plan)...)
	p.ask()
}

// ask remembers what the pods of the planned run ask for; nothing where that is not
// known yet.
func (p *planning) ask() {
	if p.plan.Cluster.IsNull() || p.draft.unknown["worker.replicas"] || p.draft.unknown["parameter_server.replicas"] {
		return
	}
	m := *p.plan
	m.Image = m.Name // which it is makes no difference to nodes
	place, known, diags := m.placement("")
	if !known || diags.HasError() {
		return
	}
	what := roomRequest{demands: demandsOf(p.draft.spec, place), assume: m.AssumeNodes.ValueBool()}
	if c, known, diags := connect.FromObject(context.Background(), m.Cluster); known && c != nil && !diags.HasError() {
		s, given := p.settings, m.Cluster
		what.dial = func(ctx context.Context) (*connected.Client, error) { return s.dial(ctx, given, "") }
	}
	p.settings.asking.note(p.call.Address, what)
}

// review refuses experiments with pods that no node of their cluster, none that the
// plan brings either, could ever take.
func (a *asking) review(ctx context.Context, all providers.Review) (notes []providers.Note, diags providers.Diagnostics) {
	a.mu.Lock()
	defer a.mu.Unlock()
	type cluster struct {
		room      *live.Room
		discovers string
	}
	clusters := map[*connected.Client]cluster{}
	for _, p := range all.Planned {
		what, ok := a.by[p.Address]
		if !ok || p.Source != Source || p.Planned.IsNull() || !p.Planned.Type().IsObjectType() {
			continue
		}
		if what.dial == nil {
			notes = append(notes, live.UnknownRoom(p.Address, what.demands, "their cluster is not known yet"))
			continue
		}
		client, err := what.dial(ctx)
		if err != nil {
			notes = append(notes, live.UnknownRoom(p.Address, what.demands, strings.TrimSuffix(err.Error(), ".")))
			continue
		}
		c, seen := clusters[client]
		if !seen {
			in := live.New(client)
			grows, discovers := in.PlannedNodes(all.Planned)
			c = cluster{in.Room(ctx, all, grows), discovers}
			clusters[client] = c
		}
		refused, more := c.room.CheckRoom(ctx, p.Address, what.demands, c.discovers)
		notes = append(notes, more...)
		for _, no := range refused {
			if what.assume {
				notes = append(notes, no.Assumed(p.Address))
				continue
			}
			diags = append(diags, providers.Diagnostic{Address: p.Address, Severity: providers.Error, Summary: "No node can take the pods",
				Detail: no.Detail(), Path: cty.GetAttrPath(blockOf(p.Planned, no.Name))})
		}
	}
	return notes, diags
}

// blockOf is where an experiment says what pods of a role get.
func blockOf(planned cty.Value, role string) string {
	for name, block := range map[string]string{"worker": "worker", "coordinator": "coordinator", "ps": "parameter_server"} {
		if strings.HasSuffix(role, " "+name) && planned.IsKnown() && planned.Type().HasAttribute(block) && !planned.GetAttr(block).IsNull() {
			return block
		}
	}
	return "cluster"
}
