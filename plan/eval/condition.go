package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/state"
)

// Context is where a condition is decided: in a module or about an instance,
// with self where the object exists.
type Context struct {
	Module   *Module
	Output   string // of the module, for a condition without an instance
	Instance *Instance
	Self     cty.Value
}

// Conditions decides pre- and postconditions. A false condition is reported as
// an error with the given summary and makes the result false; what is not known
// yet counts as true.
func (t *Task) Conditions(c Context, checks []*modules.Check, summary string) bool {
	_, ok := t.Decide(c, checks, summary)
	return ok
}

// Decide is Conditions that also says whether all of them were known.
func (t *Task) Decide(c Context, checks []*modules.Check, summary string) (known, ok bool) {
	known, ok = true, true
	if len(checks) == 0 {
		return known, ok
	}
	s := scope{module: c.Module, self: c.Self}
	what, open := checked{}, false
	if c.Instance != nil {
		s.module, s.rep = c.Instance.Resource.module, c.Instance.rep
		what, open = c.Instance.checked(), c.Instance.open()
	} else {
		what, open = c.Module.checked(state.CheckedOutput, c.Output), c.Module.Undecided()
	}
	if open {
		t.ev.note(what, state.CheckUnknown)
		return false, true
	}
	for _, check := range checks {
		if c.Instance != nil && t.aboutItself(c.Instance.Resource, check) {
			ok = false
			continue
		}
		v, fine := t.condition(s, check)
		switch {
		case !fine:
			ok = false
			t.ev.note(what, state.CheckErred)
		case !v.IsKnown():
			known = false
			t.ev.note(what, state.CheckUnknown)
		case v.False():
			ok = false
			message := t.message(s, check)
			t.ev.note(what, state.CheckFailed, message)
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: summary,
				Detail: message, Subject: check.Condition.Range().Ptr(),
				Expression: check.Condition, EvalContext: t.contextForDisplay(s, check.Condition),
			})
		default:
			t.ev.note(what, state.CheckPassed)
		}
	}
	return known, ok
}

// aboutItself reports whether a condition names the resource that it is about,
// which postconditions call self.
func (t *Task) aboutItself(r *Resource, check *modules.Check) bool {
	var exprs []hcl.Expression
	for _, expr := range []hcl.Expression{check.Condition, check.ErrorMessage} {
		if expr != nil {
			exprs = append(exprs, expr)
		}
	}
	refs, _ := lang.References(exprs...) // what is wrong with them is said where they are evaluated
	found := false
	for _, ref := range refs {
		if s, ok := ref.Subject.(lang.Resource); ok && r.module.Resource(s) == r {
			found = true
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Condition refers to its own resource",
				Detail: fmt.Sprintf("The conditions of %s may not refer to %s. In a postcondition, self is the object that "+
					"the postcondition checks.", r.Addr, r.Addr),
				Subject: ref.Range.Ptr(),
			})
		}
	}
	return found
}

// Undecided notes conditions that only the apply can decide.
func (t *Task) Undecided(inst *Instance, checks []*modules.Check) {
	for range checks {
		t.ev.note(inst.checked(), state.CheckUnknown)
	}
}

// condition is a condition's value: true, false or unknown, without marks.
func (t *Task) condition(s scope, check *modules.Check) (cty.Value, bool) {
	v, ok := t.evaluate(s, check.Condition, cty.DynamicPseudoType)
	if !ok {
		return cty.DynamicVal, false
	}
	v, _ = v.Unmark()
	v, err := convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid condition result",
			Detail: "The condition must be true or false.", Subject: check.Condition.Range().Ptr(),
		})
		return cty.DynamicVal, false
	}
	return v, true
}

