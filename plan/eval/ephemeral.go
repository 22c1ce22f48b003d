package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/contract"
)

// Persistable reports, with a diagnostic each, ephemeral values in a
// configuration that would have to be stored: only write-only attributes are
// not. The remaining marks concern stored values.
func (i *Instance) Persistable(t *Task, ty *Type, marked *lang.Marked) bool {
	if marked.IsZero() {
		return true
	}
	decl, block := i.Resource.Decl, ty.Schema.Block
	ok := true
	for _, path := range marked.Ephemeral {
		if contract.IsWriteOnly(block, path) {
			continue
		}
		ok = false
		at := locate(decl.Body, path)
		if at == nil {
			at = decl.Range.Ptr()
		}
		what := "this argument"
		if len(path) > 0 {
			if step, isAttr := path[0].(cty.GetAttrStep); isAttr {
				what = fmt.Sprintf("the argument %q", step.Name)
			}
		}
		t.Report(AddSubject(i.Addr.String(), hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Ephemeral value not allowed",
			Detail:  fmt.Sprintf("The value is ephemeral: it must never be stored, but %s of %s is kept in the state. Ephemeral values can be used in write-only arguments and in provider blocks.", what, i.Addr),
			Subject: at,
		}})...)
	}
	marked.Ephemeral = nil
	marked.Sensitive = append(marked.Sensitive, ty.echoes(marked.Sensitive)...)
	return ok
}

// echoes returns the computed attributes that repeat the values at sensitive
// paths of the configuration.
func (ty *Type) echoes(sensitive []cty.Path) (paths []cty.Path) {
	for _, name := range slices.Sorted(maps.Keys(ty.Schema.Echoes)) {
		said := func(path cty.Path) bool {
			if len(path) == 0 {
				return true
			}
			step, ok := path[0].(cty.GetAttrStep)
			return ok && slices.Contains(ty.Schema.Echoes[name], step.Name)
		}
		if slices.ContainsFunc(sensitive, said) {
			paths = append(paths, cty.GetAttrPath(name))
		}
	}
	return paths
}

// ephemeralOutput returns the diagnostic for an ephemeral value in an output
// that does not accept it, or for a value that is not ephemeral in an ephemeral
// output; nil when nothing is.
func (m *Module) ephemeralOutput(decl *modules.Output, v cty.Value) *hcl.Diagnostic {
	fail := func(detail string) *hcl.Diagnostic {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Ephemeral value not allowed", Detail: detail, Subject: decl.Value.Range().Ptr()}
	}
	switch has := lang.HasMark(v, lang.Ephemeral); {
	case decl.Ephemeral && m.parent == nil:
		d := fail("The outputs of the root module are stored, so none can be ephemeral. Remove the argument, or output something else.")
		d.Subject = decl.Range.Ptr()
		return d
	case has && m.parent == nil:
		return fail("The value is ephemeral: it must never be stored, but the outputs of the root module are. Use ephemeralasnull() to leave the ephemeral parts out.")
	case has && !decl.Ephemeral:
		return fail("The value is ephemeral: it must never be stored. Add `ephemeral = true` to the output to hand it on as such.")
	}
	return nil
}

// ephemeralArgument reports an ephemeral value for a module's variable that
// takes none; nil when it does.
func (m *Module) ephemeralArgument(decl *modules.Variable, v cty.Value, at hcl.Range) *hcl.Diagnostic {
	if decl.Ephemeral || !lang.HasMark(v, lang.Ephemeral) {
		return nil
	}
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Ephemeral value not allowed",
		Detail:  fmt.Sprintf("The value is ephemeral: it must never be stored, and the variable %q declared at %s does not promise that. Add `ephemeral = true` to the variable.", decl.Name, decl.Range),
		Subject: at.Ptr(),
	}
}

// applying is terraform.applying. It is ephemeral, as it changes between plan
// and apply.
func (t *Task) applying() cty.Value {
	v := cty.BoolVal(!t.ev.opts.Planning)
	if t.ev.opts.Validating {
		v = cty.UnknownVal(cty.Bool)
	}
	return v.Mark(lang.Ephemeral)
}
