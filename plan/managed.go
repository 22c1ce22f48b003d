package plan

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/providers"
)

// Value plans an instance and returns what it will be.
func (p *planner) Value(ctx context.Context, t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	if p.closed || p.stopped() || ctx.Err() != nil {
		return cty.DynamicVal, false
	}
	if p.req.Mode == Destroy {
		return p.stored(t, inst)
	}
	if inst.Resource.Decl.Check != "" {
		return p.scopedData(ctx, t, inst)
	}
	if len(p.excludes) > 0 && (inst.Excluded() || p.exclusionNames(inst.Addr)) {
		return p.leave(t, inst)
	}
	if inst.Addr.Mode == address.Data {
		return p.data(ctx, t, inst)
	}
	if p.req.Mode == RefreshOnly {
		return p.refreshOnly(ctx, t, inst)
	}
	return p.managed(ctx, t, inst)
}

// draft is a planned instance in the making.
type draft struct {
	p     *planner
	t     *eval.Task
	inst  *eval.Instance
	ty    *eval.Type
	owner *eval.Provider

	config   cty.Value   // unmarked
	marked   lang.Marked // where config was marked
	before   cty.Value
	private  []byte
	tainted  bool
	change   *Change
	excluded bool
	// lifecycle has the values of arguments that are expressions.
	lifecycle modules.Lifecycle
	// deferred is why the provider has left the decision to a later plan.
	deferred DeferReason
}

func (p *planner) managed(ctx context.Context, t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
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
	if d.lifecycle, ok = inst.Lifecycle(t); !ok {
		return cty.DynamicVal, false
	}
	if d.deferred = p.deferral(t, inst, d.owner); d.deferred == "" {
		ok = d.begin(ctx) && (d.deferred != "" || d.plan(ctx))
	}
	switch {
	case !ok:
		return cty.DynamicVal, false
	case d.deferred != "":
		return d.postpone(d.deferred)
	}
	c := d.change
	if d.lifecycle.PreventDestroy {
		p.guarded.add(inst)
	}
	if d.lifecycle.PreventDestroy && c.Action.Replaces() {
		t.Report(preventDestroy(inst.Addr, decl.Range))
		return cty.DynamicVal, false
	}
	if _, secret := contract.WithoutWriteOnly(d.ty.Schema.Block, d.config); d.config.IsWhollyKnown() && !secret {
		c.Config = d.config // a write-only value must not be in a plan: the apply evaluates it again
	}
	value := lang.Marked{Sensitive: c.AfterSensitive}.Apply(c.After)
	settled, fine := t.Decide(eval.Context{Instance: inst, Self: value}, decl.Lifecycle.Postconditions, "Resource postcondition failed")
	if !fine {
		return cty.DynamicVal, false
	}
	if t.Deferred() { // its postconditions or replace_triggered_by are
		return d.postpone(DeferredPrerequisite)
	}
	p.keep(inst, c, c.Action == NoOp && !(known && settled), value)
	return value, true
}

// begin reads the existing object, or imports one, and starts the change from
// it.
func (d *draft) begin(ctx context.Context) bool {
	addr := d.inst.Addr
	stored := d.p.prior.Current(addr)
	d.before = cty.NullVal(d.ty.Implied)
	d.change = &Change{Addr: addr, Provider: d.owner.Addr, Schema: d.ty.Schema, CreateBeforeDestroy: d.lifecycle.CreateBeforeDestroy}
	c := d.change
	if stored == nil {
		var ok bool
		if c.BeforeSensitive, c.Importing, ok = d.takeIn(ctx); !ok {
			return false
		}
	} else {
		object, ok := d.p.read(ctx, d.t, addr, "", stored, d.owner, d.ty)
		if !ok {
			return false
		}
		d.tainted, d.deferred = stored.Tainted, object.deferred
		d.before, d.private, c.BeforeSensitive = object.value, object.private, object.sensitive
		c.PriorDependencies = stored.Dependencies
	}
	c.Before, c.PriorPrivate = d.before, d.private
	return true
}

