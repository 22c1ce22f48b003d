package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
)

// Expression gives the value of an expression outside of any file, as if it
// were written in the module. It may use the functions of the console.
func (m *Module) Expression(t *Task, expr hcl.Expression) (cty.Value, bool) {
	refs, diags := lang.References(expr)
	if diags.HasErrors() {
		t.Report(diags...)
		return cty.DynamicVal, false
	}
	ctx, ok := t.context(scope{module: m}, refs)
	if !ok {
		return cty.DynamicVal, false
	}
	ctx.Functions = lang.NewFunctions(lang.Options{Planning: t.ev.opts.Planning, PlanTime: t.ev.opts.PlanTime, Interrupted: t.ev.interrupted, Console: true, Providers: m.providerFunctions()})
	v, diags := expr.Value(ctx)
	t.Report(diags...)
	return v, !diags.HasErrors()
}
