package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// object is a stored object as it was found to be.
type object struct {
	value     cty.Value // null: it is gone
	private   []byte
	sensitive []cty.Path
	deferred  DeferReason // the provider cannot read it yet: value is the stored one
}

// read brings a stored object up to its current schema and asks the provider
// what it is like now.
func (p *planner) read(ctx context.Context, t *eval.Task, addr address.Instance, deposed string, stored *state.Object, owner *eval.Provider, ty *eval.Type) (object, bool) {
	value, diags := Upgraded(ctx, owner.Server, addr.Type, stored, ty)
	t.Report(diags...)
	if diags.HasErrors() || !checkRead(t, owner, addr, ty.Implied, value) {
		return object{}, false
	}
	o := object{value: value, private: stored.Private, sensitive: sensitiveIn(stored.Sensitive, ty, value)}
	if p.req.SkipRefresh || ty.Schema.NoEffect || owner.Unknown {
		return o, true
	}
	resp, wanted := p.reads.object(objectKey{addr, deposed}, p.note, func(note func(providers.Note)) providers.ReadResponse {
		defer p.gates.pass(t, p.req.Limits.Slots(p.req.Catalogue, owner.Addr, addr, func() cty.Value { return value }))()
		started := time.Now()
		p.emit(Event{Kind: RefreshStart, Addr: addr, Deposed: deposed, ID: Identity(value)})
		resp := owner.Server.Read(p.callNoting(ctx, addr, note), providers.ReadRequest{
			Type: addr.Type, State: value, Private: stored.Private, Meta: NoMeta(owner.Schema), MayDefer: p.req.Mode == Normal,
		}, o.sensitive)
		p.emit(Event{Kind: RefreshDone, Addr: addr, Deposed: deposed, ID: Identity(value), Elapsed: time.Since(started)})
		return resp
	})
	if !wanted {
		p.mu.Lock()
		p.unread++
		p.mu.Unlock()
		return o, true
	}
	t.Report(eval.AddSubject(addr.String(), eval.FromProvider(resp.Diagnostics, nil, hcl.Range{}, addr.String()))...)
	if resp.Diagnostics.HasErrors() {
		return object{}, false
	}
	if o.deferred = deferredByProvider(resp.Deferred); o.deferred != "" {
		return o, true
	}
	if !checkRead(t, owner, addr, ty.Implied, resp.State) {
		return object{}, false
	}
	resp.State, _ = contract.WithoutWriteOnly(ty.Schema.Block, resp.State)
	resp.State = ty.Share(resp.State)
	if len(resp.Diagnostics) > 0 && resp.State.RawEquals(value) {
		p.mu.Lock()
		p.unseen++
		p.mu.Unlock()
	}
	if resp.State.IsNull() || !resp.State.RawEquals(value) || string(resp.Private) != string(stored.Private) {
		p.moved(addr, deposed, owner, ty, stored, value, resp)
	}
	o.value, o.private = resp.State, resp.Private
	if !o.value.IsNull() {
		o.sensitive = sensitiveIn(stored.Sensitive, ty, o.value)
	}
	return o, true
}

