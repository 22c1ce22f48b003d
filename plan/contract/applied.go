package contract

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// CheckApplied reports where actual is not what was planned: every part that
// was known has to be the same, every part that was unknown may be anything of
// its type. Elements of sets are compared by existence: each planned one needs
// an actual one that it can have become, and the other way round. Errors are
// cty.PathErrors.
//
// It also holds the plan that is made while applying against the one that was
// shown: then actual may have unknown parts where planned has.
func CheckApplied(schema *providers.Block, planned, actual cty.Value) []error {
	var c checker
	c.appliedObject(rootShape(schema), planned, actual)
	return c.result()
}

func (c *checker) appliedObject(s shape, planned, actual cty.Value) {
	switch {
	case planned.IsNull() && actual.IsNull():
		return
	case planned.IsNull():
		c.errorf("was planned to be absent, but now exists")
		return
	case actual.IsNull():
		c.errorf("was planned to exist, but is now absent")
		return
	case !planned.IsKnown():
		return
	case !actual.IsKnown():
		c.errorf("was known, but is now unknown")
		return
	}
	for name, a := range s.attrs {
		c.attr(name)
		c.appliedAttribute(a, planned.GetAttr(name), actual.GetAttr(name))
		c.leavePath()
		if c.failed && c.probing {
			return
		}
	}
	for name, b := range s.blocks {
		c.attr(name)
		c.appliedBlocks(blockShape(b), planned.GetAttr(name), actual.GetAttr(name))
		c.leavePath()
		if c.failed && c.probing {
			return
		}
	}
}

func (c *checker) appliedAttribute(a *providers.Attribute, planned, actual cty.Value) {
	if a.Sensitive || a.WriteOnly || a.Nested != nil && holdsSensitive(a.Nested) {
		c.hidden++
		defer func() { c.hidden-- }()
	}
	c.appliedValue(planned, actual)
}

// holdsSensitive reports whether an attribute within n is sensitive, so that
// no message may show the whole.
func holdsSensitive(n *providers.NestedType) bool {
	for _, a := range n.Attributes {
		if a.Sensitive || a.Nested != nil && holdsSensitive(a.Nested) {
			return true
		}
	}
	return false
}

func (c *checker) appliedBlocks(s shape, planned, actual cty.Value) {
	if !planned.IsKnown() {
		return // blocks whose number was not known may be any
	}
	if s.nesting == providers.Single || s.nesting == providers.Group {
		c.appliedObject(s, planned, actual)
		return
	}
	switch {
	case planned.IsNull() || actual.IsNull():
		// Older providers give null for blocks by mistake, and Terraform lets
		// them.
		return
	case !actual.IsKnown():
		c.errorf("was known, but is now unknown")
		return
	}
	if s.nesting == providers.Set {
		c.appliedSet(planned, actual, func(p, a cty.Value) bool {
			probe := checker{probing: true}
			probe.appliedObject(s, p, a)
			return !probe.failed
		})
		return
	}
	if s.nesting == providers.List && length(planned) != length(actual) {
		c.errorf("number of blocks changed from %d to %d", length(planned), length(actual))
		return
	}
	c.appliedElements(planned, actual, func(p, a cty.Value) { c.appliedObject(s, p, a) })
}

// appliedElements compares lists, tuples, maps or objects key by key.
func (c *checker) appliedElements(planned, actual cty.Value, f func(p, a cty.Value)) {
	for key, p := range planned.Elements() {
		if !hasElement(actual, key) {
			c.errorf("element %s has vanished", key)
			continue
		}
		c.index(planned.Type(), key)
		f(p, element(actual, key))
		c.leavePath()
		if c.failed && c.probing {
			return
		}
	}
	if length(planned) == length(actual) && !c.failed {
		return // every planned key is there, so there is no other
	}
	for key := range actual.Elements() {
		if !hasElement(planned, key) {
			c.errorf("element %s has appeared", key)
		}
	}
}

func (c *checker) appliedValue(planned, actual cty.Value) {
	if planned.Type() == cty.DynamicPseudoType && !planned.IsKnown() {
		return
	}
	if wrong := actual.Type().TestConformance(planned.Type()); len(wrong) > 0 && !nullOfAnyType(planned, actual) {
		text := make([]string, len(wrong))
		for i := range wrong {
			text[i] = wrong[i].Error()
		}
		c.errorf("changed its type: %s", strings.Join(text, "; "))
		return
	}
	switch {
	case !planned.IsKnown():
		if in := planned.Range().Includes(actual); in.IsKnown() && in.False() {
			c.errorf("is %s, which is outside of what the plan promised", actual)
		}
		return
	case planned.IsNull() && actual.IsNull():
		return
	case !actual.IsKnown():
		c.errorf("was %s, but is now unknown", planned)
		return
	case planned.IsNull() || actual.IsNull():
		c.errorf("was %s, but is now %s", planned, actual)
		return
	}
	ty := planned.Type()
	switch {
	case ty.IsSetType():
		c.appliedSet(planned, actual, becomes)
	case ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType():
		c.appliedElements(planned, actual, c.appliedValue)
	case !planned.RawEquals(actual):
		c.errorf("was %s, but is now %s", planned, actual)
	}
}

// nullOfAnyType says that the type of a null in a dynamic attribute is of no
// consequence.
func nullOfAnyType(a, b cty.Value) bool {
	return a.IsKnown() && b.IsKnown() && a.IsNull() && b.IsNull()
}

// becomes reports whether planned can have become actual.
func becomes(planned, actual cty.Value) bool {
	probe := checker{probing: true}
	probe.appliedValue(planned, actual)
	return !probe.failed
}
