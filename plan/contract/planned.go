package contract

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// CheckPlanned reports where a planned object is none that a provider may plan
// for config; each error is a cty.PathError.
//
// A provider may choose the value of a computed attribute that is not
// configured, also as unknown. What is configured has to be planned as it is,
// or as the prior object has it: this is how a provider says that both mean
// the same. Write-only attributes are planned as null. Of blocks there are as
// many in the plan as in the configuration. The elements of sets can't be told
// apart, so there the provider is trusted.
//
// Answers in the legacy type system break these rules by habit: callers log
// the errors then and go on.
func CheckPlanned(schema *providers.Block, prior, config, planned cty.Value) []error {
	var c checker
	c.plannedObject(rootShape(schema), prior, config, planned)
	return c.result()
}

func (c *checker) plannedObject(s shape, prior, config, planned cty.Value) {
	switch {
	case planned.IsNull() && config.IsNull():
		return
	case planned.IsNull():
		c.errorf("planned for absence, but it is configured")
		return
	case config.IsNull():
		c.errorf("planned for existence, but it is not configured")
		return
	case !planned.IsKnown() || !config.IsKnown():
		if planned.IsKnown() != config.IsKnown() {
			c.errorf("planned %s where the configuration is %s", planned, config)
		}
		return
	}
	for name, a := range s.attrs {
		c.attr(name)
		if a.Sensitive {
			c.hidden++
		}
		c.plannedAttribute(a, member(prior, name), config.GetAttr(name), planned.GetAttr(name))
		if a.Sensitive {
			c.hidden--
		}
		c.leavePath()
	}
	for name, b := range s.blocks {
		c.attr(name)
		c.plannedBlocks(blockShape(b), member(prior, name), config.GetAttr(name), planned.GetAttr(name))
		c.leavePath()
	}
}

func (c *checker) plannedAttribute(a *providers.Attribute, prior, config, planned cty.Value) {
	switch {
	case a.WriteOnly:
		if !planned.IsNull() {
			c.errorf("planned a value for a write-only attribute")
		}
	case equalValues(planned, config) && (a.Nested == nil || planned.IsNull() || !planned.IsKnown()):
		// Attributes within are looked at one by one, as some may be write-only.
	case !config.IsNull() && !prior.IsNull() && equalValues(planned, prior):
	case a.Computed && (config.IsNull() || !a.Optional):
	case config.IsNull():
		c.errorf("planned %s for an attribute that is neither configured nor computed", planned)
	case a.Nested != nil && config.IsKnown():
		c.plannedNested(attributeShape(a.Nested), prior, config, planned)
	case prior.IsNull():
		c.errorf("planned %s, but the configuration says %s", planned, config)
	default:
		c.errorf("planned %s, but the configuration says %s and the prior value was %s", planned, config, prior)
	}
}

// plannedNested checks the parts of an attribute that is configured.
func (c *checker) plannedNested(s shape, prior, config, planned cty.Value) {
	switch {
	case planned.IsNull():
		c.errorf("planned for absence, but it is configured")
	case !planned.IsKnown():
		c.errorf("planned as unknown, but it is configured; only its computed parts may be unknown")
	case s.nesting == providers.Single || s.nesting == providers.Group:
		c.plannedObject(s, prior, config, planned)
	default:
		c.plannedElements(s, prior, config, planned, "elements")
	}
}

func (c *checker) plannedBlocks(s shape, prior, config, planned cty.Value) {
	switch {
	case planned.IsNull() && config.IsNull(), !planned.IsKnown() && !config.IsKnown():
	case !config.IsKnown():
		c.errorf("planned %s for blocks whose number is not known yet", planned)
	case !planned.IsKnown():
		c.errorf("planned blocks as unknown; only attributes within them may be unknown")
	case s.nesting == providers.Single || s.nesting == providers.Group:
		c.plannedObject(s, prior, config, planned)
	case planned.IsNull():
		c.errorf("planned null; no blocks are an empty collection")
	default:
		c.plannedElements(s, prior, config, planned, "blocks")
	}
}

// plannedElements compares collections that are known. config may be null
// where ignored changes brought in an older provider's null.
func (c *checker) plannedElements(s shape, prior, config, planned cty.Value, what string) {
	configured := 0
	if !config.IsNull() {
		configured = length(config)
	}
	if s.nesting == providers.Set {
		c.plannedSet(config, planned, what == "blocks")
		return
	}
	if s.nesting == providers.List && length(planned) != configured {
		c.errorf("planned %d %s, but the configuration has %d", length(planned), what, configured)
		return
	}
	for key, el := range planned.Elements() {
		if configured == 0 || !hasElement(config, key) {
			c.errorf("planned key %s, which the configuration doesn't have", key)
			continue
		}
		c.index(planned.Type(), key)
		c.plannedObject(s, element(prior, key), element(config, key), el)
		c.leavePath()
	}
	if configured == 0 || s.nesting == providers.List {
		return
	}
	for key := range config.Elements() {
		if !hasElement(planned, key) {
			c.errorf("configured key %s is not in the plan", key)
		}
	}
}

// plannedSet checks as little as can be said of elements without a name.
func (c *checker) plannedSet(config, planned cty.Value, blocks bool) {
	if blocks {
		for key, el := range planned.Elements() {
			if !el.IsKnown() {
				c.index(planned.Type(), key)
				c.errorf("planned a block as unknown; only attributes within it may be unknown")
				c.leavePath()
			}
		}
		return
	}
	// The number of elements that are not wholly known is not known either,
	// as they may turn out to be equal.
	count, wanted := planned.Length(), config.Length()
	if !count.IsKnown() && !wanted.IsKnown() {
		return
	}
	if agree := count.Equals(wanted); !agree.IsKnown() || agree.False() {
		c.errorf("planned %s elements, but the configuration has %s", count, wanted)
	}
}