func preventDestroy(addr address.Instance, rng hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Instance cannot be destroyed",
		Detail:  fmt.Sprintf("%s has lifecycle.prevent_destroy set, but the plan calls for destroying it. Take prevent_destroy away or keep the plan from destroying it, for example with -target.", addr),
		Subject: rng.Ptr(),
	}
}

// guards are the instances that may not be destroyed, by address, and no part of them.
type guards struct {
	mu        sync.Mutex
	instances map[string]*eval.Instance
}

func (g *guards) add(inst *eval.Instance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.instances == nil {
		g.instances = map[string]*eval.Instance{}
	}
	g.instances[inst.Addr.String()] = inst
}

// check refuses a plan that deletes a part of an instance that may not be destroyed.
func (g *guards) check(notes []providers.Note) (diags hcl.Diagnostics) {
	for _, n := range notes {
		inst := g.instances[n.Address]
		if n.Kind != providers.NoteDeletion || inst == nil {
			continue
		}
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Part of an instance cannot be destroyed",
			Detail: fmt.Sprintf("%s has lifecycle.prevent_destroy set, but in the plan %s. "+
				"Take prevent_destroy away or keep the plan from deleting it.", inst.Addr, n.Text),
			Subject: inst.Resource.Decl.Range.Ptr(),
		})
	}
	return diags
}

