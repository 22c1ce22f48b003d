package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// ImportTarget is one object that an import block asks for.
type ImportTarget struct {
	Decl *modules.Import
	Addr address.Instance
	ID   string
}

// Import is an import block with its targets, which are evaluated on demand.
type Import struct {
	Decl    *modules.Import
	root    *Module
	targets cell[map[address.Instance]*ImportTarget]
}

// Imports are the root module's import blocks, by the resources that they are
// about, instance keys left out.
func (ev *Evaluator) Imports() map[string][]*Import {
	if len(ev.root.Decl.Imports) == 0 {
		return nil
	}
	all := map[string][]*Import{}
	for _, decl := range ev.root.Decl.Imports {
		i := &Import{Decl: decl, root: ev.root}
		i.targets.rng = &decl.Range
		i.targets.name = func() string { return "import of " + decl.To.Target.String() }
		name := decl.To.Target.String()
		all[name] = append(all[name], i)
	}
	return all
}

// Targets returns the objects that the block asks for.
func (i *Import) Targets(t *Task) (map[address.Instance]*ImportTarget, bool) {
	return i.targets.get(t, func(t *Task) (map[address.Instance]*ImportTarget, bool) {
		form, reps, ok := t.repetitions(i.root, nil, i.Decl.ForEach, "import block")
		if !ok || form == undecided {
			return nil, ok
		}
		out := make(map[address.Instance]*ImportTarget, len(reps))
		for _, rep := range reps {
			s := scope{module: i.root, rep: rep}
			addr, fine := i.address(t, s)
			id, known := i.id(t, s)
			if !fine || !known {
				ok = ok && t.Deferred()
				continue
			}
			if out[addr] != nil {
				t.Report(&hcl.Diagnostic{
					Severity: hcl.DiagError, Summary: "Several imports to one address", Subject: i.Decl.ToRange.Ptr(),
					Detail: fmt.Sprintf("Each turn of for_each needs an address of its own, but two of them lead to %s. Use each.key in the address.", addr),
				})
				ok = false
			}
			out[addr] = &ImportTarget{Decl: i.Decl, Addr: addr, ID: id}
		}
		return out, ok
	})
}

func (i *Import) address(t *Task, s scope) (address.Instance, bool) {
	to, ok := i.Decl.To, true
	keys := make([]address.Key, len(to.Keys))
	for n, expr := range to.Keys {
		if expr == nil {
			continue
		}
		v, fine := t.evaluate(s, expr, cty.DynamicPseudoType)
		if !fine {
			return address.Instance{}, false
		}
		v, fine = i.checkImportValue(t, v, expr, "instance key")
		if !fine {
			return address.Instance{}, false
		}
		key, err := modules.KeyOf(v)
		if err != nil {
			t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid import address", Detail: "The key does not fit: " + err.Error() + ".", Subject: expr.Range().Ptr()})
			return address.Instance{}, false
		}
		keys[n] = key
	}
	var m address.Module
	for n, step := range to.Target.Steps {
		m = m.Child(step.Name, keys[n])
	}
	r := *to.Target.Resource
	r.Module = m
	return r.Instance(keys[len(keys)-1]), ok
}

// checkImportValue refuses what addresses and ids cannot be made of.
func (i *Import) checkImportValue(t *Task, v cty.Value, expr hcl.Expression, what string) (cty.Value, bool) {
	fail := func(format string) (cty.Value, bool) {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid import " + what, Detail: fmt.Sprintf(format, what), Subject: expr.Range().Ptr()})
		return cty.DynamicVal, false
	}
	v, marks := v.Unmark()
	if _, secret := marks[lang.Sensitive]; secret {
		return fail("The %s is sensitive, but it shows in every plan. Use nonsensitive() if it is not a secret.")
	}
	if _, passing := marks[lang.Ephemeral]; passing {
		return fail("The %s is ephemeral; a plan keeps it, so it must not be.")
	}
	if !v.IsKnown() {
		if t.ev.opts.Validating {
			return cty.DynamicVal, false // it has no value yet
		}
		if t.ev.opts.Planning && t.readsResources() {
			t.Defer() // a later plan will know
			return cty.DynamicVal, false
		}
		return fail("The %s depends on something that is known only after apply. Use values that are known while planning.")
	}
	if v.IsNull() {
		return fail("The %s is null. Give the name that the object has in its system.")
	}
	return v, true
}

func (i *Import) id(t *Task, s scope) (string, bool) {
	v, ok := t.evaluate(s, i.Decl.ID, cty.String)
	if !ok {
		return "", false
	}
	if v, ok = i.checkImportValue(t, v, i.Decl.ID, "id"); !ok {
		return "", false
	}
	if v.AsString() == "" {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid import id", Detail: "The id is empty. " +
			"Give the name that the object has in its system.", Subject: i.Decl.ID.Range().Ptr()})
		return "", false
	}
	return v.AsString(), true
}
