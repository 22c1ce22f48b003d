package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

func ctyString(s string) cty.Value { return cty.StringVal(s) }

// resourceText writes the block that makes an object what it is: arguments
// that are set, without what only the provider decides. Secrets are left to
// whoever looks it over.
func resourceText(addr address.Instance, provider string, schema *providers.Block, v cty.Value) string {
	f := hclwrite.NewEmptyFile()
	block := f.Body().AppendNewBlock("resource", []string{addr.Type, addr.Name})
	if provider != "" {
		block.Body().SetAttributeRaw("provider", hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(provider)}})
	}
	writeBody(block.Body(), schema, v, true)
	return strings.TrimSpace(string(hclwrite.Format(f.Bytes())))
}

func writeBody(body *hclwrite.Body, schema *providers.Block, v cty.Value, top bool) {
	for _, name := range slices.Sorted(maps.Keys(schema.Attributes)) {
		attr := schema.Attributes[name]
		if !attr.Required && !attr.Optional || attr.Deprecated {
			continue
		}
		if top && name == "id" && attr.Computed {
			continue // older plugin kits declare it so, although it cannot be set
		}
		value := v.GetAttr(name)
		switch {
		case attr.Sensitive || attr.WriteOnly:
			if attr.Required || !value.IsNull() {
				body.SetAttributeRaw(name, commented("sensitive"))
			}
		case value.IsNull() && attr.Required:
			body.SetAttributeRaw(name, commented("required, but not told by the provider"))
		case value.IsNull():
		case attr.Nested != nil:
			body.SetAttributeRaw(name, nestedTokens(attr.Nested, value))
		default:
			body.SetAttributeRaw(name, hclwrite.TokensForValue(value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Blocks)) {
		nested := schema.Blocks[name]
		value := v.GetAttr(name)
		if value.IsNull() {
			continue
		}
		if nested.Nesting == providers.Single || nested.Nesting == providers.Group {
			if nested.Nesting == providers.Single || !allNull(value) {
				writeBody(body.AppendNewBlock(name, nil).Body(), nested.Block, value, false)
			}
			continue
		}
		for it := value.ElementIterator(); it.Next(); {
			key, element := it.Element()
			var labels []string
			if nested.Nesting == providers.Map {
				labels = []string{key.AsString()}
			}
			writeBody(body.AppendNewBlock(name, labels).Body(), nested.Block, element, false)
		}
	}
}

func allNull(v cty.Value) bool {
	for _, inner := range v.AsValueMap() {
		if !inner.IsNull() && !(inner.CanIterateElements() && inner.LengthInt() == 0) {
			return false
		}
	}
	return true
}

func commented(why string) hclwrite.Tokens {
	return append(hclwrite.TokensForValue(cty.NullVal(cty.DynamicPseudoType)),
		&hclwrite.Token{Type: hclsyntax.TokenComment, Bytes: []byte("# " + why), SpacesBefore: 1})
}

// nestedTokens writes attributes within an attribute.
func nestedTokens(nested *providers.NestedType, v cty.Value) hclwrite.Tokens {
	if v.IsNull() {
		return hclwrite.TokensForValue(v)
	}
	switch nested.Nesting {
	case providers.List, providers.Set:
		var elements []hclwrite.Tokens
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			elements = append(elements, objectTokens(nested, element))
		}
		return hclwrite.TokensForTuple(elements)
	case providers.Map:
		var attrs []hclwrite.ObjectAttrTokens
		for it := v.ElementIterator(); it.Next(); {
			key, element := it.Element()
			attrs = append(attrs, hclwrite.ObjectAttrTokens{Name: hclwrite.TokensForValue(key), Value: objectTokens(nested, element)})
		}
		return hclwrite.TokensForObject(attrs)
	}
	return objectTokens(nested, v)
}

func objectTokens(nested *providers.NestedType, v cty.Value) hclwrite.Tokens {
	if v.IsNull() {
		return hclwrite.TokensForValue(v)
	}
	var attrs []hclwrite.ObjectAttrTokens
	for _, name := range slices.Sorted(maps.Keys(nested.Attributes)) {
		attr, value := nested.Attributes[name], v.GetAttr(name)
		if !attr.Required && !attr.Optional || value.IsNull() && !attr.Required {
			continue
		}
		tokens := hclwrite.TokensForValue(value)
		switch {
		case attr.Sensitive || attr.WriteOnly:
			tokens = commented("sensitive")
		case attr.Nested != nil:
			tokens = nestedTokens(attr.Nested, value)
		}
		attrs = append(attrs, hclwrite.ObjectAttrTokens{Name: hclwrite.TokensForTraversal(hcl.Traversal{hcl.TraverseRoot{Name: name}}), Value: tokens})
	}
	return hclwrite.TokensForObject(attrs)
}
