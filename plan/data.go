package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/providers"
)

// data reads a data source now, or plans to read it while applying when its
// configuration or what it has to wait for is not there yet.
func (p *planner) data(ctx context.Context, t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	d, ok := p.draft(t, inst)
	if !ok {
		return cty.DynamicVal, false
	}
	if d.excluded {
		return p.leave(t, inst)
	}
	decl := inst.Resource.Decl
	known, fine := t.Decide(eval.Context{Instance: inst}, decl.Lifecycle.Preconditions, "Resource precondition failed")
	if !fine || !d.validate(ctx) {
		return cty.DynamicVal, false
	}
	if reason := p.deferral(t, inst, d.owner); reason != "" {
		return d.postpone(reason)
	}
	c := &Change{
		Addr: inst.Addr, Provider: d.owner.Addr, Schema: d.ty.Schema,
		Before: cty.NullVal(d.ty.Implied), Action: Read, Reason: ReadConfigUnknown,
	}
	d.change = c
	pending := p.pending(inst)
	if !d.config.IsWhollyKnown() || pending || !known {
		if d.config.IsWhollyKnown() {
			c.Reason, c.Config = ReadDependencyPending, d.config
		}
		c.After = contract.ProposedUnknown(d.ty.Schema.Block, d.config)
		d.sensitive()
		t.Undecided(inst, decl.Lifecycle.Postconditions)
		value := lang.Marked{Sensitive: c.AfterSensitive}.Apply(c.After)
		p.keep(inst, c, false, value)
		return value, true
	}
	found, fine := d.readData(ctx)
	switch {
	case !fine:
		return cty.DynamicVal, false
	case d.deferred != "":
		return d.postpone(d.deferred)
	}
	c.Action, c.Reason, c.After, c.Config = NoOp, NoReason, found, d.config
	d.sensitive()
	value := lang.Marked{Sensitive: c.AfterSensitive}.Apply(c.After)
	settled, fine := t.Decide(eval.Context{Instance: inst, Self: value}, decl.Lifecycle.Postconditions, "Resource postcondition failed")
	if !fine {
		return cty.DynamicVal, false
	}
	if t.Deferred() {
		return d.postpone(DeferredPrerequisite)
	}
	p.remember(inst, c, d.ty.Implied)
	p.keep(inst, c, !settled, value)
	return value, true
}

// readData asks the provider for a data source's values.
func (d *draft) readData(ctx context.Context) (cty.Value, bool) {
	p, addr := d.p, d.inst.Addr
	resp := p.reads.data(addr, d.config, p.note, func(note func(providers.Note)) providers.ReadDataResponse {
		defer p.gates.pass(d.t, p.req.Limits.Slots(p.req.Catalogue, d.owner.Addr, addr, func() cty.Value { return d.config }))()
		started := time.Now()
		p.emit(Event{Kind: ReadStart, Addr: addr})
		resp := d.owner.Server.ReadData(p.callNoting(ctx, addr, note), providers.ReadDataRequest{Type: addr.Type, Config: d.config, Meta: NoMeta(d.owner.Schema), MayDefer: true}, d.marked.Secret())
		if !resp.Diagnostics.HasErrors() {
			p.emit(Event{Kind: ReadDone, Addr: addr, ID: Identity(resp.State), Elapsed: time.Since(started)})
		}
		return resp
	})
	if !d.reportDiagnostics(resp.Diagnostics) {
		return cty.DynamicVal, false
	}
	if d.deferred = deferredByProvider(resp.Deferred); d.deferred == "" {
		switch {
		case !checkRead(d.t, d.owner, addr, d.ty.Implied, resp.State):
			return cty.DynamicVal, false
		case resp.State.IsNull():
			return cty.DynamicVal, d.reportDiagnostics(providers.Diagnostics{{Summary: "Provider returned no object", Detail: fmt.Sprintf("The provider %s says that %s was read and returns nothing. This is a mistake in the provider; please report it to its makers.", d.owner.Source, addr)}})
		}
	}
	d.marked.Sensitive = append(d.marked.Sensitive, resp.Sensitive...)
	return resp.State, true
}

// remember has apply store what was read, where it is news.
func (p *planner) remember(inst *eval.Instance, c *Change, ty cty.Type) {
	c.Before, c.BeforeSensitive = c.After, c.AfterSensitive
	if o := p.prior.Current(inst.Addr); o != nil {
		if v, err := o.Value(ty); err == nil && v.RawEquals(c.After) && samePaths(o.Sensitive, c.AfterSensitive) {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshed = append(p.refreshed, c)
}

// pending reports whether something is going to change that depends_on names or
// that the data source refers to by itself, rather than by way of a local value
// or the like: what it reads may be made by that change, whichever attributes
// it asks for.
func (p *planner) pending(inst *eval.Instance) bool {
	var waits []address.Resource
	if node := inst.Resource.Demanded(); node != nil {
		waits = node.Resources()
	}
	waits = append(slices.Clip(waits), inst.NamedResources()...)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(waits, func(r address.Resource) bool { return r.Mode == address.Managed && p.changing[r] })
}