// moved notes that an object is not what the state says.
func (p *planner) moved(addr address.Instance, deposed string, owner *eval.Provider, ty *eval.Type, stored *state.Object, before cty.Value, resp providers.ReadResponse) {
	c := &Change{
		Addr: addr, Deposed: deposed, Previous: p.from[addr], Provider: owner.Addr, Action: Update, Before: before, After: resp.State,
		BeforeSensitive: sensitiveIn(stored.Sensitive, ty, before), Private: resp.Private, PriorPrivate: stored.Private,
		Dependencies: stored.Dependencies, CreateBeforeDestroy: stored.CreateBeforeDestroy, Schema: ty.Schema,
	}
	if resp.State.IsNull() {
		c.Action = Delete
	} else {
		c.AfterSensitive = sensitiveIn(stored.Sensitive, ty, resp.State)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshed = append(p.refreshed, c)
	if c.Action == Delete || !resp.State.RawEquals(before) {
		p.drift = append(p.drift, c)
	}
}

// Upgraded returns a stored object's value by the current schema.
func Upgraded(ctx context.Context, server *redact.Provider, typeName string, stored *state.Object, ty *eval.Type) (cty.Value, hcl.Diagnostics) {
	if stored.SchemaVersion > ty.Schema.Version {
		return cty.DynamicVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Resource written by newer provider",
			Detail: fmt.Sprintf("The state holds a %s of schema version %d, but this provider knows versions up to %d. Use the provider's newer version.", typeName, stored.SchemaVersion, ty.Schema.Version),
		}}
	}
	if ty.Schema.NoEffect && stored.SchemaVersion == ty.Schema.Version {
		if v, err := stored.Value(ty.Implied); err == nil {
			return ty.Share(v), nil
		}
	}
	resp := server.Upgrade(ctx, providers.UpgradeRequest{Type: typeName, Version: stored.SchemaVersion, JSON: stored.JSON}, stored.Sensitive)
	if !resp.Diagnostics.HasErrors() {
		resp.State, _ = contract.WithoutWriteOnly(ty.Schema.Block, resp.State)
		resp.State = ty.Share(resp.State)
	}
	return resp.State, eval.FromProvider(resp.Diagnostics, nil, hcl.Range{}, typeName)
}

func sensitiveIn(stored []cty.Path, ty *eval.Type, v cty.Value) []cty.Path {
	paths := slices.Clone(stored)
	if v.IsNull() {
		return nil
	}
	for _, path := range ty.Sensitive(v) {
		if !slices.ContainsFunc(paths, path.Equals) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Identity is the object's id attribute, for messages; NilVal if it has none.
func Identity(v cty.Value) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute("id") {
		return cty.NilVal
	}
	id := v.GetAttr("id")
	if !id.IsKnown() || id.IsNull() || id.Type() != cty.String {
		return cty.NilVal
	}
	return id
}

func (p *planner) emit(e Event) { p.req.Listen(e) }

// refreshOnly takes an instance as it is.
func (p *planner) refreshOnly(ctx context.Context, t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	owner, ok := inst.Resource.Provider(t)
	if !ok {
		return cty.DynamicVal, false
	}
	ty, ok := inst.Resource.Type(t)
	if !ok {
		return cty.DynamicVal, false
	}
	// The configuration has the dependencies and mistakes; its values are not wanted.
	if config, _, ok := inst.Config(t); ok && p.excluded(inst, config, owner) {
		return p.leave(t, inst)
	}
	stored := p.prior.Current(inst.Addr)
	if stored == nil {
		return cty.UnknownVal(ty.Implied), true
	}
	o, ok := p.read(ctx, t, inst.Addr, "", stored, owner, ty)
	if !ok {
		return cty.DynamicVal, false
	}
	if p.deferral(t, inst, owner) != "" {
		t.Defer()
	}
	c := &Change{
		Addr: inst.Addr, Provider: stored.Provider, Action: NoOp, Before: o.value, After: o.value,
		BeforeSensitive: o.sensitive, AfterSensitive: o.sensitive, PriorPrivate: o.private, Private: o.private,
		Schema: ty.Schema, CreateBeforeDestroy: stored.CreateBeforeDestroy, PriorDependencies: stored.Dependencies,
	}
	value := lang.Marked{Sensitive: o.sensitive}.Apply(o.value)
	if o.value.IsNull() {
		value = cty.UnknownVal(ty.Implied) // it is gone; users of a missing object keep their values
	}
	p.keep(inst, c, false, value)
	return value, true
}

// stored is an instance's value while everything is being destroyed: what the
// state says, for provider configurations that read it.
func (p *planner) stored(t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	ty, ok := inst.Resource.Type(t)
	if !ok {
		return cty.DynamicVal, false
	}
	o := p.prior.Current(inst.Addr)
	if o == nil {
		return cty.UnknownVal(ty.Implied), true
	}
	v, err := o.Value(ty.Implied)
	if err != nil {
		return cty.UnknownVal(ty.Implied), true
	}
	return lang.Marked{Sensitive: sensitiveIn(o.Sensitive, ty, v)}.Apply(v), true
}
