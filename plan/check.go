package plan

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
)

// checks decides the check blocks, once everything that they may refer to is
// planned. With targets they are left alone: they may rest on what the plan
// leaves out.
func (p *planner) checks(t *eval.Task) {
	if p.req.Mode == Destroy || len(p.targets) > 0 {
		return
	}
	p.ev.Checks(t)
}

// scopedData reads a check's own data source. It is read again while applying,
// so that the check is decided on what the apply has left. That it cannot be
// read is a result of the check, not an end of the plan.
func (p *planner) scopedData(ctx context.Context, t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	d, ok := p.draft(t, inst)
	if !ok || !d.validate(ctx) {
		return cty.DynamicVal, false
	}
	c := &Change{
		Addr: inst.Addr, Provider: d.owner.Addr, Schema: d.ty.Schema,
		Before: cty.NullVal(d.ty.Implied), Action: Read, Reason: ReadCheckNested,
	}
	d.change = c
	c.After = contract.ProposedUnknown(d.ty.Schema.Block, d.config)
	ok = true
	switch pending := p.pending(inst.Resource); {
	case !d.config.IsWhollyKnown():
		c.Reason = ReadConfigUnknown
	case pending:
		c.Reason, c.Config = ReadDependencyPending, d.config
	default:
		c.Config = d.config
		state, fine := d.readData(ctx)
		if ok = fine; ok {
			c.After = state
		}
	}
	d.sensitive()
	value := lang.Marked{Sensitive: c.AfterSensitive}.Apply(c.After)
	p.mu.Lock()
	p.items[inst.Addr] = &item{change: c, inst: inst, value: value}
	p.mu.Unlock()
	return value, ok
}

// quietChecks takes the reads of checks out of a plan that changes nothing
// else: what they were decided on is what there is.
func (p *planner) quietChecks() {
	for _, it := range p.items {
		if it.change.Action != NoOp && it.change.Reason != ReadCheckNested || it.verify {
			return
		}
	}
	for _, c := range p.extra {
		if c.Action != NoOp {
			return
		}
	}
	for _, o := range p.outs {
		if o.Action != NoOp {
			return
		}
	}
	for addr, it := range p.items {
		c := it.change
		switch {
		case c.Reason != ReadCheckNested:
		case !c.After.IsWhollyKnown(): // it could not be read
			delete(p.items, addr)
		default:
			c.Action, c.Reason = NoOp, NoReason
			p.remember(it.inst, c, c.Schema.Block.ImpliedType())
		}
	}
}
