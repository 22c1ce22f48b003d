package eval

import (
	"fmt"
	"slices"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/state"
)

// variable is the value of var.NAME; rng is where it is used.
func (m *Module) variable(t *Task, name string, rng hcl.Range) (cty.Value, bool) {
	c := m.variables[name]
	if c == nil {
		t.Report(m.undeclared("input variable", "var", name, rng, keysOf(m.variables)))
		return cty.DynamicVal, false
	}
	return m.variableValue(t, name, c)
}

func (m *Module) variableValue(t *Task, name string, c *cell[cty.Value]) (cty.Value, bool) {
	return c.get(t, func(t *Task) (cty.Value, bool) {
		decl := m.Decl.Variables[name]
		v, ok := m.callerValue(t, decl)
		if !ok {
			return cty.DynamicVal, false
		}
		if decl.Sensitive {
			v = v.Mark(lang.Sensitive)
		}
		if decl.Ephemeral {
			v = v.Mark(lang.Ephemeral)
		}
		switch {
		case m.Undecided(): // without instances a rule holds
			v = anyOf(decl, v)
			if len(decl.Validations) > 0 {
				t.ev.note(m.checked(state.CheckedVariable, name), state.CheckUnknown)
			}
		case !t.validateVariable(m, decl, v):
			return cty.DynamicVal, false
		case t.ev.opts.Validating:
			v = anyOf(decl, v)
		}
		return v, true
	})
}

// anyOf returns an unknown value of a variable's type: the module must be valid
// for every value, and not only for the default or for one call.
func anyOf(decl *modules.Variable, v cty.Value) cty.Value {
	_, marks := v.Unmark()
	return cty.UnknownVal(decl.Type).WithMarks(marks)
}

// callerValue is the variable's value as the caller gives it, before marks.
func (m *Module) callerValue(t *Task, decl *modules.Variable) (cty.Value, bool) {
	if m.call == nil {
		if t.ev.opts.Validating {
			return cty.UnknownVal(decl.Type), true
		}
		v, ok := t.ev.opts.Variables[decl.Name]
		if !ok {
			v = decl.Default
		}
		if v == cty.NilVal {
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "No value for required variable",
				Detail:  fmt.Sprintf("The root module's variable %q has no default and was not set. Use a -var or -var-file argument, a terraform.tfvars file or the environment variable TF_VAR_%s.", decl.Name, decl.Name),
				Subject: decl.Range.Ptr(),
			})
			return cty.DynamicVal, false
		}
		return v, true
	}
	attr := m.call.Args[decl.Name]
	if attr == nil {
		if decl.Default == cty.NilVal {
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Missing required argument",
				Detail:  fmt.Sprintf("The module's variable %q (declared at %s) has no default, so the argument is required.", decl.Name, decl.Range),
				Subject: m.call.Range.Ptr(),
			})
			return cty.DynamicVal, false
		}
		return decl.Default, true
	}
	given, ok := t.evaluate(scope{module: m.parent, rep: m.rep}, attr.Expr, cty.DynamicPseudoType)
	if !ok {
		return cty.DynamicVal, false
	}
	v := given
	if d := m.ephemeralArgument(decl, v, attr.Expr.Range()); d != nil {
		t.Report(d)
		return cty.DynamicVal, false
	}
	if v, ok = t.convertArgument(decl, v, attr); ok && m.call.Library() {
		return v, t.expected(given, decl, attr)
	}
	return v, ok
}

// expected refuses names that a variable of the library's does not have. In other
// modules they are dropped, as in Terraform: those may be written for it.
func (t *Task) expected(v cty.Value, decl *modules.Variable, attr *hcl.Attribute) bool {
	if decl.Constraint == cty.NilType {
		return true
	}
	diags := unexpected(v, decl.Constraint)
	for _, d := range diags {
		d.Subject = attr.Expr.Range().Ptr()
		if expr, ok := attr.Expr.(hclsyntax.Expression); ok {
			d.Subject = sourceRange(expr, d.Extra.(misnamed).path, true).Ptr()
		}
	}
	t.Report(diags...)
	return len(diags) == 0
}

func (t *Task) convertArgument(decl *modules.Variable, v cty.Value, attr *hcl.Attribute) (cty.Value, bool) {
	fail := func(detail string) (cty.Value, bool) {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid value for input variable",
			Detail:  fmt.Sprintf("The value of %q does not suit the variable declared at %s: %s.", decl.Name, decl.Range, detail),
			Subject: attr.Expr.Range().Ptr(),
		})
		return cty.DynamicVal, false
	}
	if plain, _ := v.Unmark(); plain.IsNull() && !decl.Nullable {
		if decl.Default == cty.NilVal {
			return fail("null is not allowed")
		}
		return decl.Default, true
	}
	if decl.Defaults != nil && !v.IsNull() {
		v = decl.Defaults.Apply(v)
	}
	want := decl.Constraint
	if want == cty.NilType {
		want = decl.Type
	}
	v, err := convert.Convert(v, want)
	if err != nil {
		return fail(err.Error())
	}
	return v, true
}