// message returns the text of the check's error_message, or the reason why it
// has no value.
func (t *Task) message(s scope, check *modules.Check) string {
	if check.ErrorMessage == nil {
		return "The condition is false."
	}
	v, ok := t.evaluate(s, check.ErrorMessage, cty.String)
	if !ok {
		return "The condition is false, and its error message has an error of its own."
	}
	plain, _ := v.Unmark()
	switch {
	case lang.HasMark(v, lang.Sensitive) || lang.HasMark(v, lang.Ephemeral):
		return "The condition is false. Its error message holds a sensitive value and is not shown."
	case plain.IsNull() || !plain.IsKnown():
		return "The condition is false. Its error message is not known."
	}
	return plain.AsString()
}

// contextForDisplay is the context that an expression was evaluated in, for showing the
// values in it.
func (t *Task) contextForDisplay(s scope, expr hcl.Expression) *hcl.EvalContext {
	refs, _ := lang.References(expr)
	ctx, _ := t.context(s, refs)
	return ctx
}

// validateVariable decides the variable's own validations; while they are
// decided, var.NAME is the value under test.
func (t *Task) validateVariable(m *Module, decl *modules.Variable, v cty.Value) bool {
	ok := true
	what := m.checked(state.CheckedVariable, decl.Name)
	rule := validation{task: t, module: m, name: decl.Name, value: v}
	for _, check := range decl.Validations {
		result, ctx, fine := rule.evaluate(check.Condition, cty.Bool)
		if !fine {
			ok = false
			t.ev.note(what, state.CheckErred)
			continue
		}
		result, _ = result.Unmark()
		switch {
		case result.IsNull():
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Invalid condition result",
				Detail: "The condition must be true or false.", Subject: check.Condition.Range().Ptr(),
			})
			ok = false
			t.ev.note(what, state.CheckErred)
			continue
		case !result.IsKnown():
			t.ev.note(what, state.CheckUnknown)
			continue
		case result.True():
			t.ev.note(what, state.CheckPassed)
			continue
		}
		ok = false
		detail := "The value does not pass the variable's validation."
		if msg, _, fine := rule.evaluate(check.ErrorMessage, cty.String); fine && msg.IsKnown() && !msg.IsNull() && !msg.IsMarked() {
			detail = msg.AsString()
		}
		t.ev.note(what, state.CheckFailed, detail)
		detail += fmt.Sprintf("\n\nThis was checked by the validation rule at %s.", check.Range)
		subject := decl.Range.Ptr()
		if m.call != nil && m.call.Args[decl.Name] != nil {
			subject = m.call.Args[decl.Name].Expr.Range().Ptr()
		}
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid value for variable", Detail: detail,
			Subject: subject, Expression: check.Condition, EvalContext: ctx,
		})
	}
	return ok
}

// validation evaluates the rules of a variable whose value is under test.
type validation struct {
	task   *Task
	module *Module
	name   string
	value  cty.Value
}

func (r validation) evaluate(expr hcl.Expression, ty cty.Type) (cty.Value, *hcl.EvalContext, bool) {
	t := r.task
	refs, diags := lang.References(expr)
	var others []lang.Reference
	for _, ref := range refs {
		if ref.Subject != (lang.Variable{Name: r.name}) {
			others = append(others, ref)
		}
	}
	ctx, fine := t.context(scope{module: r.module}, others)
	if !fine || diags.HasErrors() {
		t.Report(diags...)
		return cty.DynamicVal, nil, false
	}
	vars := map[string]cty.Value{r.name: r.value}
	if all, ok := ctx.Variables["var"]; ok {
		for name, v := range all.AsValueMap() {
			vars[name] = v
		}
	}
	ctx.Variables["var"] = cty.ObjectVal(vars)
	got, diags := expr.Value(ctx)
	if diags.HasErrors() {
		t.Report(diags...)
		return cty.DynamicVal, nil, false
	}
	got, err := convert.Convert(got, ty)
	if err != nil {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid validation rule",
			Detail: fmt.Sprintf("The result is not what is needed here: %s.", err), Subject: expr.Range().Ptr(),
		})
		return cty.DynamicVal, nil, false
	}
	return got, ctx, true
}
