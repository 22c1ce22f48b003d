package view

import (
	"sort"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/redact"
)

func decimal(n int) string { return strconv.Itoa(n) }

// values lists the values of the names in the diagnostic's expression.
// Sensitive values are named, never shown.
func (p *Printer) values(d *hcl.Diagnostic) []string {
	var facts []string
	if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); ok && call.CalledFunctionName() != "" {
		facts = append(facts, "while calling "+p.paintText(bold, call.CalledFunctionName()))
	}
	if d.Expression != nil && d.EvalContext != nil {
		facts = append(facts, p.valueFacts(d)...)
	}
	if len(facts) == 0 {
		return nil
	}
	lines := []string{"    " + p.paintText(dim, "├────────────────")}
	for _, f := range facts {
		lines = append(lines, "    "+p.paintText(dim, "│")+" "+f)
	}
	return lines
}

func (p *Printer) valueFacts(d *hcl.Diagnostic) []string {
	seen := make(map[string]bool)
	var facts []string
	for _, traversal := range d.Expression.Variables() {
		// The longest prefix with a value is the most telling one.
		for len(traversal) > 1 {
			val, diags := traversal.TraverseAbs(d.EvalContext)
			if diags.HasErrors() {
				traversal = traversal[:len(traversal)-1]
				continue
			}
			name := traversalText(traversal)
			if fact := describe(val); fact != "" && !seen[name] {
				seen[name] = true
				var s redact.Secrets
				if s.AddReference(traversal, d.EvalContext); s.FoundIn([]byte(fact)) {
					fact = "has a sensitive value"
				}
				facts = append(facts, p.paintText(bold, printable(name))+" "+fact)
			}
			break
		}
	}
	sort.Strings(facts)
	return facts
}

// describe is the end of a sentence that begins with a name.
func describe(v cty.Value) string {
	switch {
	case v == cty.NilVal:
		return ""
	case v.HasMark(lang.Ephemeral):
		return "has an ephemeral value"
	case v.IsMarked():
		return "has a sensitive value"
	case !v.IsKnown():
		if v.Type() == cty.DynamicPseudoType {
			return "will be known only after apply"
		}
		return "is a " + v.Type().FriendlyName() + ", known only after apply"
	case v.IsNull():
		return "is null"
	}
	ty := v.Type()
	switch {
	case ty == cty.String:
		return "is " + address.Quote(truncate(v.AsString(), 120))
	case ty == cty.Number:
		return "is " + number(v)
	case ty == cty.Bool:
		return "is " + strconv.FormatBool(v.True())
	case ty.IsObjectType():
		return "is object with " + counted(len(ty.AttributeTypes()), "attribute")
	case ty.IsTupleType():
		return "is tuple with " + counted(ty.Length(), "element")
	case ty.IsCollectionType():
		if !v.Length().IsKnown() {
			return "is a " + ty.FriendlyName()
		}
		return "is " + ty.FriendlyName() + " with " + counted(v.LengthInt(), "element")
	}
	return ""
}

// traversalText writes a traversal as it is written in configuration.
func traversalText(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			b.WriteString("[" + indexText(s.Key) + "]")
		default:
			b.WriteString("[…]")
		}
	}
	return b.String()
}

func indexText(key cty.Value) string {
	key, _ = key.Unmark()
	switch {
	case !key.IsKnown() || key.IsNull():
		return "…"
	case key.Type() == cty.String:
		return address.Quote(key.AsString())
	case key.Type() == cty.Number:
		return number(key)
	}
	return "…"
}