func (m *Module) local(t *Task, name string, rng hcl.Range) (cty.Value, bool) {
	c := m.locals[name]
	if c == nil {
		t.Report(m.undeclared("local value", "local", name, rng, keysOf(m.locals)))
		return cty.DynamicVal, false
	}
	return m.localValue(t, name, c)
}

func (m *Module) localValue(t *Task, name string, c *cell[cty.Value]) (cty.Value, bool) {
	return c.get(t, func(t *Task) (cty.Value, bool) {
		return t.evaluate(scope{module: m}, m.Decl.Locals[name].Expr, cty.DynamicPseudoType)
	})
}

// Output is the value of one of the module's outputs, marked sensitive when it
// says so.
func (m *Module) Output(t *Task, name string) (cty.Value, bool) {
	return m.outputs[name].get(t, func(t *Task) (cty.Value, bool) {
		decl := m.Decl.Outputs[name]
		ok := t.touch(m, decl.DependsOn)
		ok = m.await(t) && ok
		if !t.Conditions(Context{Module: m, Output: name}, decl.Preconditions, "Module output value precondition failed") {
			return cty.DynamicVal, false
		}
		v, fine := t.evaluate(scope{module: m}, decl.Value, cty.DynamicPseudoType)
		if !ok || !fine {
			return cty.DynamicVal, false
		}
		if d := m.ephemeralOutput(decl, v); d != nil {
			t.Report(d)
			return cty.DynamicVal, false
		}
		if d := m.infiniteOutput(decl, v); d != nil {
			t.Report(d)
			return cty.DynamicVal, false
		}
		if m.parent == nil {
			v = plainZeros(v)
		}
		if decl.Ephemeral {
			v = v.Mark(lang.Ephemeral)
		}
		if m.parent == nil && !decl.Sensitive && lang.HasMark(v, lang.Sensitive) {
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Output refers to sensitive values",
				Detail: "Every run shows root outputs. Add `sensitive = true` to the output to keep it out of sight, or " +
					"use nonsensitive() if it is not a secret.",
				Subject: decl.Range.Ptr(),
			})
			return cty.DynamicVal, false
		}
		if decl.Sensitive {
			v = v.Mark(lang.Sensitive)
		}
		return v, true
	})
}

// OutputNode is an output's place in the dependency graph, nil before its first
// use.
func (m *Module) OutputNode(name string) *Node { return m.outputs[name].node }

// EvaluateAll evaluates all variables, locals and outputs, so that faults in
// unused ones are found too.
func (m *Module) EvaluateAll(t *Task) {
	for name, c := range m.variables {
		m.variableValue(t, name, c)
	}
	for name, c := range m.locals {
		m.localValue(t, name, c)
	}
	for name := range m.outputs {
		m.Output(t, name)
	}
}

func (m *Module) callValue(t *Task, name string, only map[string]bool, ref lang.Reference) (cty.Value, bool) {
	call := m.calls[name]
	if call == nil {
		t.Report(m.undeclared("module call", "module", name, ref.Range, keysOf(m.calls)))
		return cty.DynamicVal, false
	}
	return call.value(t, only)
}

// undeclared reports a name that is not declared and suggests the nearest
// declared name.
func (m *Module) undeclared(what, root, name string, rng hcl.Range, declared []string) *hcl.Diagnostic {
	where := "The root module"
	if m.Addr != "" {
		where = string(m.Addr)
	}
	detail := fmt.Sprintf("%s declares no %s named %q.", where, what, name)
	if near := Nearest(name, declared); near != "" {
		detail += fmt.Sprintf(" Did you mean %s.%s?", root, near)
	}
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Reference to undeclared " + what,
		Detail: detail, Subject: rng.Ptr(),
	}
}

func (m *Module) undeclaredResource(s lang.Resource, ref lang.Reference) *hcl.Diagnostic {
	var declared []string
	prefix := ""
	if s.Mode == address.Data {
		prefix = "data."
	}
	for name := range m.resources {
		if name.Mode == s.Mode {
			declared = append(declared, name.Type+"."+name.Name)
		}
	}
	d := m.undeclared("resource", "", s.Type+"."+s.Name, ref.Range, nil)
	if near := Nearest(s.Type+"."+s.Name, declared); near != "" {
		d.Detail += fmt.Sprintf(" Did you mean %s%s?", prefix, near)
	}
	return d
}

// Nearest returns the candidate that is most likely meant by a mistyped name,
// or "".
func Nearest(name string, candidates []string) string {
	best, distance := "", max(1, min(3, len(name)/3))+1
	slices.Sort(candidates)
	for _, c := range candidates {
		if d := levenshtein.Distance(name, c, nil); d < distance {
			best, distance = c, d
		}
	}
	return best
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
