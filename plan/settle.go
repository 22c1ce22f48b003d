package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Settle finds out what became of operations that were announced and never
// reported, because their run was killed: by reading, never by guessing. The
// results are recorded in the journal. It comes before every plan.
func Settle(ctx context.Context, r Request, j *state.Journal, intents []state.Intent) hcl.Diagnostics {
	r.Mode = Destroy // provider configurations read the state
	r.State = j.State()
	p, diags := newPlanner(ctx, r)
	if diags.HasErrors() {
		return diags
	}
	defer p.ev.Close()
	defer p.watchCancel(ctx)()
	p.ev.Do(func(t *eval.Task) {
		t.ForEach(len(intents), func(t *eval.Task, i int) { p.settle(t, j, intents[i]) })
	})
	return append(diags, eval.SortDiagnostics(p.ev.Diagnostics())...)
}

func (p *planner) settle(t *eval.Task, j *state.Journal, in state.Intent) {
	owner, ok := p.ev.ProviderAt(t, in.Provider, in.Address.String())
	if !ok {
		return
	}
	rs := owner.Schema.Resources[in.Address.Type]
	if rs == nil {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Resource type not supported",
			Detail: fmt.Sprintf("An interrupted operation on %s has to be settled, but the provider %s has no resource type %q.", in.Address, owner.Source, in.Address.Type),
		})
		return
	}
	ty := owner.Type(rs)
	result, text, ok := state.Result{}, "", true
	switch {
	case rs.NoEffect:
		text = "was not carried out" // it exists only in the state, and the state does not have it
	case in.Action == state.Create:
		result, text, ok = p.settleCreate(t, owner, ty, in)
	default:
		result, text, ok = p.settleKnown(t, owner, ty, in)
	}
	if !ok {
		return
	}
	result.Intent, result.Durable = in.ID, !rs.NoEffect
	if err := j.Result(p.ctx, result); err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Failed to write the journal", Detail: err.Error()})
		return
	}
	p.emit(Event{Kind: Settled, Addr: in.Address, Deposed: in.Deposed, Text: fmt.Sprintf("interrupted %s %s", in.Action, text)})
}

// settleCreate asks whether an announced object was made. Only an object with
// the operation's mark is adopted.
func (p *planner) settleCreate(t *eval.Task, owner *eval.Provider, ty *eval.Type, in state.Intent) (state.Result, string, bool) {
	if !owner.Schema.Marks {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagWarning, Summary: "An object may exist unrecorded",
			Detail: fmt.Sprintf("The creation of %s was interrupted, and its provider cannot tell whether the object was made. Look for it; if it is there, take it over with:\n\n  import {\n    to = %s\n    id = \"…\"\n  }", in.Address, in.Address),
		})
		return state.Result{}, "has an unknown outcome", true
	}
	planned, err := ctyjson.Unmarshal(in.Planned, ty.Implied)
	if err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unreadable intent in the journal", Detail: fmt.Sprintf("%s: %s.", in.Address, err)})
		return state.Result{}, "", false
	}
	found, private, ok := p.ask(t, owner, in, object{value: planned, private: in.Private, sensitive: in.Sensitive}, true)
	if !ok {
		return state.Result{}, "", false
	}
	if found.IsNull() {
		return state.Result{}, "made nothing", true
	}
	object, err := state.NewObject(found, ty.Implied, state.Meta{
		Provider: in.Provider, SchemaVersion: ty.Schema.Version, Private: private, Sensitive: in.Sensitive,
		Dependencies: in.Dependencies, CreateBeforeDestroy: in.CreateBeforeDestroy,
	})
	if err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider returned invalid object", Detail: fmt.Sprintf("%s: %s.", in.Address, err)})
		return state.Result{}, "", false
	}
	changes := []state.Change{{Address: in.Address, Object: object}}
	if in.DeposeTo != "" {
		if old := p.prior.Current(in.Address); old != nil {
			changes = append(changes, state.Change{Address: in.Address, Deposed: in.DeposeTo, Object: old})
		}
	}
	return state.Result{Changes: changes}, "was carried out; the object is taken over", true
}

