package eval

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/state"
)

// CheckFailed is the summary of the warning that a check does not hold.
const CheckFailed = "Check block assertion failed"

// scoped makes the cells of a check's own data source advisory: their errors
// become warnings, and results of the check.
func (r *Resource) scoped(h *header) {
	if r.Decl.Check != "" {
		h.advises = &advice{r.module.checked(state.CheckedBlock, r.Decl.Check)}
	}
}

// advice is what turns the errors of a check's own data source into warnings.
type advice struct{ checked checked }

// ReportAs makes the task report as the resource's own cells do, for operations
// on it that no cell surrounds.
func (t *Task) ReportAs(r *Resource) {
	var h header
	r.scoped(&h)
	t.advises = h.advises
}

// advised turns errors into warnings where the task works for a check's own
// data source, and notes them as problems of the check.
func (t *Task) advised(diags hcl.Diagnostics) hcl.Diagnostics {
	advises := t.advises
	if h := t.top(); h != nil {
		advises = h.advises
	}
	if advises == nil || t.ev.opts.Validating || !diags.HasErrors() {
		return diags
	}
	out := make(hcl.Diagnostics, len(diags))
	for i, d := range diags {
		out[i] = d
		if d.Severity == hcl.DiagError {
			warning := *d
			warning.Severity = hcl.DiagWarning
			out[i] = &warning
			t.ev.note(advises.checked, state.CheckFailed, d.Summary+": "+d.Detail)
		}
	}
	return out
}

// Checks decides the check blocks of all module instances. What they say are
// warnings; only a faulty condition is an error.
func (ev *Evaluator) Checks(t *Task) {
	ev.root.Walk(t, func(t *Task, m *Module) {
		for _, decl := range m.Decl.Checks {
			t.check(m, decl)
		}
	})
}

func (t *Task) check(m *Module, decl *modules.CheckBlock) {
	what := m.checked(state.CheckedBlock, decl.Name)
	if t.ev.opts.Planning {
		t.ev.note(what, state.CheckPassed)
	}
	if m.Undecided() {
		t.ev.note(what, state.CheckUnknown)
		return
	}
	if decl.Data != nil {
		r := m.resources[decl.Data.ResourceName]
		if _, ok := r.Value(t); !ok {
			return // said, and noted
		}
	}
	s := scope{module: m, check: decl.Name}
	for _, check := range decl.Asserts {
		before := t.reports
		v, ok := t.condition(s, check)
		switch {
		case !ok && t.reports == before:
			t.ev.note(what, state.CheckUnknown) // what it is about failed, which has been said
		case !ok:
			t.ev.note(what, state.CheckErred)
		case !v.IsKnown() && t.ev.opts.Validating:
		case !v.IsKnown():
			t.ev.note(what, state.CheckUnknown)
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagWarning, Summary: "Check block assertion known after apply",
				Detail:     "The condition depends on values that are not known yet; the apply decides it.",
				Subject:    check.Condition.Range().Ptr(),
				Expression: check.Condition, EvalContext: t.contextForDisplay(s, check.Condition),
			})
		case v.False():
			message := t.message(s, check)
			t.ev.note(what, state.CheckFailed, message)
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagWarning, Summary: CheckFailed, Detail: message,
				Subject: check.Condition.Range().Ptr(), Expression: check.Condition, EvalContext: t.contextForDisplay(s, check.Condition),
			})
		default:
			t.ev.note(what, state.CheckPassed)
		}
	}
}

// mayRefer reports whether an expression in the scope may name the resource:
// only its check may name a check's own data source.
func (b *contextBuilder) mayRefer(r *Resource, ref lang.Reference) bool {
	if r.Decl.Check == "" || r.Decl.Check == b.scope.check {
		return true
	}
	b.fail(ref, "Reference to a check's own data source",
		address.Resource{Mode: r.Addr.Mode, Type: r.Addr.Type, Name: r.Addr.Name}.String()+
			" belongs to the check \""+r.Decl.Check+"\" and can only be used in its assert blocks. Declare it outside of the check to use it here.")
	return false
}
