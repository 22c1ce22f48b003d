package view

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/providers"
)

// expressionJSON is an expression as the published format has it: its value
// where it is written out, else what it refers to. A call of a function with
// nothing but literals is neither and leaves an empty object.
func expressionJSON(expr hcl.Expression) map[string]any {
	if expr == nil {
		return nil
	}
	out := map[string]any{}
	if names := referenceNames(expr); len(names) > 0 {
		out["references"] = names // in JSON syntax a text may contain them
	}
	if v, diags := expr.Value(nil); !diags.HasErrors() && v.IsWhollyKnown() {
		v, _ = v.UnmarkDeep()
		out["constant_value"], _ = jsonValue(v)
	}
	return out
}

// referenceNames lists the references of an expression: of each the whole path,
// then every shorter one, down to the declaration.
func referenceNames(expr hcl.Expression) []string {
	refs, _ := lang.References(expr)
	var names []string
	for _, ref := range refs {
		names = append(names, prefixes(ref)...)
	}
	return names
}

func prefixes(ref lang.Reference) []string {
	var names []string
	remaining := ref.Remaining
	shortest := 0
	if _, ok := ref.Subject.(lang.ModuleCall); ok && len(remaining) > 1 && isIndex(remaining[0]) && isAttr(remaining[1]) {
		shortest = 1 // an output of one instance ends at the instance
	}
	for n := len(remaining); n >= shortest; n-- {
		names = append(names, ref.Subject.String()+traversalText(remaining[:n]))
	}
	return names
}

func isIndex(t hcl.Traverser) bool { _, ok := t.(hcl.TraverseIndex); return ok }
func isAttr(t hcl.Traverser) bool  { _, ok := t.(hcl.TraverseAttr); return ok }

// traversalNames writes what depends_on lists.
func traversalNames(list []hcl.Traversal) []string {
	var names []string
	for _, t := range list {
		ref, diags := lang.ParseReference(t)
		if diags.HasErrors() {
			names = append(names, traversalText(t))
			continue
		}
		names = append(names, ref.Subject.String()+traversalText(ref.Remaining))
	}
	return names
}

// bodyJSON is the expressions of a block by the names of its schema. Dynamic
// blocks are left out, as their content is not written in the configuration.
func bodyJSON(body hcl.Body, schema *providers.Block) map[string]any {
	out := map[string]any{}
	if body == nil || schema == nil {
		return out
	}
	content, _, _ := body.PartialContent(bodySchema(schema))
	for name, attr := range content.Attributes {
		out[name] = expressionJSON(attr.Expr)
	}
	for _, block := range content.Blocks {
		nested := schema.Blocks[block.Type]
		inner := bodyJSON(block.Body, nested.Block)
		switch nested.Nesting {
		case providers.Single, providers.Group:
			out[block.Type] = inner
		case providers.Map:
			all, _ := out[block.Type].(map[string]any)
			if all == nil {
				all = map[string]any{}
				out[block.Type] = all
			}
			all[strings.Join(block.Labels, ".")] = inner
		default:
			all, _ := out[block.Type].([]any)
			out[block.Type] = append(all, inner)
		}
	}
	return out
}

func bodySchema(b *providers.Block) *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for _, name := range sortedKeys(b.Attributes) {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name})
	}
	for _, name := range sortedKeys(b.Blocks) {
		h := hcl.BlockHeaderSchema{Type: name}
		if b.Blocks[name].Nesting == providers.Map {
			h.LabelNames = []string{"key"}
		}
		s.Blocks = append(s.Blocks, h)
	}
	return s
}

// plainJSON is a value that configuration gives, without its marks.
func plainJSON(v cty.Value) any {
	v, _ = v.UnmarkDeep()
	x, _ := jsonValue(v)
	return x
}