func (p *planner) keep(inst *eval.Instance, c *Change, verify bool, value cty.Value) {
	if !c.Before.IsNull() {
		c.Previous = p.from[inst.Addr]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items[inst.Addr] = &item{change: c, inst: inst, verify: verify, value: value}
	if c.Action != NoOp {
		p.changing[inst.Addr.Resource] = true
	}
}

func (p *planner) draft(t *eval.Task, inst *eval.Instance) (*draft, bool) {
	config, ty, ok := inst.Config(t)
	if !ok {
		return nil, false
	}
	owner, ok := inst.Resource.Provider(t)
	if !ok {
		return nil, false
	}
	p.mu.Lock()
	p.owners[owner.Addr] = owner
	p.mu.Unlock()
	d := &draft{p: p, t: t, inst: inst, ty: ty, owner: owner}
	d.excluded = p.excluded(inst, config, owner)
	d.config, d.marked, _ = lang.Unmark(config)
	d.config = ty.Share(d.config)
	return d, inst.Persistable(t, ty, &d.marked) && inst.Finite(t, d.config)
}

func (d *draft) validate(ctx context.Context) bool {
	var diags providers.Diagnostics
	if d.inst.Addr.Mode == address.Data {
		diags = d.owner.Server.ValidateData(ctx, d.inst.Addr.Type, d.config, d.marked.Secret())
	} else {
		diags = d.owner.Server.ValidateResource(ctx, d.inst.Addr.Type, d.config, d.marked.Secret())
	}
	return d.reportDiagnostics(diags)
}

// reportDiagnostics reports the provider's diagnostics and returns whether none is an error.
func (d *draft) reportDiagnostics(diags providers.Diagnostics) bool {
	if len(diags) == 0 {
		return true
	}
	decl := d.inst.Resource.Decl
	d.t.Report(eval.AddSubject(d.inst.Addr.String(), eval.FromProvider(diags, decl.Body, decl.Range, d.inst.Addr.String()))...)
	return !diags.HasErrors()
}

// call is the context that a provider's call gets.
func (p *planner) call(ctx context.Context, addr address.Instance) context.Context {
	return p.callNoting(ctx, addr, p.note)
}

// callNoting is call with a receiver of notes.
func (p *planner) callNoting(ctx context.Context, addr address.Instance, note func(providers.Note)) context.Context {
	name := addr.String()
	return providers.WithCall(ctx, &providers.Call{
		Address: name, Stopping: p.req.Stopping,
		Note: func(n providers.Note) {
			if n.Address == "" {
				n.Address = name
			}
			note(n)
		},
	})
}

// note keeps a plan note. A replacement is planned twice, and says most things
// twice.
func (p *planner) note(n providers.Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := func(m providers.Note) bool {
		return m.Kind == n.Kind && m.Text == n.Text && m.Number == n.Number && m.Path.Equals(n.Path)
	}
	if !slices.ContainsFunc(p.notes[n.Address], same) {
		p.notes[n.Address] = append(p.notes[n.Address], n)
	}
}

// plan asks the provider and decides on the action.
func (d *draft) plan(ctx context.Context) bool {
	c, lifecycle := d.change, d.lifecycle
	ctx = d.p.call(ctx, d.inst.Addr)
	config := IgnoreChanges(d.config, d.before, lifecycle, d.ty.Schema.Block)
	triggered, ok := d.triggered(lifecycle.ReplaceTriggeredBy)
	if !ok {
		return false
	}
	reason := d.forcedReason(triggered)
	resp, proposed := d.request(ctx, d.before, config, d.private)
	if reason != NoReason && resp.Diagnostics.HasErrors() {
		return d.planReplacement(ctx, reason) // the rejected update does not matter if the object is replaced
	}
	planned, ok := d.accept(resp, d.before, proposed, config)
	if !ok {
		return false
	}
	if d.deferred != "" {
		return true
	}
	c.Private = resp.Private
	if d.before.IsNull() {
		c.Action, c.After, c.Legacy = Create, planned, resp.Legacy
		d.sensitive()
		return true
	}
	if !d.tainted { // a tainted object is replaced in any case
		c.Replace = contract.FilterReplace(resp.Replace, d.before, planned)
	}
	if reason == NoReason && len(c.Replace) > 0 {
		reason = ReplaceCannotUpdate
	}
	if reason != NoReason {
		return d.planReplacement(ctx, reason)
	}
	c.After, c.Legacy = planned, resp.Legacy
	d.sensitive()
	c.Action = Update
	if planned.RawEquals(d.before) && samePaths(d.stored(c.BeforeSensitive), d.stored(c.AfterSensitive)) {
		c.Action, c.After = NoOp, d.before
	}
	return true
}

// forcedReason returns the reason why an object is replaced regardless of its provider; of
// several reasons, the reason that Terraform reports.
func (d *draft) forcedReason(triggered bool) Reason {
	switch {
	case d.before.IsNull():
		return NoReason
	case triggered:
		return ReplaceByTriggers
	case d.tainted:
		return ReplaceTainted
	case d.p.replace[d.inst.Addr]:
		return ReplaceByRequest
	}
	return NoReason
}

// planReplacement plans a new object that replaces the existing one.
func (d *draft) planReplacement(ctx context.Context, reason Reason) bool {
	c := d.change
	c.Action, c.Reason = DeleteThenCreate, reason // the order is settled once all dependents are known
	// Ignored changes concern the old object: the new one is as configured.
	call := *providers.CallFrom(ctx)
	call.Replaces = d.before
	none := cty.NullVal(d.ty.Implied)
	resp, proposed := d.request(providers.WithCall(ctx, &call), none, d.config, nil)
	planned, ok := d.accept(resp, none, proposed, d.config)
	if !ok {
		return false
	}
	if d.deferred != "" {
		return true
	}
	c.After, c.Private = planned, resp.Private
	c.Legacy = resp.Legacy
	d.sensitive()
	return true
}

// request calls the provider's Plan.
func (d *draft) request(ctx context.Context, prior, config cty.Value, private []byte) (resp providers.PlanResponse, proposed cty.Value) {
	proposed = contract.Proposed(d.ty.Schema.Block, prior, config)
	over := d.p.slow(d.inst.Addr)
	resp = d.owner.Server.Plan(ctx, providers.PlanRequest{
		Type: d.inst.Addr.Type, Prior: prior, Proposed: proposed, Config: config,
		Private: private, Meta: NoMeta(d.owner.Schema), MayDefer: true,
	}, slices.Concat(d.marked.Secret(), d.change.BeforeSensitive))
	over()
	return resp, proposed
}

// accept reports the provider's diagnostics, and checks its answer against the
// rules.
func (d *draft) accept(resp providers.PlanResponse, prior, proposed, config cty.Value) (cty.Value, bool) {
	block := d.ty.Schema.Block
	if !d.reportDiagnostics(resp.Diagnostics) {
		d.p.refuse(d, proposed)
		return cty.DynamicVal, false
	}
	if d.deferred = deferredByProvider(resp.Deferred); d.deferred != "" {
		return resp.Planned, true
	}
	errs := contract.CheckConforms(d.ty.Implied, resp.Planned)
	if len(errs) == 0 && !resp.Legacy {
		errs = contract.CheckPlanned(block, prior, config, resp.Planned)
	}
	for _, err := range errs {
		d.t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Provider produced invalid plan",
			Detail:  fmt.Sprintf("The provider %s planned an invalid value for %s: %s. This is a mistake in the provider; please report it to its makers.", d.owner.Source, d.inst.Addr, Describe(err)),
			Subject: d.inst.Resource.Decl.Range.Ptr(),
		})
	}
	return d.ty.Share(resp.Planned), len(errs) == 0
}

