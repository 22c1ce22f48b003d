package run

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Apply carries the plan out. Everything that was done is in the journal in any
// case; the report has the rest, with reasons. When ctx ends, calls in flight
// have to return at once.
func Apply(ctx context.Context, r Request) (*Report, hcl.Diagnostics) {
	if r.Parallelism <= 0 {
		r.Parallelism = 10
	}
	r.Listen = plan.OneAtATime(r.Listen)
	x := &runner{
		req: r, ctx: ctx, plan: r.Plan,
		values:  make(map[address.Instance]cty.Value, len(r.Plan.Changes)),
		deposed: map[*plan.Change]string{},
		report:  &Report{},
	}
	x.ev = eval.New(ctx, eval.Options{
		Root: r.Root, Variables: r.variables(), Catalogue: r.Catalogue, Resolver: x,
		Parallelism: r.Parallelism, Workspace: r.Plan.Workspace, PlanTime: r.Plan.Made,
	})
	defer x.ev.Close()
	stop := context.AfterFunc(ctx, func() { x.ev.Stop(context.WithoutCancel(ctx)) })
	defer stop()

	x.start()
	x.begin()
	newPool(x, r.Plan.Ops).run(r.Parallelism)
	x.outputs()
	x.checks()
	diags := eval.SortDiagnostics(x.ev.Diagnostics())
	x.report.Errors = diags.HasErrors()
	return x.report, diags
}

// begin passes the planned instances to the linked-in providers that want them.
func (x *runner) begin() {
	planned := map[string][]providers.PlannedInstance{}
	for _, c := range x.plan.Changes {
		source, _, ok := eval.ParseProviderAddr(c.Provider)
		if ok && c.Deposed == "" && x.req.Catalogue[source].Begin != nil {
			planned[source] = append(planned[source], providers.PlannedInstance{Address: c.Addr.String(), Source: source, Type: c.Addr.Type, Prior: c.Before, Planned: c.After})
		}
	}
	for source, instances := range planned {
		x.req.Catalogue[source].Begin(x.ctx, instances)
	}
}

// runner is the resolver of the apply phase: instances have the values that
// came of their operations.
type runner struct {
	req  Request
	ctx  context.Context
	plan *plan.Plan
	ev   *eval.Evaluator

	mu      sync.Mutex
	values  map[address.Instance]cty.Value // marked; objects that are there
	deposed map[*plan.Change]string        // where replaced objects went
	report  *Report
	failed  bool
	planned map[address.Instance]bool // what a plan with exclusions covers
}

// Value gives what an operation has left, or what was there unchanged.
func (x *runner) Value(_ context.Context, t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	v, ok := x.value(inst.Addr)
	if ok || x.plan.Mode != plan.Destroy && !x.leftOut(inst.Addr) {
		return v, ok
	}
	// Provider configurations may read what is about to go, and expressions
	// what the plan leaves out.
	ty, ok := inst.Resource.Type(t)
	if !ok {
		return cty.DynamicVal, false
	}
	if o := x.req.Journal.State().Current(inst.Addr); o != nil {
		if v, err := o.Value(ty.Implied); err == nil {
			return lang.Marked{Sensitive: o.Sensitive}.Apply(v), true
		}
	}
	return cty.UnknownVal(ty.Implied), true
}

