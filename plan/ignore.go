package plan

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/providers"
)

// IgnoreChanges returns the configuration with the prior object's values where
// lifecycle.ignore_changes says so.
func IgnoreChanges(config, prior cty.Value, l modules.Lifecycle, block *providers.Block) cty.Value {
	if prior.IsNull() || config.IsNull() || !l.IgnoreAll && len(l.IgnoreChanges) == 0 {
		return config
	}
	attrs := config.AsValueMap()
	if l.IgnoreAll {
		for name := range attrs {
			if a := block.Attributes[name]; a == nil || a.Required || a.Optional {
				attrs[name] = prior.GetAttr(name)
			}
		}
		return cty.ObjectVal(attrs)
	}
	for _, path := range l.IgnoreChanges {
		name := stepName(path[0])
		if _, ok := attrs[name]; ok {
			attrs[name] = keepAt(attrs[name], prior.GetAttr(name), path[1:])
		}
	}
	return cty.ObjectVal(attrs)
}

func stepName(step hcl.Traverser) string {
	switch s := step.(type) {
	case hcl.TraverseRoot:
		return s.Name
	case hcl.TraverseAttr:
		return s.Name
	}
	return ""
}

// keepAt returns v with the part that path leads to taken from prior. A key of
// a map that only one of them has is added or left out accordingly.
func keepAt(v, prior cty.Value, path hcl.Traversal) cty.Value {
	if len(path) == 0 {
		return prior
	}
	if !v.IsKnown() || v.IsNull() || prior.IsNull() || !prior.IsKnown() {
		return v
	}
	name := stepName(path[0])
	if index, ok := path[0].(hcl.TraverseIndex); ok {
		if index.Key.Type() == cty.Number {
			return keepElement(v, prior, index.Key, path[1:])
		}
		name = index.Key.AsString()
	}
	ty := v.Type()
	if !ty.IsObjectType() && !ty.IsMapType() || !prior.Type().IsObjectType() && !prior.Type().IsMapType() {
		return v
	}
	mine, theirs := v.AsValueMap(), prior.AsValueMap()
	if mine == nil {
		mine = map[string]cty.Value{}
	}
	inner, here := mine[name]
	old, there := theirs[name]
	switch {
	case here && there:
		mine[name] = keepAt(inner, old, path[1:])
	case there && len(path) == 1 && ty.IsMapType():
		mine[name] = old
	case here && len(path) == 1 && ty.IsMapType():
		delete(mine, name)
	}
	if ty.IsObjectType() {
		return cty.ObjectVal(mine)
	}
	if len(mine) == 0 {
		return cty.MapValEmpty(ty.ElementType())
	}
	return cty.MapVal(mine)
}

func keepElement(v, prior, key cty.Value, rest hcl.Traversal) cty.Value {
	ty := v.Type()
	if !ty.IsListType() && !ty.IsTupleType() || !prior.CanIterateElements() || prior.Type().IsSetType() {
		return v
	}
	n, _ := key.AsBigFloat().Int64()
	mine, theirs := v.AsValueSlice(), prior.AsValueSlice()
	if n < 0 || int(n) >= len(mine) || int(n) >= len(theirs) {
		return v
	}
	mine[n] = keepAt(mine[n], theirs[n], rest)
	if ty.IsTupleType() {
		return cty.TupleVal(mine)
	}
	return cty.ListVal(mine)
}
