package run

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// operation is one operation in progress.
type operation struct {
	x      *runner
	t      *eval.Task
	op     plan.Op
	change *plan.Change
	action plan.Action
	inst   *eval.Instance // what the configuration wants; nil where it wants nothing
	owner  *eval.Provider
	ty     *eval.Type
	began  time.Time
	reason string      // why it failed
	keep   atomic.Bool // the provider says that the object is unfinished but good
	secret []cty.Path  // what is sensitive in the configuration, where it was evaluated again
}

// do carries out one operation and reports whether it succeeded.
func (x *runner) do(op plan.Op) (ok bool) {
	c := x.plan.Changes[op.Change]
	x.ev.Do(func(t *eval.Task) {
		o := &operation{x: x, t: t, op: op, change: c, action: action(op, c), began: time.Now()}
		ok = o.prepare()
		if ok {
			switch op.Kind {
			case plan.Put:
				ok = o.put()
			case plan.Remove:
				ok = o.remove()
			case plan.ReadData:
				ok = o.read()
			case plan.Verify:
				v, _ := x.value(c.Addr)
				ok = o.conditions(v)
			}
		}
		if op.Kind == plan.Verify && ok {
			return
		}
		row := Outcome{Addr: c.Addr, Deposed: c.Deposed, Action: o.action, Elapsed: elapsedSince(o.began)}
		if !ok {
			row.Status, row.Because = Failed, o.reason
		}
		x.noteOutcome(row)
	})
	return ok
}

// prepare finds instance, provider and type.
func (o *operation) prepare() bool {
	c, ok := o.change, false
	if o.op.Kind != plan.Remove || c.Action.Replaces() {
		o.inst = o.x.ev.Instance(o.t, c.Addr)
	}
	if o.inst != nil {
		o.owner, ok = o.inst.Resource.Provider(o.t)
	} else {
		o.owner, ok = o.x.ev.ProviderAt(o.t, c.Provider, c.Addr.String())
	}
	if !ok {
		return o.fail("Provider not available", "")
	}
	if o.inst == nil && o.op.Kind != plan.Remove {
		return o.fail("Configuration changed since the plan", fmt.Sprintf("%s is no longer in the configuration. Make a new plan.", c.Addr))
	}
	schemas := o.owner.Schema.Resources
	if o.op.Kind == plan.ReadData || o.op.Kind == plan.Verify && c.Addr.Mode != 0 {
		schemas = o.owner.Schema.Data
	}
	rs := schemas[c.Addr.Type]
	if rs == nil {
		return o.fail("Resource type not supported", fmt.Sprintf("The provider %s no longer has %q.", o.owner.Source, c.Addr.Type))
	}
	o.ty = o.owner.Type(rs)
	return true
}

// fail reports an error of the engine; without a detail, something has been
// reported already.
func (o *operation) fail(summary, detail string) bool {
	o.reason = summary
	if detail != "" {
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail}
		if o.inst != nil {
			d.Subject = o.inst.Resource.Decl.Range.Ptr()
		}
		o.t.Report(d)
	}
	return false
}

// reportDiagnostics reports the provider's diagnostics and returns whether none is an error.
func (o *operation) reportDiagnostics(diags providers.Diagnostics) bool {
	var body hcl.Body
	var rng hcl.Range
	if o.inst != nil {
		body, rng = o.inst.Resource.Decl.Body, o.inst.Resource.Decl.Range
	}
	about := o.change.Addr.String()
	o.t.Report(eval.AddSubject(about, eval.FromProvider(diags, body, rng, about))...)
	for _, d := range diags {
		if d.Severity == providers.Error {
			o.reason = d.Summary
			return false
		}
	}
	return true
}