// slow sends an event when planning an object takes longer than a moment: a
// provider may be observing a machine. The caller calls over at the end.
func (p *planner) slow(addr address.Instance) (over func()) {
	const moment = time.Second
	began, said := time.Now(), make(chan struct{})
	timer := time.AfterFunc(moment, func() {
		defer close(said)
		p.emit(Event{Kind: PlanSlow, Addr: addr, Elapsed: time.Since(began)})
	})
	return func() {
		if !timer.Stop() {
			<-said
			p.emit(Event{Kind: PlanDone, Addr: addr, Elapsed: time.Since(began)})
		}
	}
}

// sensitive names what is sensitive in the planned object: what the
// configuration marks and what the schema does.
func (d *draft) sensitive() {
	paths := slices.Clone(d.marked.Sensitive)
	for _, path := range d.ty.Sensitive(d.change.After) {
		if !slices.ContainsFunc(paths, path.Equals) {
			paths = append(paths, path)
		}
	}
	d.change.AfterSensitive = paths
}

// stored returns the paths that exist in stored objects: whether a write-only
// argument is sensitive makes no difference to an object that does not have it.
func (d *draft) stored(paths []cty.Path) []cty.Path {
	return slices.DeleteFunc(slices.Clone(paths), func(p cty.Path) bool { return contract.IsWriteOnly(d.ty.Schema.Block, p) })
}

// triggered reports whether something that replace_triggered_by names is
// updated or replaced.
func (d *draft) triggered(exprs []hcl.Expression) (changes, ok bool) {
	ok = true
	for _, expr := range exprs {
		named, rest, fine := d.t.Trigger(d.inst, expr)
		ok = ok && fine
		for _, inst := range named {
			changes = changes || d.p.touches(inst.Addr, rest)
		}
	}
	return changes, ok
}

// touches reports whether the planned change of an instance concerns what the
// rest of a reference names. An object that is made only now replaces nothing.
func (p *planner) touches(addr address.Instance, rest hcl.Traversal) bool {
	p.mu.Lock()
	it := p.items[addr]
	p.mu.Unlock()
	if it == nil || it.change.Action != Update && !it.change.Action.Replaces() {
		return false
	}
	if len(rest) == 0 {
		return true
	}
	before, d1 := rest.TraverseRel(it.change.Before)
	after, d2 := rest.TraverseRel(it.change.After)
	if d1.HasErrors() || d2.HasErrors() {
		return d1.HasErrors() != d2.HasErrors()
	}
	return !before.RawEquals(after)
}

func samePaths(a, b []cty.Path) bool {
	if len(a) != len(b) {
		return false
	}
	for _, p := range a {
		if !slices.ContainsFunc(b, p.Equals) {
			return false
		}
	}
	return true
}

// NoMeta is the provider_meta of a call where the configuration has none.
func NoMeta(s *providers.Schema) cty.Value {
	if s.Meta == nil {
		return cty.NullVal(cty.EmptyObject)
	}
	return cty.NullVal(s.Meta.ImpliedType())
}
