package redact

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Places remembers the secret places of schemas. One goroutine uses it at a time.
type Places map[*providers.Block][]cty.Path

// SecretPaths returns the secret places in objects of a type: sensitive or write-only by
// the schema, or named in these lists. The block may be nil, for no schema.
func (known Places) SecretPaths(b *providers.Block, sensitive ...[]cty.Path) []cty.Path {
	paths, ok := known[b]
	if !ok && b != nil {
		paths = blockPlaces(nil, nil, b)
		known[b] = paths
	}
	paths = slices.Clip(paths)
	for _, list := range sensitive {
		for _, p := range list {
			paths = append(paths, addressable(p))
		}
	}
	return paths
}

// addressable cuts a path at an element of a set, which has no place of its
// own: what is left means the whole set.
func addressable(p cty.Path) cty.Path {
	for i, s := range p {
		if ix, ok := s.(cty.IndexStep); ok && (!ix.Key.IsKnown() || ix.Key.Type() != cty.String && ix.Key.Type() != cty.Number) {
			return p[:i]
		}
	}
	return p
}

// blockPlaces adds the secret attributes of a block. An unknown key matches all
// elements of a repeated part.
func blockPlaces(into []cty.Path, at cty.Path, b *providers.Block) []cty.Path {
	into = attributePlaces(into, at, b.Attributes)
	for name, n := range b.Blocks {
		into = blockPlaces(into, elementPath(at.Copy().GetAttr(name), n.Nesting), n.Block)
	}
	return into
}

func attributePlaces(into []cty.Path, at cty.Path, attrs map[string]*providers.Attribute) []cty.Path {
	for name, a := range attrs {
		switch path := at.Copy().GetAttr(name); {
		case a.Sensitive || a.WriteOnly:
			into = append(into, path)
		case a.Nested != nil:
			into = attributePlaces(into, elementPath(path, a.Nested.Nesting), a.Nested.Attributes)
		}
	}
	return into
}

func elementPath(at cty.Path, n providers.Nesting) cty.Path {
	if n == providers.Single || n == providers.Group {
		return at
	}
	return at.Index(cty.DynamicVal)
}

// places is a set of paths as a trie; names and string keys are equal, and "*"
// matches every element.
type places struct {
	here bool
	next map[string]*places
}

func placesOf(paths []cty.Path) *places {
	root := &places{}
	for _, p := range paths {
		at := root
		for _, s := range p {
			key := stepKey(s)
			if at.next == nil {
				at.next = map[string]*places{}
			}
			if at.next[key] == nil {
				at.next[key] = &places{}
			}
			at = at.next[key]
		}
		at.here = true
	}
	return root
}

func stepKey(s cty.PathStep) string {
	switch s := s.(type) {
	case cty.GetAttrStep:
		return "." + s.Name
	case cty.IndexStep:
		switch {
		case !s.Key.IsKnown():
		case s.Key.Type() == cty.String:
			return "." + s.Key.AsString()
		case s.Key.Type() == cty.Number:
			return "#" + s.Key.AsBigFloat().Text('g', -1)
		}
	}
	return "*"
}

// childPlaces returns the subtrees of all sets below one step.
func childPlaces(sets []*places, key string) []*places {
	var next []*places
	for _, p := range sets {
		if n := p.next[key]; n != nil {
			next = append(next, n)
		}
		if n := p.next["*"]; n != nil {
			next = append(next, n)
		}
	}
	return next
}

func anyHere(sets []*places) bool {
	return slices.ContainsFunc(sets, func(p *places) bool { return p.here })
}
