package lang

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/syntax"
)

// FuzzExpression evaluates whatever parses, with all functions, over known,
// unknown, null and sensitive values: no panic, and the marks survive where
// the whole is one.
func FuzzExpression(f *testing.F) {
	exprs, _ := cases(f)
	for _, expr := range exprs {
		f.Add(expr)
	}
	for _, expr := range []string{
		`[for k, v in var.object : "${k}=${v}" if v != null]`, `{for x in var.list : x => upper(x)...}`, `var.list[*].a`,
		`var.unknown ? var.list : []`, `"%{for x in var.list}${x}%{endfor}"`, `var.secret == "x" ? 1 : var.nothing`, `!var.unknown && var.unknown2`,
		`var.object["a"].b[0]`, "<<-EOT\n  a\n  ${var.secret}\nEOT\n", `(var.list...)`, `-var.nothing + 1e400`,
	} {
		f.Add(expr)
	}
	table := NewFunctions(Options{BaseDir: "testdata/files", PlanTime: time.Unix(1.7e9, 0)})
	variables := map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{
		"object":   cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x"), "b": cty.NullVal(cty.String), "c": cty.UnknownVal(cty.Number)}),
		"list":     cty.ListVal([]cty.Value{cty.StringVal("p"), cty.StringVal("q")}),
		"set":      cty.SetVal([]cty.Value{cty.NumberIntVal(1), cty.NumberIntVal(2)}),
		"map":      cty.MapVal(map[string]cty.Value{"k": cty.True}),
		"unknown":  cty.UnknownVal(cty.Bool),
		"unknown2": cty.DynamicVal,
		"nothing":  cty.NullVal(cty.DynamicPseudoType),
		"secret":   cty.StringVal("hidden").Mark(Sensitive),
	})}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "bcrypt") || len(text) > 2000 {
			return // its cost is exponential by design
		}
		body, diags := syntax.Parse("x.tf", []byte("x = "+text+"\n"))
		if diags.HasErrors() {
			return
		}
		attrs, _ := body.JustAttributes()
		attr := attrs["x"]
		if attr == nil {
			return
		}
		References(attr.Expr)
		v, diags := attr.Expr.Value(&hcl.EvalContext{Variables: variables, Functions: table})
		for _, d := range diags {
			if strings.Contains(d.Detail, "hidden") {
				t.Errorf("%s tells a secret: %s", text, d.Detail)
			}
		}
		plain, marked, _ := Unmark(v)
		if !marked.Apply(plain).RawEquals(v) {
			t.Errorf("%s: marks taken off and put on again give another value", text)
		}
	})
}
