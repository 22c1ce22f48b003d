package contract

import (
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Planned elements of a set are wholly known as a rule: then their hash finds
// the actual ones. Elements with unknown parts are grouped by where these
// parts are; for each group the actual elements are indexed by the hash of
// what remains when these parts are taken out. Groups are few, so the cost is
// linear.

// appliedSet reports the elements of two known sets that have no counterpart.
func (c *checker) appliedSet(planned, actual cty.Value, match func(planned, actual cty.Value) bool) {
	as := actual.AsValueSlice()
	groups := groupByUnknowns(planned.AsValueSlice())
	missing := make([]bool, len(as))
	for i := range missing {
		missing[i] = true
	}
	for _, g := range groups {
		index := make(map[int][]int, len(as))
		for i, a := range as {
			h := removeUnknownIn(a, g.els[0]).Hash()
			index[h] = append(index[h], i)
		}
		g.index = make(map[int][]cty.Value, len(g.els))
		for _, p := range g.els {
			h := removeUnknownIn(p, p).Hash()
			g.index[h] = append(g.index[h], p)
			found := false
			for _, i := range index[h] {
				if match(p, as[i]) {
					found, missing[i] = true, false
					break
				}
			}
			if !found {
				c.errorf("planned element %s is not in the set", p)
			}
		}
	}
	for i, a := range as {
		if missing[i] && !anyBecomes(groups, a, match) {
			c.errorf("element %s was not planned", a)
		}
	}
	// Unknown elements may turn out to be equal, but never to be more.
	if len(as) > planned.LengthInt() {
		c.errorf("has %d elements, but %d were planned", len(as), planned.LengthInt())
	}
}

// unknownGroup is the planned elements whose unknown parts are at the same
// places.
type unknownGroup struct {
	els   []cty.Value
	index map[int][]cty.Value // by the hash of what is known
}

func groupByUnknowns(els []cty.Value) []*unknownGroup {
	var groups []*unknownGroup
	bySignature := map[string]*unknownGroup{}
	for _, el := range els {
		sig := unknownPlaces(el)
		g := bySignature[sig]
		if g == nil {
			g = &unknownGroup{}
			bySignature[sig] = g
			groups = append(groups, g)
		}
		g.els = append(g.els, el)
	}
	return groups
}

func anyBecomes(groups []*unknownGroup, actual cty.Value, match func(planned, actual cty.Value) bool) bool {
	for _, g := range groups {
		for _, p := range g.index[removeUnknownIn(actual, g.els[0]).Hash()] {
			if match(p, actual) {
				return true
			}
		}
	}
	return false
}

// unknownPlaces lists where v is unknown. A set with anything unknown in it
// counts as unknown, as its elements have no place.
func unknownPlaces(v cty.Value) string {
	if v.IsWhollyKnown() {
		return ""
	}
	var b strings.Builder
	writeUnknownPlaces(&b, v, "")
	return b.String()
}

func writeUnknownPlaces(b *strings.Builder, v cty.Value, at string) {
	if v.IsWhollyKnown() {
		return
	}
	if !v.IsKnown() || v.Type().IsSetType() {
		b.WriteString(at + "\n")
		return
	}
	for key, el := range v.Elements() {
		name := ""
		if key.Type() == cty.String {
			name = strconv.Quote(key.AsString())
		} else {
			name = key.AsBigFloat().Text('f', 0)
		}
		writeUnknownPlaces(b, el, at+"/"+name)
	}
}

// removeUnknownIn takes out of v what is unknown in like, and makes empty collections
// null, which older providers don't tell apart.
func removeUnknownIn(v, like cty.Value) cty.Value {
	if !like.IsKnown() || like.Type().IsSetType() && !like.IsWhollyKnown() {
		return cty.NullVal(v.Type())
	}
	if v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		return v
	}
	if empty(v) {
		return cty.NullVal(v.Type())
	}
	if v.Type().IsSetType() || like.IsNull() || !like.CanIterateElements() {
		return v
	}
	return rebuild(v, func(key, el cty.Value) cty.Value {
		if !hasElement(like, key) {
			return removeUnknownIn(el, el)
		}
		return removeUnknownIn(el, element(like, key))
	})
}
