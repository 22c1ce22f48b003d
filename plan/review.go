package plan

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// refusal is an instance that its provider would not plan.
type refusal struct {
	draft    *draft
	proposed cty.Value
}

// refuse keeps an instance that its provider did not plan, so that the review
// reports faults between instances together with the faults of each instance.
func (p *planner) refuse(d *draft, proposed cty.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, refusal{d, proposed})
}

// reviewed is what providers are handed.
type reviewed struct {
	planned []redact.Reviewed
	others  []string                  // addresses of what other providers make or change
	about   map[string]*eval.Instance // by address
	sources map[string]bool           // whose instances are among them, and who review
}

// review calls the review of each linked-in provider with all planned instances
// of such providers, and with rejected instances as they were proposed.
func (p *planner) review(ctx context.Context, result *Plan) hcl.Diagnostics {
	r := &reviewed{about: map[string]*eval.Instance{}, sources: map[string]bool{}}
	add := func(c *Change, inst *eval.Instance) {
		source, _, ok := eval.ParseProviderAddr(c.Provider)
		entry, linked := p.req.Catalogue[source]
		if !ok || !linked {
			if c.Addr.Mode == address.Managed && c.Action != NoOp && c.Action != Delete && c.Action != Forget {
				r.others = append(r.others, c.Addr.String())
			}
			return
		}
		if entry.Review != nil {
			r.sources[source] = true
		}
		name := c.Addr.String()
		r.planned = append(r.planned, redact.Reviewed{
			PlannedInstance: providers.PlannedInstance{Address: name, Source: source, Type: c.Addr.Type, Prior: c.Before, Planned: c.After},
			Schema:          c.Schema, Sensitive: slices.Concat(c.BeforeSensitive, c.AfterSensitive),
		})
		if inst != nil {
			r.about[name] = inst
		}
	}
	for _, c := range result.Changes {
		var inst *eval.Instance
		if it := p.items[c.Addr]; it != nil && c.Deposed == "" {
			inst = it.inst
		}
		add(c, inst)
	}
	slices.SortFunc(p.refused, func(a, b refusal) int { return a.draft.inst.Addr.Compare(b.draft.inst.Addr) })
	for _, r := range p.refused {
		d := r.draft
		if d.inst.Addr.Mode == address.Managed {
			add(&Change{Addr: d.inst.Addr, Provider: d.owner.Addr, Schema: d.ty.Schema, Before: d.before, After: r.proposed, AfterSensitive: d.marked.Secret()}, d.inst)
		}
	}
	var diags hcl.Diagnostics
	for _, source := range slices.Sorted(maps.Keys(r.sources)) {
		var configured []*redact.Provider
		for _, owner := range p.owners {
			if owner.Source == source {
				configured = append(configured, owner.Server)
			}
		}
		notes, said := redact.Review(ctx, source, p.req.Catalogue[source], r.planned, r.others, configured)
		result.Notes = append(result.Notes, notes...)
		diags = append(diags, r.placeDiagnostics(source, said)...)
	}
	return append(diags, p.guarded.check(result.Notes)...)
}

// placeDiagnostics puts what a review says where the instance that it is about is declared.
func (r *reviewed) placeDiagnostics(source string, diags providers.Diagnostics) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, d := range diags {
		one := providers.Diagnostics{d}
		inst := r.about[d.Address]
		switch {
		case inst != nil:
			decl := inst.Resource.Decl
			out = append(out, eval.AddSubject(d.Address, eval.FromProvider(one, decl.Body, decl.Range, d.Address))...)
		case d.Address != "":
			out = append(out, eval.AddSubject(d.Address, eval.FromProvider(one, nil, hcl.Range{}, d.Address))...)
		default:
			out = append(out, eval.FromProvider(one, nil, hcl.Range{}, "provider "+strings.TrimPrefix(source, "registry.terraform.io/"))...)
		}
	}
	return out
}