// remove deletes the object, or the deposed one of a replacement.
func (o *operation) remove() bool {
	c := o.change
	deposed := c.Deposed
	if c.Action == plan.CreateThenDelete {
		o.x.mu.Lock()
		deposed = o.x.deposed[c]
		o.x.mu.Unlock()
	}
	in := o.intent(state.Delete)
	in.Deposed = deposed
	if !o.announce(in) {
		return false
	}
	null := cty.NullVal(o.ty.Implied)
	private := c.PriorPrivate
	if c.Action == plan.Delete {
		private = c.Private
	}
	resp := o.owner.Server.Apply(o.call(in.ID), providers.ApplyRequest{
		Type: c.Addr.Type, Prior: c.Before, Planned: null, Config: null, Private: private, Meta: plan.NoMeta(o.owner.Schema),
	}, o.sensitive())
	ok := o.reportDiagnostics(resp.Diagnostics)
	if resp.Lost || o.checkConformity(resp.State) {
		return o.endUnknown()
	}
	result := state.Result{Intent: in.ID, Durable: in.Durable, Err: o.reason}
	left := contract.UnknownsToNull(resp.State)
	switch {
	case ok && !left.IsNull():
		ok = o.fail("Provider returned an object after deletion", fmt.Sprintf("The provider %s says that %s was deleted and returns it all the same.", o.owner.Source, c.Addr))
	case ok:
		result.Changes = []state.Change{{Address: c.Addr, Deposed: deposed}}
	case left.IsNull():
		left = c.Before // a failed deletion has probably deleted nothing
	}
	if !ok {
		if object, err := o.object(deposed, left, resp.Private, c.BeforeSensitive); err == nil {
			if stored := o.storedAs(deposed); stored != nil { // the object keeps this attribute, whatever its replacement has
				object = object.WithMeta(func(m *state.Meta) {
					m.Tainted, m.Dependencies, m.CreateBeforeDestroy = stored.Tainted, stored.Dependencies, stored.CreateBeforeDestroy
				})
			}
			result.Changes = []state.Change{{Address: c.Addr, Deposed: deposed, Object: object}}
		}
	}
	return o.settle(result, ok)
}

// endUnknown ends an operation whose call broke off or said nothing that can be used:
// what it did is not known. Its intent stays open, so that the next run finds
// out by reading.
func (o *operation) endUnknown() bool {
	if o.reason == "" {
		o.fail("Provider call broke off", fmt.Sprintf("The result for %s is not known. The next plan or apply finds out.", o.change.Addr))
	}
	o.x.emit(plan.Event{Kind: plan.ApplyFailed, Addr: o.change.Addr, Deposed: o.change.Deposed, Action: o.action, Elapsed: elapsedSince(o.began), Text: o.reason})
	return false
}

func (o *operation) storedAs(deposed string) *state.Object {
	return storedAt(o.x.req.Journal.State(), o.change.Addr, deposed)
}

// storedAt is an object of a state: the current one, or that under a deposed
// key.
func storedAt(s *state.State, addr address.Instance, deposed string) *state.Object {
	if deposed != "" {
		return s.Deposed(addr)[deposed]
	}
	return s.Current(addr)
}

// read reads a data source. That a check's own cannot be read is a result of
// the check.
func (o *operation) read() bool {
	if o.inst.Resource.Decl.Check != "" {
		o.t.ReportAs(o.inst.Resource)
		return o.readData() || !o.x.stopped()
	}
	return o.readData()
}

func (o *operation) readData() bool {
	c := o.change
	config, marked, ok := o.config()
	if !ok {
		return false
	}
	if !o.reportDiagnostics(o.owner.Server.ValidateData(o.x.ctx, c.Addr.Type, config, marked.Secret())) || !o.preconditions() {
		return false
	}
	o.x.emit(plan.Event{Kind: plan.ApplyStart, Addr: c.Addr, Action: plan.Read})
	resp := o.owner.Server.ReadData(o.call(""), providers.ReadDataRequest{Type: c.Addr.Type, Config: config, Meta: plan.NoMeta(o.owner.Schema)}, o.sensitive())
	if !o.reportDiagnostics(resp.Diagnostics) {
		scoped := o.inst.Resource.Decl.Check != ""
		return o.settle(state.Result{}, scoped) && !scoped
	}
	sensitive := slices.Concat(marked.Sensitive, o.ty.Sensitive(resp.State), resp.Sensitive)
	object, err := o.object("", resp.State, nil, sensitive)
	if err != nil {
		return o.fail("Provider returned invalid object", fmt.Sprintf("%s: %s.", c.Addr, err))
	}
	result := state.Result{Changes: []state.Change{{Address: c.Addr, Object: object}}}
	return o.settle(result, true) && o.finish(resp.State, sensitive)
}

