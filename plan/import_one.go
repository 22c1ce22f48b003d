package plan

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Import looks up one existing object, outside of any plan, and returns what
// has to be stored of it. The state and the configuration decide whether it
// may be taken in; nothing is compared with the configuration.
func Import(ctx context.Context, r Request, addr address.Instance, id string) (*state.Object, hcl.Diagnostics) {
	r.Mode = Destroy // what the configuration reads has the values that the state says
	p, diags := newPlanner(ctx, r)
	if diags.HasErrors() {
		return nil, diags
	}
	defer p.ev.Close()
	defer p.watchCancel(ctx)()
	var stored *state.Object
	p.ev.Do(func(t *eval.Task) { stored = p.importOne(ctx, t, addr, id) })
	return stored, append(diags, eval.SortDiagnostics(p.ev.Diagnostics())...)
}

func (p *planner) importOne(ctx context.Context, t *eval.Task, addr address.Instance, id string) *state.Object {
	fail := func(summary, format string, args ...any) {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	if !isVacant(p.prior, addr) {
		fail("Resource already managed", "The state has an object at %s. To import another one there, take that one out first, with \"stoke state rm '%s'\".", addr, addr)
		return nil
	}
	inst := p.ev.Instance(t, addr)
	if inst == nil {
		if !p.ev.Failed() {
			t.Report(p.unconfigured(addr))
		}
		return nil
	}
	owner, ok := inst.Resource.Provider(t)
	if !ok {
		return nil
	}
	if owner.Unknown {
		fail("Provider configuration not known", "The configuration of the provider for %s rests on values that are not there yet. Apply what it depends on first.", addr)
		return nil
	}
	ty, ok := inst.Resource.Type(t)
	if !ok {
		return nil
	}
	lifecycle, ok := inst.Lifecycle(t)
	if !ok {
		return nil
	}
	o, ok := p.lookUp(ctx, t, addr, providers.ImportRequest{Type: addr.Type, ID: id, Config: configOf(p.ev, t, inst)}, nil, owner, ty)
	if !ok {
		return nil
	}
	object, err := state.NewObject(o.value, ty.Implied, state.Meta{
		Provider: owner.Addr, SchemaVersion: ty.Schema.Version, Sensitive: o.sensitive, Private: o.private,
		CreateBeforeDestroy: lifecycle.CreateBeforeDestroy,
	})
	if err != nil {
		fail("Object cannot be stored", "%s: %s.", addr, err)
		return nil
	}
	return object
}

// configOf returns the configuration of an instance as far as it is known outside of a plan; cty.NilVal where
// it is wrong. The next plan reports its mistakes.
func configOf(ev *eval.Evaluator, t *eval.Task, inst *eval.Instance) cty.Value {
	reported := ev.Diagnostics()
	defer func() {
		ev.Diagnostics()
		for _, d := range reported {
			ev.Report(d)
		}
	}()
	config, _, ok := inst.Config(t)
	if !ok {
		return cty.NilVal
	}
	value, marked, _ := lang.Unmark(config)
	return withoutSecrets(value, marked)
}

// unconfigured reports an import target without a resource block, and how to
// write one.
func (p *planner) unconfigured(addr address.Instance) *hcl.Diagnostic {
	if m := moduleOf(p.req.Root, addr.Module); m == nil {
		return &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Import to non-existent module",
			Detail: fmt.Sprintf("The configuration has no %s. Write its module block before importing into it.", addr.Module),
		}
	}
	d := notConfigured(addr, nil, p.ev.Declaration(addr.Resource) != nil)
	if p.ev.Declaration(addr.Resource) == nil {
		d.Detail = fmt.Sprintf("The configuration does not have %s. Write its resource block first, such as:\n\n  resource %q %q {\n    # arguments\n  }", addr, addr.Type, addr.Name)
	}
	return d
}
