package plan

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
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
			t.ForEach(len(resources), func(t *eval.Task, i int) { resources[i].Value(t) })
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
	m.EvaluateAll(t)
	for _, ref := range m.ProviderBlocks() {
		m.Provider(t, ref)
	}
}

// validator gives each instance an object of its type whose attributes are unknown,
// like the values of variables.
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
	t.Report(eval.AddSubject(inst.Addr.String(), eval.FromProvider(diags, decl.Body, decl.Range, inst.Addr.String()))...)
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

// anyObject returns an object whose attributes are all unknown.
func anyObject(ty cty.Type) cty.Value {
	attrs := make(map[string]cty.Value, len(ty.AttributeTypes()))
	for name, ty := range ty.AttributeTypes() {
		attrs[name] = cty.UnknownVal(ty)
	}
	return cty.ObjectVal(attrs)
}

// coverage holds the declarations with instances, which a plan evaluates. Only
// validation finds mistakes in the others: their count is 0, or not known yet.
type coverage struct {
	mu        sync.Mutex
	modules   map[*modules.Module]bool
	resources map[*modules.Resource]bool
}

// add notes a module instance, and each of its resources that has instances.
func (s *coverage) add(m *eval.Module, has func(*eval.Resource) bool) {
	if m.Undecided() {
		return
	}
	var found []*modules.Resource
	for _, r := range m.Resources() {
		if r.Decl.Check != "" || has(r) {
			found = append(found, r.Decl)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modules[m.Decl] = true
	for _, decl := range found {
		s.resources[decl] = true
	}
}

// all reports whether a module and the modules below it are covered.
func (s *coverage) all(m *modules.Module) bool {
	if !s.modules[m] {
		return false
	}
	for _, r := range m.Resources {
		if !s.resources[r] {
			return false
		}
	}
	for _, call := range m.Calls {
		if call.Module != nil && !s.all(call.Module) {
			return false
		}
	}
	return true
}

// validateUnseen validates the declarations without instances in the plan;
// Terraform validates all declarations before it plans. It leaves out errors in
// places that told names already, and cycles, which need instances.
func validateUnseen(p *planner, told hcl.Diagnostics) hcl.Diagnostics {
	if p.partial() || p.req.Mode == Destroy || p.stopped() {
		return nil
	}
	s := &coverage{modules: map[*modules.Module]bool{}, resources: map[*modules.Resource]bool{}}
	p.ev.Do(func(t *eval.Task) {
		p.ev.Root().Walk(t, func(t *eval.Task, m *eval.Module) {
			s.add(m, func(r *eval.Resource) bool {
				instances, ok := r.Instances(t)
				return !ok || len(instances) > 0 && !instances[0].Addr.Key.IsAny()
			})
		})
	})
	if s.all(p.req.Root) {
		return nil
	}
	ev := validating(p.ctx, &p.req)
	defer ev.Close()
	ev.Do(func(t *eval.Task) {
		ev.Root().Walk(t, func(t *eval.Task, m *eval.Module) {
			if !s.modules[m.Decl] {
				validateValues(t, m)
			}
			resources := m.Resources()
			t.ForEach(len(resources), func(t *eval.Task, i int) {
				if !s.resources[resources[i].Decl] {
					resources[i].Value(t)
				}
			})
		})
	})
	at := map[hcl.Range]bool{}
	for _, d := range told {
		if d.Severity == hcl.DiagError && d.Subject != nil {
			at[*d.Subject] = true
		}
	}
	return slices.DeleteFunc(ev.Diagnostics(), func(d *hcl.Diagnostic) bool {
		return d.Severity != hcl.DiagError || d.Summary == eval.Cycle || d.Subject != nil && at[*d.Subject]
	})
}
