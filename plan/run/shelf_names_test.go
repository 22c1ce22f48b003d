package run_test

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// names are those of all things on the shelf, in order.
func (s *shelf) names() []string {
	var out []string
	for _, attrs := range s.things {
		out = append(out, attrs["name"].AsString())
	}
	slices.Sort(out)
	return out
}

// put lays something on the shelf behind everybody's back.
func (s *shelf) put(id, name string, more map[string]cty.Value) {
	attrs := map[string]cty.Value{}
	for attr, ty := range shelfBlock.ImpliedType().AttributeTypes() {
		attrs[attr] = cty.NullVal(ty)
	}
	attrs["id"], attrs["name"], attrs["stamp"] = cty.StringVal(id), cty.StringVal(name), cty.StringVal("old")
	for attr, v := range more {
		attrs[attr] = v
	}
	s.things[id] = attrs
}