// sensitive is where the values of the provider's call may be sensitive.
func (o *operation) sensitive() []cty.Path {
	return slices.Concat(o.change.BeforeSensitive, o.change.AfterSensitive, o.secret)
}

// call is the context of the provider's call.
func (o *operation) call(id string) context.Context {
	c := o.change
	return providers.WithCall(o.x.ctx, &providers.Call{
		Operation: id, Address: c.Addr.String(), Stopping: o.x.req.Stopping,
		Progress: func(p providers.Progress) {
			o.x.emit(plan.Event{Kind: plan.ApplyProgress, Addr: c.Addr, Deposed: c.Deposed, Action: o.action, Elapsed: time.Since(o.began), Progress: p})
		},
		Keep: func() { o.keep.Store(true) },
	})
}

// intent is the announcement of the operation, with an id of its own.
func (o *operation) intent(a state.Action) state.Intent {
	c := o.change
	return state.Intent{
		ID: uuid.NewString(), Address: c.Addr, Action: a, Provider: c.Provider, SchemaVersion: o.ty.Schema.Version,
		Private: c.Private, Dependencies: c.Dependencies, CreateBeforeDestroy: c.CreateBeforeDestroy,
		Durable: !o.ty.Schema.NoEffect,
	}
}

// announce puts the intent into the journal and says so to whoever listens.
func (o *operation) announce(in state.Intent) bool {
	if err := o.x.req.Journal.Intent(o.x.ctx, in); err != nil {
		o.x.unwritable(err)
		o.reason = "Failed to write the journal"
		return false
	}
	e := plan.Event{Kind: plan.ApplyStart, Addr: o.change.Addr, Deposed: in.Deposed, Action: o.action}
	if o.action != plan.Create { // a new object has no id yet: Before is the replaced one
		e.ID = plan.Identity(o.change.Before)
	}
	o.x.emit(e)
	return true
}

// settle puts the result into the journal.
func (o *operation) settle(r state.Result, ok bool) bool {
	if !o.x.record(r) {
		o.reason, ok = "Failed to write the journal", false
	}
	if ok {
		o.x.count(o.action)
	}
	e := plan.Event{Kind: plan.ApplyDone, Addr: o.change.Addr, Deposed: o.change.Deposed, Action: o.action, Elapsed: elapsedSince(o.began), Text: o.reason}
	if !ok {
		e.Kind = plan.ApplyFailed
	}
	if len(r.Changes) > 0 && r.Changes[0].Object != nil {
		if v, err := r.Changes[0].Object.Value(o.ty.Implied); err == nil {
			e.ID = plan.Identity(v)
		}
	}
	o.x.emit(e)
	return ok
}

// object is v as it is stored after the operation: current, or under a deposed
// key.
func (o *operation) object(deposed string, v cty.Value, private []byte, sensitive []cty.Path) (*state.Object, error) {
	c := o.change
	var meta state.Meta
	if old := o.storedAs(deposed); old != nil && o.action != plan.Create && o.action != plan.Read {
		meta = old.Meta // the same object lives on
	}
	meta.Tainted = false
	meta.Provider, meta.SchemaVersion, meta.Sensitive, meta.Private = c.Provider, o.ty.Schema.Version, sensitive, private
	meta.Dependencies, meta.CreateBeforeDestroy = c.Dependencies, c.CreateBeforeDestroy
	return state.NewObject(v, o.ty.Implied, meta)
}

// encode is a planned state as an intent keeps it.
func encode(v cty.Value, ty cty.Type) ([]byte, error) {
	return ctyjson.Marshal(contract.UnknownsToNull(v), ty)
}
