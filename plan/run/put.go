package run

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// target is what a put aims at: the planned values, made definite.
type target struct {
	prior, config, planned cty.Value
	private                []byte
	sensitive              []cty.Path
	legacy                 bool
}

// put creates or updates the object.
func (o *operation) put() bool {
	c := o.change
	aim := target{prior: c.Before, config: c.Config, planned: c.After, private: c.Private, sensitive: c.AfterSensitive, legacy: c.Legacy}
	if o.action == plan.Create {
		aim.prior = cty.NullVal(o.ty.Implied)
	}
	if c.Config == cty.NilVal && !o.planAgain(&aim) {
		return false
	}
	if !o.preconditions() {
		return false
	}
	if o.action == plan.Update && aim.planned.RawEquals(aim.prior) && samePaths(c.BeforeSensitive, aim.sensitive) {
		// The unknown values turned out to equal the observed ones.
		return o.x.restate(c, o.storedAs("")) && o.finish(aim.planned, aim.sensitive)
	}
	in := o.intent(state.Update)
	in.Private, in.Sensitive = aim.private, aim.sensitive
	if o.action == plan.Create {
		in.Action = state.Create
	}
	if c.Action == plan.CreateThenDelete {
		in.DeposeTo = o.depose()
	}
	if !o.ty.Schema.NoEffect { // of the others nothing is ever looked for
		var err error
		if in.Planned, err = encode(aim.planned, o.ty.Implied); err != nil {
			return o.fail("Planned value cannot be encoded", fmt.Sprintf("%s: %s.", c.Addr, err))
		}
	}
	if !o.announce(in) {
		return false
	}
	resp := o.owner.Server.Apply(o.call(in.ID), providers.ApplyRequest{
		Type: c.Addr.Type, Prior: aim.prior, Planned: aim.planned, Config: aim.config, Private: aim.private, Meta: plan.NoMeta(o.owner.Schema),
	}, o.sensitive())
	return o.applied(in, aim, resp)
}

// planAgain evaluates the configuration, whose values are there now, asks the
// provider again and refuses an answer that contradicts the plan.
func (o *operation) planAgain(aim *target) bool {
	c := o.change
	config, marked, ok := o.config()
	if !ok {
		return false
	}
	lifecycle, ok := o.inst.Lifecycle(o.t)
	if !ok {
		o.reason = "Invalid configuration"
		return false
	}
	if !o.reportDiagnostics(o.owner.Server.ValidateResource(o.x.ctx, c.Addr.Type, config, marked.Secret())) {
		return false
	}
	block := o.ty.Schema.Block
	ignored := plan.IgnoreChanges(config, aim.prior, lifecycle, block)
	var private []byte
	if o.action == plan.Update {
		private = c.PriorPrivate
	}
	resp := o.owner.Server.Plan(o.call(""), providers.PlanRequest{
		Type: c.Addr.Type, Prior: aim.prior, Proposed: contract.Proposed(block, aim.prior, ignored), Config: ignored,
		Private: private, Meta: plan.NoMeta(o.owner.Schema),
	}, o.sensitive())
	if !o.reportDiagnostics(resp.Diagnostics) {
		return false
	}
	errs := contract.CheckConforms(o.ty.Implied, resp.Planned)
	if len(errs) == 0 && !resp.Legacy {
		stored, _ := contract.WithoutWriteOnly(block, resp.Planned) // no message may show the rest
		errs = append(contract.CheckPlanned(block, aim.prior, ignored, resp.Planned), contract.CheckApplied(block, c.After, stored)...)
	}
	if o.action == plan.Update && len(errs) == 0 {
		for _, path := range contract.FilterReplace(resp.Replace, aim.prior, resp.Planned) {
			errs = append(errs, fmt.Errorf("%s now calls for a new object", plan.PathString(path)))
		}
	}
	if len(errs) > 0 {
		o.contradicts("Provider produced inconsistent final plan", "while it was applied, planned another result than "+
			"shown", errs, "")
		return false
	}
	aim.config, aim.planned, aim.private, aim.legacy = config, resp.Planned, resp.Private, resp.Legacy
	aim.sensitive = append(marked.Sensitive, missing(o.ty.Sensitive(resp.Planned), marked.Sensitive)...)
	return true
}

func (o *operation) contradicts(summary, what string, errs []error, next string) {
	detail := fmt.Sprintf("The provider %s, %s for %s:", o.owner.Source, what, o.change.Addr)
	for i, err := range errs {
		if i == 5 {
			detail += fmt.Sprintf("\n  - and %d more", len(errs)-i)
			break
		}
		detail += "\n  - " + plan.Describe(err)
	}
	o.fail(summary, detail+"\nThis is a mistake in the provider; please report it to its makers."+next)
}

