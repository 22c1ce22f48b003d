package plan

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
)

// checks decides the check blocks, once everything that they may refer to is planned.
// With targets or exclusions they are not decided: they may depend on objects that the
// plan leaves out.
func (p *planner) checks(t *eval.Task) {
	if p.req.Mode == Destroy || p.partial() {
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
	if p.deferral(t, inst, d.owner) != "" { // a later round decides the check
		t.Defer()
		return c.After, true
	}
	ok = true
	switch pending := p.pending(inst); {
	case !d.config.IsWhollyKnown():
		c.Reason = ReadConfigUnknown
	case pending:
		c.Reason, c.Config = ReadDependencyPending, d.config
	default:
		c.Config = d.config
		found, fine := d.readData(ctx)
		if ok = fine; ok && d.deferred != "" {
			t.Defer()
			return c.After, true
		} else if ok {
			c.After = found
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
// else: their values are the observed ones.
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

// checkRecord is a check result as a plan file holds it.
func checkRecord(r state.CheckResult) *fileCheck {
	f := &fileCheck{Kind: r.Kind, Config: r.Config, Status: r.Status}
	for _, o := range r.Objects {
		f.Objects = append(f.Objects, fileCheckedObject(o))
	}
	return f
}

func (f *fileCheck) result() state.CheckResult {
	r := state.CheckResult{Kind: f.Kind, Config: f.Config, Status: f.Status}
	for _, o := range f.Objects {
		r.Objects = append(r.Objects, state.CheckedObject(o))
	}
	return r
}

// checksLast makes the reads of checks wait for everything else: a check is
// about what the apply has left.
func (o *ordering) checksLast() {
	var others, reads []int32
	for i, op := range o.ops {
		switch {
		case op.Change < 0: // a barrier, perhaps of the read itself
		case o.isCheckRead(o.result.Changes[op.Change]):
			reads = append(reads, int32(i))
		default:
			others = append(others, int32(i))
		}
	}
	if len(reads) == 0 || len(others) == 0 {
		return
	}
	all := o.add(Barrier, -1)
	o.ops[all].After = others
	for _, read := range reads {
		o.ops[read].After = append(o.ops[read].After, all)
	}
}

func (o *ordering) isCheckRead(c *Change) bool {
	it := o.p.items[c.Addr]
	return it != nil && c.Action == Read && it.inst.Resource.Decl.Check != ""
}
