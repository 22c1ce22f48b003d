package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// FromProvider turns a provider's diagnostics into diagnostics of the language:
// the place is the attribute at fault in the file, or else rng. about names the
// object for diagnostics that have no place.
func FromProvider(diags providers.Diagnostics, body hcl.Body, rng hcl.Range, about string) hcl.Diagnostics {
	if len(diags) == 0 {
		return nil
	}
	out := make(hcl.Diagnostics, 0, len(diags))
	for _, d := range diags {
		h := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: d.Summary, Detail: d.Detail}
		if d.Severity == providers.Warning {
			h.Severity = hcl.DiagWarning
		}
		switch at := locate(body, d.Path); {
		case at != nil:
			h.Subject = at
		case rng.Filename != "":
			h.Subject = rng.Ptr()
		default:
			h.Detail = fmt.Sprintf("(%s) %s", about, h.Detail)
		}
		out = append(out, h)
	}
	return out
}

// locate returns where the value at a path is written, as near as the body
// tells, or nil.
func locate(body hcl.Body, path cty.Path) *hcl.Range {
	native, ok := body.(*hclsyntax.Body)
	if !ok || native == nil || len(path) == 0 {
		return nil
	}
	step, ok := path[0].(cty.GetAttrStep)
	if !ok {
		return nil
	}
	if attr := native.Attributes[step.Name]; attr != nil {
		return sourceRange(attr.Expr, path[1:], false).Ptr()
	}
	var blocks []*hclsyntax.Block
	for _, b := range native.Blocks {
		if b.Type == step.Name {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	i, rest := 0, path[1:]
	if len(rest) > 0 {
		if index, ok := rest[0].(cty.IndexStep); ok {
			rest = rest[1:]
			if index.Key.IsKnown() && index.Key.Type() == cty.Number {
				n, _ := index.Key.AsBigFloat().Int64()
				i = min(int(n), len(blocks)-1)
			}
		}
	}
	if at := locate(blocks[i].Body, rest); at != nil {
		return at
	}
	return blocks[i].DefRange().Ptr()
}

// sourceRange follows a path into object and tuple constructors, to a value or, at the
// end of the path, to an item's name. It returns the last range on its way.
func sourceRange(expr hclsyntax.Expression, path cty.Path, toName bool) hcl.Range {
	if parens, ok := expr.(*hclsyntax.ParenthesesExpr); ok {
		return sourceRange(parens.Expression, path, toName)
	}
	if len(path) == 0 {
		return expr.Range()
	}
	var name string
	switch step := path[0].(type) {
	case cty.GetAttrStep:
		name = step.Name
	case cty.IndexStep:
		key, _ := step.Key.Unmark()
		tuple, ok := expr.(*hclsyntax.TupleConsExpr)
		switch {
		case !key.IsKnown():
		case key.Type() == cty.String:
			name = key.AsString()
		case ok && key.Type() == cty.Number:
			if n, _ := key.AsBigFloat().Int64(); n >= 0 && n < int64(len(tuple.Exprs)) {
				return sourceRange(tuple.Exprs[n], path[1:], toName)
			}
		}
	}
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return expr.Range()
	}
	for _, item := range object.Items {
		key, diags := item.KeyExpr.Value(nil)
		if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String || key.AsString() != name {
			continue
		}
		if toName && len(path) == 1 {
			return item.KeyExpr.Range()
		}
		return sourceRange(item.ValueExpr, path[1:], toName)
	}
	return expr.Range()
}

// SortDiagnostics orders errors and warnings by files, with the ones without a
// place last, and in one place by their objects, and removes repetitions.
func SortDiagnostics(diags hcl.Diagnostics) hcl.Diagnostics {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		switch {
		case a.Subject == nil && b.Subject == nil:
			return 0
		case a.Subject == nil:
			return 1
		case b.Subject == nil:
			return -1
		case a.Subject.Filename != b.Subject.Filename:
			if a.Subject.Filename < b.Subject.Filename {
				return -1
			}
			return 1
		}
		if n := a.Subject.Start.Byte - b.Subject.Start.Byte; n != 0 {
			return n
		}
		return strings.Compare(addressOf(a), addressOf(b))
	})
	return slices.CompactFunc(diags, func(a, b *hcl.Diagnostic) bool {
		return a.Summary == b.Summary && a.Detail == b.Detail && a.Severity == b.Severity &&
			(a.Subject == nil) == (b.Subject == nil) && (a.Subject == nil || *a.Subject == *b.Subject) && addressOf(a) == addressOf(b)
	})
}