// settleKnown reads the object that an interrupted update or delete was about.
func (p *planner) settleKnown(t *eval.Task, owner *eval.Provider, ty *eval.Type, in state.Intent) (state.Result, string, bool) {
	stored := p.prior.Current(in.Address)
	if in.Deposed != "" {
		stored = p.prior.Deposed(in.Address)[in.Deposed]
	}
	if stored == nil {
		return state.Result{}, "concerns an object that is gone", true
	}
	value, diags := Upgraded(p.ctx, owner.Server, in.Address.Type, stored, ty)
	t.Report(diags...)
	if diags.HasErrors() {
		return state.Result{}, "", false
	}
	found, private, ok := p.ask(t, owner, in, object{value: value, private: stored.Private, sensitive: slices.Concat(stored.Sensitive, in.Sensitive)}, false)
	if !ok {
		return state.Result{}, "", false
	}
	change := state.Change{Address: in.Address, Deposed: in.Deposed}
	if found.IsNull() {
		return state.Result{Changes: []state.Change{change}}, "was carried out; the object is gone", true
	}
	meta := stored.Meta
	if in.Action == state.Update {
		meta = updatedMeta(meta, in)
	}
	meta.Private, meta.SchemaVersion = private, ty.Schema.Version
	object, err := state.NewObject(found, ty.Implied, meta)
	if err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider returned invalid object", Detail: fmt.Sprintf("%s: %s.", in.Address, err)})
		return state.Result{}, "", false
	}
	change.Object = object
	return state.Result{Changes: []state.Change{change}}, "was looked at; the object is there", true
}

// updatedMeta returns the metadata of an object after an update with an unknown
// result. The object's values do not tell, either: the update may have done a
// part of its work, or have changed only sensitive values.
//
// So the object may hold old values and new ones, and is as sensitive as both
// were; the next apply takes away what is too much. It may refer to what it
// referred to and to what it was to refer to, and has to go before all of that.
// The two together make no circle: what an update newly refers to is finished
// before it begins. The order of a replacement
// comes from the configuration, as for an unchanged object.
func updatedMeta(m state.Meta, in state.Intent) state.Meta {
	for _, path := range in.Sensitive {
		if !slices.ContainsFunc(m.Sensitive, path.Equals) {
			m.Sensitive = append(slices.Clip(m.Sensitive), path)
		}
	}
	m.Dependencies = slices.Compact(slices.Sorted(slices.Values(slices.Concat(m.Dependencies, in.Dependencies))))
	m.CreateBeforeDestroy, m.Provider = in.CreateBeforeDestroy, in.Provider
	return m
}

func (p *planner) ask(t *eval.Task, owner *eval.Provider, in state.Intent, known object, settling bool) (cty.Value, []byte, bool) {
	call := &providers.Call{Address: in.Address.String(), Stopping: p.req.Stopping, Settling: settling}
	if settling {
		call.Operation = in.ID
	}
	resp := owner.Server.Read(providers.WithCall(p.ctx, call), providers.ReadRequest{
		Type: in.Address.Type, State: known.value, Private: known.private, Meta: NoMeta(owner.Schema),
	}, known.sensitive)
	t.Report(eval.FromProvider(resp.Diagnostics, nil, hcl.Range{}, in.Address.String())...)
	rs := owner.Schema.Resources[in.Address.Type]
	if resp.Diagnostics.HasErrors() || !checkRead(t, owner, in.Address, owner.Type(rs).Implied, resp.State) {
		return resp.State, resp.Private, false
	}
	resp.State, _ = contract.WithoutWriteOnly(rs.Block, resp.State)
	return resp.State, resp.Private, true
}
