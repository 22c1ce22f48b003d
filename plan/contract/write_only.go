package contract

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// HasWriteOnly reports whether some attribute of the schema is write-only: it
// goes to the provider with the configuration, and nowhere else.
func HasWriteOnly(schema *providers.Block) bool { return rootShape(schema).hasWriteOnly() }

func (s shape) hasWriteOnly() bool {
	for _, a := range s.attrs {
		if a.WriteOnly || a.Nested != nil && attributeShape(a.Nested).hasWriteOnly() {
			return true
		}
	}
	for _, b := range s.blocks {
		if blockShape(b).hasWriteOnly() {
			return true
		}
	}
	return false
}

// WithoutWriteOnly is v with null for all write-only attributes, and whether
// one of them had a value: what may be stored of an object.
func WithoutWriteOnly(schema *providers.Block, v cty.Value) (cty.Value, bool) {
	s := rootShape(schema)
	if !s.hasWriteOnly() {
		return v, false
	}
	had := false
	return s.withoutWriteOnly(v, &had), had
}

func (s shape) withoutWriteOnly(v cty.Value, had *bool) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return v
	}
	if s.nesting != providers.Single && s.nesting != providers.Group {
		return s.eachWithoutWriteOnly(v, had)
	}
	vals := v.AsValueMap()
	for name, a := range s.attrs {
		el, ok := vals[name]
		switch {
		case !ok:
		case a.WriteOnly:
			*had = *had || !el.IsNull()
			vals[name] = cty.NullVal(a.ImpliedType())
		case a.Nested != nil && attributeShape(a.Nested).hasWriteOnly():
			vals[name] = attributeShape(a.Nested).withoutWriteOnly(el, had)
		}
	}
	for name, b := range s.blocks {
		if inner := blockShape(b); inner.hasWriteOnly() && vals[name] != cty.NilVal {
			vals[name] = inner.withoutWriteOnly(vals[name], had)
		}
	}
	return cty.ObjectVal(vals)
}

func (s shape) eachWithoutWriteOnly(v cty.Value, had *bool) cty.Value {
	if empty(v) {
		return v
	}
	one := s
	one.nesting = providers.Single
	if v.Type().IsSetType() {
		els := make([]cty.Value, 0, v.LengthInt())
		for _, el := range v.Elements() {
			els = append(els, one.withoutWriteOnly(el, had))
		}
		return cty.SetVal(els)
	}
	return rebuild(v, func(_, el cty.Value) cty.Value { return one.withoutWriteOnly(el, had) })
}

// IsWriteOnly reports whether a path leads to a write-only attribute, or into
// one.
func IsWriteOnly(schema *providers.Block, path cty.Path) bool {
	s := rootShape(schema)
	for _, step := range path {
		name, ok := step.(cty.GetAttrStep)
		if !ok {
			continue // an element
		}
		switch a, b := s.attrs[name.Name], s.blocks[name.Name]; {
		case a != nil && a.WriteOnly:
			return true
		case a != nil && a.Nested != nil:
			s = attributeShape(a.Nested)
		case b != nil:
			s = blockShape(b)
		default:
			return false
		}
	}
	return false
}
