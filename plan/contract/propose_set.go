package contract

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Elements of a set have no name to find them again by. An element of the
// prior set belongs to a configured one when it differs from it in computed
// attributes only, and there only where nothing is configured.
//
// Comparing all with all would be quadratic. Instead the configured elements
// are grouped by which computed attributes they leave open; for each group
// the prior elements, with just these attributes removed, are indexed by
// their hash. Configurations have one or two such groups.

// proposeSet merges the elements of a known set.
func (s shape) proposeSet(prior, config cty.Value) cty.Value {
	if empty(config) {
		return config
	}
	els := config.AsValueSlice()
	var candidates *priorSet
	if prior.IsKnown() && !prior.IsNull() && prior.CanIterateElements() {
		candidates = &priorSet{shape: s, els: prior.AsValueSlice()}
		candidates.used = make([]bool, len(candidates.els))
	}
	out := make([]cty.Value, len(els))
	for i, el := range els {
		match := cty.NullVal(cty.DynamicPseudoType)
		switch {
		case !prior.IsKnown():
			match = cty.DynamicVal
		case candidates != nil:
			match = candidates.take(el)
		}
		out[i] = s.propose(match, el)
	}
	if !cty.CanSetVal(out) {
		return config
	}
	return cty.SetVal(out)
}

// priorSet hands out each element of a prior set at most once.
type priorSet struct {
	shape
	els    []cty.Value
	used   []bool
	groups map[string]map[int][]int // open attributes → hash → elements
}

// take returns the first unused element that can have come from config, and
// null when there is none.
func (p *priorSet) take(config cty.Value) cty.Value {
	none := cty.NullVal(cty.DynamicPseudoType)
	if config.IsNull() || !config.IsWhollyKnown() {
		return none // a known prior element never equals it
	}
	var open openings
	open.object(p.attrs, p.blocks, config, "")
	index := p.index(open.String(), config)
	want := p.mask(config, config) // without what is write-only
	hash := want.Hash()
	waiting := index[hash]
	for len(waiting) > 0 {
		i := waiting[0]
		waiting = waiting[1:]
		index[hash] = waiting
		if p.used[i] || !equalValues(p.mask(p.els[i], config), want) {
			continue
		}
		p.used[i] = true
		return p.els[i]
	}
	return none
}

// index is built from the first configured element of its group, which stands
// for all of them: they leave the same attributes open.
func (p *priorSet) index(group string, config cty.Value) map[int][]int {
	if index, ok := p.groups[group]; ok {
		return index
	}
	index := make(map[int][]int, len(p.els))
	for i, el := range p.els {
		if el.IsWhollyKnown() {
			h := p.mask(el, config).Hash()
			index[h] = append(index[h], i)
		}
	}
	if p.groups == nil {
		p.groups = make(map[string]map[int][]int, 1)
	}
	p.groups[group] = index
	return index
}

// mask removes from prior what config leaves open to the provider.
func (s shape) mask(prior, config cty.Value) cty.Value {
	if prior.IsNull() || config.IsNull() {
		return prior
	}
	vals := make(map[string]cty.Value, len(s.attrs)+len(s.blocks))
	for name, a := range s.attrs {
		p, c := prior.GetAttr(name), config.GetAttr(name)
		switch {
		case a.Computed && c.IsNull():
			vals[name] = c
		case a.WriteOnly:
			vals[name] = cty.NullVal(a.ImpliedType())
		case a.Nested != nil:
			vals[name] = attributeShape(a.Nested).maskNested(p, c)
		default:
			vals[name] = p
		}
	}
	for name, b := range s.blocks {
		vals[name] = blockShape(b).maskNested(prior.GetAttr(name), config.GetAttr(name))
	}
	return cty.ObjectVal(vals)
}

func (s shape) maskNested(prior, config cty.Value) cty.Value {
	if prior.IsNull() || config.IsNull() || s.nesting == providers.Set {
		return prior // sets within sets have to be equal as a whole
	}
	if s.nesting == providers.Single || s.nesting == providers.Group {
		return s.mask(prior, config)
	}
	if empty(prior) {
		return prior
	}
	return rebuild(prior, func(key, el cty.Value) cty.Value {
		return s.mask(el, element(config, key))
	})
}

// openings lists the paths of the attributes that a configured object leaves
// to the provider: elements with the same list are masked in the same way.
type openings struct{ paths []string }

func (o *openings) String() string {
	slices.Sort(o.paths)
	return strings.Join(o.paths, "\n")
}

func (o *openings) object(attrs map[string]*providers.Attribute, blocks map[string]*providers.NestedBlock, v cty.Value, at string) {
	if v.IsNull() {
		return
	}
	for name, a := range attrs {
		el := v.GetAttr(name)
		switch {
		case a.Computed && el.IsNull():
			o.paths = append(o.paths, at+"."+name)
		case a.Nested != nil:
			o.nested(attributeShape(a.Nested), el, at+"."+name)
		}
	}
	for name, b := range blocks {
		o.nested(blockShape(b), v.GetAttr(name), at+"."+name)
	}
}

func (o *openings) nested(s shape, v cty.Value, at string) {
	if v.IsNull() || s.nesting == providers.Set {
		return
	}
	if s.nesting == providers.Single || s.nesting == providers.Group {
		o.object(s.attrs, s.blocks, v, at)
		return
	}
	i := 0
	for key, el := range v.Elements() {
		index := strconv.Itoa(i)
		if key.Type() == cty.String {
			index = strconv.Quote(key.AsString())
		}
		o.object(s.attrs, s.blocks, el, at+"["+index+"]")
		i++
	}
}
