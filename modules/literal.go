package modules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/modules/syntax"
)

// literal reads an argument that must be known before anything is evaluated.
func (d *decoder) literal(attr *hcl.Attribute, ty cty.Type) (cty.Value, bool) {
	if attr == nil {
		return cty.NilVal, false
	}
	v, diags := attr.Expr.Value(nil)
	if diags.HasErrors() {
		d.fail(attr.Expr.Range().Ptr(), "Literal value required",
			"The argument %q decides about the configuration itself and must be written as a plain %s, without references or functions.",
			attr.Name, ty.FriendlyName())
		return cty.NilVal, false
	}
	v, err := convert.Convert(v, ty)
	if err != nil || v.IsNull() || !v.IsKnown() {
		d.fail(attr.Expr.Range().Ptr(), "Wrong type of argument", "The argument %q must be a %s.", attr.Name, ty.FriendlyName())
		return cty.NilVal, false
	}
	return v, true
}

func (d *decoder) str(attr *hcl.Attribute) string {
	if v, ok := d.literal(attr, cty.String); ok {
		return v.AsString()
	}
	return ""
}

func (d *decoder) flag(attr *hcl.Attribute, without bool) bool {
	if v, ok := d.literal(attr, cty.Bool); ok {
		return v.True()
	}
	return without
}

// references reads a list of references such as depends_on's.
func (d *decoder) references(attr *hcl.Attribute) []hcl.Traversal {
	if attr == nil {
		return nil
	}
	exprs, diags := hcl.ExprList(attr.Expr)
	if diags.HasErrors() {
		d.fail(attr.Expr.Range().Ptr(), "List of references required",
			"The argument %q must be a list in brackets, such as [metal_host.machine].", attr.Name)
		return nil
	}
	refs := make([]hcl.Traversal, 0, len(exprs))
	for _, expr := range exprs {
		t, diags := hcl.AbsTraversalForExpr(d.formerlyQuoted(expr))
		if diags.HasErrors() {
			d.fail(expr.Range().Ptr(), "Reference required",
				"Each element of %q must be a reference without quotes, such as metal_host.machine, and no other expression.", attr.Name)
			continue
		}
		refs = append(refs, t)
	}
	return refs
}

// formerlyQuoted takes the quotes from a reference that is written as
// configurations of old do, and warns about them.
func (d *decoder) formerlyQuoted(expr hcl.Expression) hcl.Expression {
	text, ok := expr.(*hclsyntax.TemplateExpr)
	if !ok || !text.IsStringLiteral() {
		return expr
	}
	v, diags := text.Value(nil)
	if diags.HasErrors() {
		return expr
	}
	start := expr.Range().Start
	start.Column++ // after the quote
	start.Byte++
	bare, diags := syntax.ParseExpression(expr.Range().Filename, []byte(v.AsString()), start)
	if bare == nil || diags.HasErrors() {
		return expr
	}
	warning := failure(expr.Range().Ptr(), "Quoted references are deprecated", "Write the reference without quotes: %s.", v.AsString())
	warning.Severity = hcl.DiagWarning
	d.diags = append(d.diags, warning)
	return bare
}

// name checks what a label or an argument declares.
func (d *decoder) name(what, name string, at hcl.Range) bool {
	if validName(name) {
		return true
	}
	d.fail(&at, "Invalid name",
		"%q cannot be the name of this %s. Names consist of letters, digits, _ and -, and start with a letter or _.", clip(name), what)
	return false
}

// validName is hclsyntax.ValidIdentifier, fast for what names mostly are.
func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 0x80:
			return hclsyntax.ValidIdentifier(name)
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '-'):
		default:
			return false
		}
	}
	return name != ""
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// mismatch says why a value cannot be converted, with the path to the part
// that is wrong, e.g. `element "a": a number is required`.
func mismatch(err error) string {
	var at cty.PathError
	if !errors.As(err, &at) || len(at.Path) == 0 {
		return err.Error()
	}
	var b strings.Builder
	for _, step := range at.Path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			fmt.Fprintf(&b, ".%s", step.Name)
		case cty.IndexStep:
			switch {
			case !step.Key.IsKnown() || step.Key.IsNull():
				b.WriteString("[…]")
			case step.Key.Type() == cty.String:
				fmt.Fprintf(&b, "[%q]", step.Key.AsString())
			case step.Key.Type() == cty.Number:
				fmt.Fprintf(&b, "[%s]", step.Key.AsBigFloat().Text('f', -1))
			default:
				b.WriteString("[…]")
			}
		}
	}
	return fmt.Sprintf("%s: %s", b.String(), at.Error())
}
