package contract

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// FilterReplace keeps those of a provider's requires-replace paths whose value
// really differs between prior and planned, or may: an unknown planned value
// counts as different. Providers name paths that did not change, too. When
// one of the objects is absent nothing is replaced.
func FilterReplace(paths []cty.Path, prior, planned cty.Value) []cty.Path {
	if prior.IsNull() || planned.IsNull() {
		return nil
	}
	var kept []cty.Path
	for _, p := range paths {
		before, inPrior := lookupPath(p, prior)
		after, inPlanned := lookupPath(p, planned)
		if !inPrior && !inPlanned {
			continue
		}
		if inPrior && inPlanned && after.IsWhollyKnown() && before.RawEquals(after) {
			continue
		}
		if !slices.ContainsFunc(kept, p.Equals) {
			kept = append(kept, p)
		}
	}
	return kept
}

// lookupPath is what p leads to, and false when v has no such place. Unlike
// cty.Path.Apply it finds elements of sets.
func lookupPath(p cty.Path, v cty.Value) (cty.Value, bool) {
	for _, step := range p {
		switch {
		case v.IsNull():
			return cty.NilVal, false
		case !v.IsKnown():
			return cty.DynamicVal, true
		}
		key, ok := stepKey(step)
		switch {
		case !ok || !v.CanIterateElements():
			return cty.NilVal, false
		case v.Type().IsSetType():
			if in := v.HasElement(key); in.IsKnown() && in.False() {
				return cty.NilVal, false
			}
			v = key
		case !hasElement(v, key):
			return cty.NilVal, false
		default:
			v = element(v, key)
		}
	}
	return v, true
}

func stepKey(step cty.PathStep) (cty.Value, bool) {
	switch step := step.(type) {
	case cty.GetAttrStep:
		return cty.StringVal(step.Name), true
	case cty.IndexStep:
		return step.Key, step.Key != cty.NilVal
	}
	return cty.NilVal, false
}

// ChangedPaths lists the innermost places where after differs from before, in
// the order of attribute names, keys and indices. An unknown value differs
// from every other. A set that changed is one place, and so is a collection
// that came, went, or became another kind.
func ChangedPaths(before, after cty.Value) []cty.Path {
	var c changes
	c.value(before, after)
	return c.found
}

type changes struct {
	path  cty.Path
	found []cty.Path
}

func (c *changes) value(before, after cty.Value) {
	if after.IsKnown() && before.IsKnown() && before.IsNull() && after.IsNull() {
		return
	}
	if !c.comparable(before, after) {
		if !after.IsWhollyKnown() || !before.RawEquals(after) {
			c.found = append(c.found, c.path.Copy())
		}
		return
	}
	if after.Type().IsListType() || after.Type().IsTupleType() {
		c.list(before, after)
		return
	}
	c.compareAttributes(before, after)
}

// comparable reports whether both have parts that correspond by name or index.
func (c *changes) comparable(before, after cty.Value) bool {
	if before.IsNull() || after.IsNull() || !before.CanIterateElements() || !after.CanIterateElements() {
		return false
	}
	b, a := before.Type(), after.Type()
	switch {
	case a.IsSetType() || b.IsSetType():
		return false
	case a.IsListType() || a.IsTupleType():
		return b.IsListType() || b.IsTupleType()
	}
	return b.IsMapType() || b.IsObjectType()
}

func (c *changes) list(before, after cty.Value) {
	b, a := before.LengthInt(), after.LengthInt()
	for i := range max(a, b) {
		key := cty.NumberIntVal(int64(i))
		c.path = append(c.path, cty.IndexStep{Key: key})
		if i < a && i < b {
			c.value(before.Index(key), after.Index(key))
		} else {
			c.found = append(c.found, c.path.Copy())
		}
		c.path = c.path[:len(c.path)-1]
	}
}

func (c *changes) compareAttributes(before, after cty.Value) {
	b, a := before.AsValueMap(), after.AsValueMap()
	keys := make(map[string]bool, len(a))
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		var step cty.PathStep = cty.IndexStep{Key: cty.StringVal(k)}
		if after.Type().IsObjectType() {
			step = cty.GetAttrStep{Name: k}
		}
		c.path = append(c.path, step)
		bv, inBefore := b[k]
		av, inAfter := a[k]
		if inBefore && inAfter {
			c.value(bv, av)
		} else {
			c.found = append(c.found, c.path.Copy())
		}
		c.path = c.path[:len(c.path)-1]
	}
}
