package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stokehq/stoke/providers"
)

// nestedNames refuses names that an attribute with attributes of its own does
// not have. Converting an object drops what its type does not name, so that a
// typing mistake would silently leave a default in force.
func (t *Task) nestedNames(body hcl.Body, block *providers.Block) bool {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return true
	}
	fine := true
	for name, attr := range native.Attributes {
		if a := block.Attributes[name]; a != nil && a.Nested != nil {
			fine = t.nestedExpr(attr.Expr, a.Nested) && fine
		}
	}
	for _, b := range native.Blocks {
		if n := block.Blocks[b.Type]; n != nil {
			fine = t.nestedNames(b.Body, n.Block) && fine
		}
	}
	return fine
}

// nestedExpr looks into what is written as an object, or as a list or map of
// them; where objects come from elsewhere their names are not judged.
func (t *Task) nestedExpr(expr hclsyntax.Expression, nested *providers.NestedType) bool {
	fine := true
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return t.nestedExpr(e.Expression, nested)
	case *hclsyntax.TupleConsExpr:
		for _, element := range e.Exprs {
			fine = t.nestedExpr(element, nested) && fine
		}
	case *hclsyntax.ObjectConsExpr:
		if nested.Nesting == providers.Map {
			for _, item := range e.Items {
				fine = t.nestedObject(item.ValueExpr, nested.Attributes) && fine
			}
			return fine
		}
		return t.nestedObject(e, nested.Attributes)
	}
	return fine
}

func (t *Task) nestedObject(expr hclsyntax.Expression, attrs map[string]*providers.Attribute) bool {
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return true
	}
	fine := true
	for _, item := range object.Items {
		name := hcl.ExprAsKeyword(item.KeyExpr)
		if name == "" {
			continue // computed
		}
		a := attrs[name]
		if a == nil {
			detail := fmt.Sprintf("An argument named %q is not expected here.", name)
			if near := Nearest(name, keysOf(attrs)); near != "" {
				detail += fmt.Sprintf(" Did you mean %q?", near)
			}
			t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unsupported argument", Detail: detail, Subject: item.KeyExpr.Range().Ptr()})
			fine = false
			continue
		}
		if a.Nested != nil {
			fine = t.nestedExpr(item.ValueExpr, a.Nested) && fine
		}
	}
	return fine
}
