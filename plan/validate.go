package plan

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/providers"
)

// Validate checks a configuration without looking at any state or at
// anything real: references, types, and what providers say of arguments.
// Variables have no values yet.
func Validate(ctx context.Context, r Request) hcl.Diagnostics {
	if r.Parallelism <= 0 {
		r.Parallelism = 10
	}
	ev := validating(ctx, &r)
	defer ev.Close()
	ev.Do(func(t *eval.Task) {
		ev.Root().Walk(t, func(t *eval.Task, m *eval.Module) {
			validateValues(t, m)
			resources := m.Resources()
			t.Each(len(resources), func(t *eval.Task, i int) { resources[i].Value(t) })
		})
		validateImports(t, ev)
		ev.Checks(t)
	})
	return eval.SortDiagnostics(ev.Diagnostics())
}

// validating makes an evaluator for validation; the caller closes it.
func validating(ctx context.Context, r *Request) *eval.Evaluator {
	return eval.New(ctx, eval.Options{
		Root: r.Root, Catalogue: r.Catalogue, Resolver: validator{}, Parallelism: r.Parallelism,
		Workspace: r.Workspace, Planning: true, Validating: true, Stopping: r.Stopping,
	})
}

// validateValues evaluates all of a module except its resources and calls.
func validateValues(t *eval.Task, m *eval.Module) {
	m.Everything(t)
	for _, ref := range m.ProviderBlocks() {
		m.Provider(t, ref)
	}
}

// validator gives instances the values that validation works with: objects of
// their type of which nothing is known, as the values of variables are not.
type validator struct{}

func (validator) Value(ctx context.Context, t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	config, ty, ok := inst.Config(t)
	if !ok {
		return cty.DynamicVal, false
	}
	owner, ok := inst.Resource.Provider(t)
	if !ok {
		return cty.DynamicVal, false
	}
	plain, marked, _ := lang.Unmark(config)
	if !inst.Persistable(t, ty, &marked) {
		return cty.DynamicVal, false
	}
	decl := inst.Resource.Decl
	var diags providers.Diagnostics
	if inst.Addr.Mode == address.Data {
		diags = owner.Server.ValidateData(ctx, inst.Addr.Type, plain, marked.Secret())
	} else {
		diags = owner.Server.ValidateResource(ctx, inst.Addr.Type, plain, marked.Secret())
	}
	t.Report(eval.About(inst.Addr.String(), eval.FromProvider(diags, decl.Body, decl.Range, inst.Addr.String()))...)
	if diags.HasErrors() {
		return cty.DynamicVal, false
	}
	if _, ok := inst.Lifecycle(t); !ok {
		return cty.DynamicVal, false
	}
	for _, expr := range decl.Lifecycle.ReplaceTriggeredBy {
		if _, _, ok := t.Trigger(inst, expr); !ok {
			return cty.DynamicVal, false
		}
	}
	value := marked.Apply(anyObject(ty.Implied))
	_, pre := t.Decide(eval.Context{Instance: inst}, decl.Lifecycle.Preconditions, "Resource precondition failed")
	_, post := t.Decide(eval.Context{Instance: inst, Self: value}, decl.Lifecycle.Postconditions, "Resource postcondition failed")
	return value, pre && post
}

// anyObject is an object of which only the type is known.
func anyObject(ty cty.Type) cty.Value {
	attrs := make(map[string]cty.Value, len(ty.AttributeTypes()))
	for name, ty := range ty.AttributeTypes() {
		attrs[name] = cty.UnknownVal(ty)
	}
	return cty.ObjectVal(attrs)
}