// leftOut reports whether the plan excludes the instance.
func (x *runner) leftOut(addr address.Instance) bool {
	if len(x.plan.Excludes) == 0 {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.planned == nil {
		x.planned = make(map[address.Instance]bool, len(x.plan.Changes))
		for _, c := range x.plan.Changes {
			x.planned[c.Addr] = true
		}
		for _, d := range x.plan.Deferred {
			x.planned[d.Change.Addr] = true
		}
	}
	return !x.planned[addr]
}

// start records what planning read and takes over the values of everything
// that stays as it is.
func (x *runner) start() {
	if len(x.plan.Moves) > 0 && !x.relocate() {
		return
	}
	x.forget()
	now := x.req.Journal.State()
	for _, c := range x.plan.Changes {
		if c.Action != plan.NoOp || c.Deposed != "" {
			continue
		}
		if c.Outdated {
			x.values[c.Addr] = asStored(now.Current(c.Addr), c)
			continue
		}
		x.values[c.Addr] = lang.Marked{Sensitive: c.AfterSensitive}.Apply(c.After)
		if c.After.IsNull() {
			x.values[c.Addr] = cty.UnknownVal(c.After.Type()) // refresh found it gone; it no longer exists; its users keep their values
		}
		// References may have changed though the values have not.
		if o := now.Current(c.Addr); x.plan.Mode == plan.Normal && c.Restates(o) {
			x.restate(c, o)
		}
	}
	for _, c := range x.plan.Refreshed {
		if c.Outdated {
			continue // the state knows something newer
		}
		change := state.Change{Address: c.Addr, Deposed: c.Deposed}
		if !c.After.IsNull() {
			var meta state.Meta
			if o := storedAt(now, c.Addr, c.Deposed); o != nil {
				meta = o.Meta
			}
			meta.Provider, meta.SchemaVersion, meta.Sensitive, meta.Private = c.Provider, c.Schema.Version, c.AfterSensitive, c.Private
			meta.Dependencies, meta.CreateBeforeDestroy = c.Dependencies, c.CreateBeforeDestroy
			object, err := state.NewObject(c.After, c.Schema.Block.ImpliedType(), meta)
			if err != nil {
				x.reportBroken(c.Addr, err)
				continue
			}
			change.Object = object
		}
		if x.record(state.Result{Changes: []state.Change{change}}) {
			x.imported(c)
		}
	}
}

// restate stores how an object relates to others, whose values stay as they
// are.
func (x *runner) restate(c *plan.Change, o *state.Object) bool {
	if !c.RelatesOtherwise(o) {
		return true
	}
	return x.record(state.Result{Changes: []state.Change{{Address: c.Addr, Object: o.WithMeta(func(m *state.Meta) {
		m.Dependencies, m.CreateBeforeDestroy = c.Dependencies, c.CreateBeforeDestroy
	})}}})
}

// asStored is an unchanged object in its present version, changed by another
// run since planning.
func asStored(o *state.Object, c *plan.Change) cty.Value {
	ty := c.After.Type()
	if o == nil {
		return cty.UnknownVal(ty)
	}
	v, err := o.Value(ty)
	if err != nil {
		return cty.UnknownVal(ty)
	}
	return lang.Marked{Sensitive: o.Sensitive}.Apply(v)
}

// record writes a result; an error is reported once and ends the run.
func (x *runner) record(r state.Result) bool {
	if err := x.req.Journal.Result(x.ctx, r); err != nil {
		x.unwritable(err)
		return false
	}
	return true
}

func (x *runner) unwritable(err error) {
	x.ev.ReportOnce("journal", &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Failed to write the journal",
		Detail: "Nothing more is started, because it could not be recorded: " + err.Error() + ".",
	})
	x.mu.Lock()
	x.failed = true
	x.mu.Unlock()
}

func (x *runner) reportBroken(addr address.Instance, err error) {
	x.ev.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Object cannot be stored", Detail: addr.String() + ": " + err.Error() + "."})
}

// stopped reports whether nothing more may be started.
func (x *runner) stopped() bool {
	if x.ctx.Err() != nil {
		return true
	}
	select {
	case <-x.req.Stopping:
		return true
	default:
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

// outputs evaluates the root module's outputs and records them. An output whose
// value is unknown keeps its old value.
func (x *runner) outputs() {
	if len(x.plan.Outputs) == 0 {
		return
	}
	before := x.req.Journal.State().Outputs()
	after := make(map[string]state.Output, len(x.plan.Outputs))
	maps.Copy(after, before) // the plan may leave some out, or know nothing of them
	x.ev.Do(func(t *eval.Task) {
		for _, c := range x.plan.Outputs {
			old, had := before[c.Name]
			if c.Action == plan.Delete {
				delete(after, c.Name)
				if x.plan.Mode == plan.Destroy && !x.report.Complete() && had {
					after[c.Name] = old
				}
				continue
			}
			if c.Deferred {
				if had {
					after[c.Name] = old
				}
				continue
			}
			if c.Outdated(old, had) || c.Action == plan.NoOp && len(x.plan.Targets) > 0 {
				continue // it may rest on what the plan leaves out
			}
			v, ok := x.ev.Root().Output(t, c.Name)
			v, _, _ = lang.Unmark(v)
			switch {
			case ok && v.IsWhollyKnown() && v.IsNull():
				delete(after, c.Name)
			case ok && v.IsWhollyKnown():
				after[c.Name] = state.Output{Value: v, Sensitive: c.Sensitive}
			case had:
				after[c.Name] = old
			}
		}
	})
	same := len(before) == len(after)
	for name, o := range after {
		b, had := before[name]
		same = same && had && b.Sensitive == o.Sensitive && b.Value.RawEquals(o.Value)
	}
	if !same {
		x.record(state.Result{Outputs: after})
	}
}

// noteOutcome notes how an operation came out.
func (x *runner) noteOutcome(o Outcome) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.report.Outcomes = append(x.report.Outcomes, o)
}

// count adds a call that succeeded to the totals, whatever its conditions say.
func (x *runner) count(a plan.Action) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch a {
	case plan.Create:
		x.report.Added++
	case plan.Update:
		x.report.Changed++
	case plan.Delete:
		x.report.Destroyed++
	}
}

func (x *runner) emit(e plan.Event) { x.req.Listen(e) }

// Operations that run in parallel use the values through value and set.
func (x *runner) value(addr address.Instance) (cty.Value, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v, ok := x.values[addr]
	return v, ok
}

func (x *runner) set(addr address.Instance, v cty.Value) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.values[addr] = v
}

// action is what an operation does, as people name it.
func action(op plan.Op, c *plan.Change) plan.Action {
	switch op.Kind {
	case plan.Remove:
		return plan.Delete
	case plan.ReadData:
		return plan.Read
	case plan.Put:
		if c.Action == plan.Update {
			return plan.Update
		}
		return plan.Create
	}
	return plan.NoOp
}

// elapsedSince is a duration for people.
func elapsedSince(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }
