package contract

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Proposed merges configuration and prior object into the object that a
// provider is asked to plan: configured values win, computed attributes that
// are not configured keep their prior value. Nested blocks and attributes are
// merged one by one: lists by index, maps by key, sets by what the
// configuration says of an element.
//
// A null prior means a create: computed attributes stay null then, and it is
// the provider's part to plan them as unknown. A null configuration means a
// destroy, and proposes null. Write-only attributes are proposed as they are
// configured, and the provider plans them as null; so a proposed object must
// not be stored.
func Proposed(schema *providers.Block, prior, config cty.Value) cty.Value {
	return rootShape(schema).propose(prior, config)
}

// ProposedUnknown is the object of which only the configuration is known:
// every computed attribute that is not configured is unknown. It stands for a
// data source whose reading has to wait for the apply.
func ProposedUnknown(schema *providers.Block, config cty.Value) cty.Value {
	return rootShape(schema).propose(cty.DynamicVal, config)
}

func proposeAttribute(a *providers.Attribute, prior, config cty.Value) cty.Value {
	switch {
	case a.Computed && config.IsNull():
		if !prior.IsKnown() {
			return cty.UnknownVal(a.ImpliedType())
		}
		// An optional object whose prior value holds what only a person can
		// have written was in the configuration and has been taken out.
		if prior.IsNull() || a.Optional && a.Nested != nil && holdsConfigured(a.Nested, prior) {
			return config
		}
		return prior
	case a.Nested != nil:
		return proposeNested(attributeShape(a.Nested), prior, config)
	}
	return config
}

// shape is what nested blocks and attributes with attributes have in common.
type shape struct {
	nesting providers.Nesting
	attrs   map[string]*providers.Attribute
	blocks  map[string]*providers.NestedBlock
}

func rootShape(b *providers.Block) shape {
	return shape{providers.Single, b.Attributes, b.Blocks}
}

func blockShape(b *providers.NestedBlock) shape {
	return shape{b.Nesting, b.Block.Attributes, b.Block.Blocks}
}

func attributeShape(n *providers.NestedType) shape {
	return shape{n.Nesting, n.Attributes, nil}
}

// propose merges one object. prior may be null, or unknown when everything
// that is computed is.
func (s shape) propose(prior, config cty.Value) cty.Value {
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	vals := make(map[string]cty.Value, len(s.attrs)+len(s.blocks))
	for name, a := range s.attrs {
		vals[name] = proposeAttribute(a, member(prior, name), config.GetAttr(name))
	}
	for name, b := range s.blocks {
		vals[name] = proposeNested(blockShape(b), member(prior, name), config.GetAttr(name))
	}
	return cty.ObjectVal(vals)
}

// proposeNested merges one nested block type or nested attribute. An unknown
// or empty configuration is its own answer.
func proposeNested(s shape, prior, config cty.Value) cty.Value {
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	switch s.nesting {
	case providers.Single, providers.Group:
		return s.propose(prior, config)
	case providers.Set:
		return s.proposeSet(prior, config)
	}
	if empty(config) {
		return config
	}
	return rebuild(config, func(key, el cty.Value) cty.Value {
		return s.propose(element(prior, key), el)
	})
}

// holdsConfigured reports whether v has a value that no provider computes.
func holdsConfigured(n *providers.NestedType, v cty.Value) bool {
	if v.IsNull() || !v.IsKnown() {
		return false
	}
	if n.Nesting != providers.Single && n.Nesting != providers.Group {
		for _, el := range v.Elements() {
			if objectHoldsConfigured(n.Attributes, el) {
				return true
			}
		}
		return false
	}
	return objectHoldsConfigured(n.Attributes, v)
}

func objectHoldsConfigured(attrs map[string]*providers.Attribute, v cty.Value) bool {
	if v.IsNull() || !v.IsKnown() {
		return false
	}
	for name, a := range attrs {
		el := v.GetAttr(name)
		if el.IsNull() {
			continue
		}
		if !a.Computed || a.Nested != nil && holdsConfigured(a.Nested, el) {
			return true
		}
	}
	return false
}