// applied checks and records what a create or update has left.
func (o *operation) applied(in state.Intent, aim target, resp providers.ApplyResponse) bool {
	c := o.change
	ok := o.reportDiagnostics(resp.Diagnostics)
	if resp.Lost {
		return o.endUnknown()
	}
	if o.checkConformity(resp.State) {
		return o.endUnknown()
	}
	faulty := !ok // the provider reports an error: a created object cannot be trusted
	left, secret := contract.WithoutWriteOnly(o.ty.Schema.Block, resp.State)
	switch {
	case ok && left.IsNull():
		ok = o.fail("Provider returned no object", fmt.Sprintf("The provider %s says that %s was applied and returns nothing.", o.owner.Source, c.Addr))
	case ok && !left.IsWhollyKnown():
		ok = o.fail("Provider returned unknown values", fmt.Sprintf("The provider %s still returns unknown values for %s after applying it.", o.owner.Source, c.Addr))
	case ok && !aim.legacy:
		if errs := contract.CheckApplied(o.ty.Schema.Block, aim.planned, left); len(errs) > 0 {
			o.contradicts("Provider produced inconsistent result", "after applying, returned another result than planned", errs, "")
			ok = false
		}
	}
	left = contract.UnknownsToNull(left)
	if secret && ok {
		ok = o.fail("Provider returned a write-only value", fmt.Sprintf("The provider %s returned a value for a write-only attribute of %s, which must not be stored; it is left out. This is a mistake in the provider; please report it to its makers.", o.owner.Source, c.Addr))
	}
	result := state.Result{Intent: in.ID, Durable: in.Durable, Err: o.reason}
	if !left.IsNull() {
		sensitive := aim.sensitive
		if !ok { // old values may be left, which are as sensitive as they were
			sensitive = slices.Concat(sensitive, missing(c.BeforeSensitive, sensitive))
		}
		object, err := o.object("", left, resp.Private, sensitive)
		if err != nil {
			o.fail("Object cannot be stored", fmt.Sprintf("%s: %s.", c.Addr, err))
			return o.endUnknown()
		}
		if o.action == plan.Create && faulty && !resp.Keep && !o.keep.Load() {
			object = object.WithTainted(true)
		}
		if old := o.storedAs(""); old != nil && o.action == plan.Update && !ok {
			object = object.WithMeta(func(m *state.Meta) { // it may have the old references and the new ones
				m.Tainted = old.Tainted
				m.Dependencies = slices.Compact(slices.Sorted(slices.Values(slices.Concat(old.Dependencies, c.Dependencies))))
			})
		}
		result.Changes = append(result.Changes, state.Change{Address: c.Addr, Object: object})
		if in.DeposeTo != "" {
			result.Changes = append(result.Changes, state.Change{Address: c.Addr, Deposed: in.DeposeTo, Object: o.storedAs("")})
		}
	}
	if !o.settle(result, ok) {
		return false
	}
	return o.finish(left, aim.sensitive)
}

// checkConformity reports, with a diagnostic, whether the result of a call is not an object
// of the type. Nothing can be learned from it, so that the operation is as lost
// as one without an answer. That there is nothing fits every type.
func (o *operation) checkConformity(left cty.Value) bool {
	if left != cty.NilVal && !left.IsMarked() && left.IsNull() {
		return false
	}
	errs := contract.CheckConforms(o.ty.Implied, left)
	if len(errs) > 0 {
		o.contradicts("Provider returned invalid object", "after applying, returned an object that does not fit its schema", errs,
			" The next plan or apply finds out what was done.")
	}
	return len(errs) > 0
}

// depose draws the key under which the old object waits for its deletion.
func (o *operation) depose() string {
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	key := hex.EncodeToString(b[:])
	o.x.mu.Lock()
	defer o.x.mu.Unlock()
	o.x.deposed[o.change] = key
	return key
}

// finish checks the postconditions and then publishes the value to the cells
// that wait for it: an object that fails them is not used, not even by an
// output.
func (o *operation) finish(v cty.Value, sensitive []cty.Path) bool {
	value := lang.Marked{Sensitive: sensitive}.Apply(v)
	if !o.conditions(value) {
		return false
	}
	o.x.set(o.change.Addr, value)
	return true
}

// conditions decides the postconditions, and of an unchanged object the
// preconditions too. They wait when the object is unfinished or the run is
// being stopped.
func (o *operation) conditions(value cty.Value) bool {
	if o.keep.Load() || o.x.stopped() {
		return true
	}
	if o.op.Kind == plan.Verify && !o.preconditions() {
		return false
	}
	checks := o.inst.Resource.Decl.Lifecycle.Postconditions
	if !o.t.Conditions(eval.Context{Instance: o.inst, Self: value}, checks, "Resource postcondition failed") {
		o.reason = "Resource postcondition failed"
		return false
	}
	return true
}

func (o *operation) preconditions() bool {
	checks := o.inst.Resource.Decl.Lifecycle.Preconditions
	if !o.t.Conditions(eval.Context{Instance: o.inst}, checks, "Resource precondition failed") {
		o.reason = "Resource precondition failed"
		return false
	}
	return true
}

// config evaluates the instance's configuration, which must be wholly known
// now.
func (o *operation) config() (cty.Value, lang.Marked, bool) {
	v, _, ok := o.inst.Config(o.t)
	if !ok {
		o.reason = "Invalid configuration"
		return cty.DynamicVal, lang.Marked{}, false
	}
	plain, marked, _ := lang.Unmark(v)
	o.secret = marked.Secret()
	if !o.inst.Persistable(o.t, o.ty, &marked) {
		o.reason = "Invalid configuration"
		return cty.DynamicVal, lang.Marked{}, false
	}
	if !plain.IsWhollyKnown() {
		o.t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Configuration still unknown",
			Detail: fmt.Sprintf("%s refers to something that is not known even now. This is a fault in stoke or in the "+
				"provider of an object that it refers to.", o.change.Addr),
			Subject: o.inst.Resource.Decl.Range.Ptr(),
		})
		o.reason = "Configuration still unknown"
		return cty.DynamicVal, lang.Marked{}, false
	}
	return plain, marked, true
}

func missing(paths, from []cty.Path) []cty.Path {
	var out []cty.Path
	for _, p := range paths {
		if !contains(from, p) {
			out = append(out, p)
		}
	}
	return out
}

func contains(paths []cty.Path, p cty.Path) bool {
	for _, q := range paths {
		if q.Equals(p) {
			return true
		}
	}
	return false
}

func samePaths(a, b []cty.Path) bool {
	return len(a) == len(b) && len(missing(a, b)) == 0
}
