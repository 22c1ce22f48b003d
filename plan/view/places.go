package view

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// places is a set of paths as a trie, so that a walk over a value can ask at
// every step whether the place it stands at belongs to the set. The nil set
// is empty. Attribute names and string keys are one and the same here.
type places struct {
	here  bool
	named map[string]*places
	at    map[int]*places
	any   *places // below every index or key
}

func placesOf(paths []cty.Path) *places {
	if len(paths) == 0 {
		return nil
	}
	root := &places{}
	for _, path := range paths {
		root.add(path)
	}
	return root
}

func (s *places) add(path cty.Path) {
	for _, step := range path {
		switch st := step.(type) {
		case cty.GetAttrStep:
			s = s.makeName(st.Name)
			continue
		case cty.IndexStep:
			key := st.Key
			if key.IsKnown() && !key.IsNull() && key.Type() == cty.String {
				s = s.makeName(key.AsString())
				continue
			}
			if key.IsKnown() && !key.IsNull() && key.Type() == cty.Number {
				n, _ := key.AsBigFloat().Int64()
				s = s.makeIndex(int(n))
				continue
			}
		}
		break // an element of a set: the set as a whole
	}
	s.here = true
}

func (s *places) makeName(name string) *places {
	if s.named == nil {
		s.named = make(map[string]*places)
	}
	if s.named[name] == nil {
		s.named[name] = &places{}
	}
	return s.named[name]
}

func (s *places) makeIndex(i int) *places {
	if s.at == nil {
		s.at = make(map[int]*places)
	}
	if s.at[i] == nil {
		s.at[i] = &places{}
	}
	return s.at[i]
}

func (s *places) contains() bool { return s != nil && s.here }

// name is the set below an attribute or string key.
func (s *places) name(n string) *places {
	if s == nil {
		return nil
	}
	if next := s.named[n]; next != nil {
		return next
	}
	return s.any
}

// index is the set below an element of a sequence.
func (s *places) index(i int) *places {
	if s == nil {
		return nil
	}
	if next := s.at[i]; next != nil {
		return next
	}
	return s.any
}

// containsBelow reports whether any place strictly inside is in the set.
func (s *places) containsBelow() bool {
	return s != nil && (len(s.named) > 0 || len(s.at) > 0 || s.any != nil)
}

// secret is what must not be shown of one value: places that the plan names
// and places that the schema declares. Both are asked, so that a value stays
// hidden when either of them says so.
type secret struct{ named, declared *places }

func (s secret) atSecret() bool       { return s.named.contains() || s.declared.contains() }
func (s secret) aboveSecret() bool    { return s.named.containsBelow() || s.declared.containsBelow() }
func (s secret) name(n string) secret { return secret{s.named.name(n), s.declared.name(n)} }
func (s secret) index(i int) secret   { return secret{s.named.index(i), s.declared.index(i)} }

// sensitivePlaces collects the sensitive attributes of a schema; nil when none is.
func sensitivePlaces(b *providers.Block) *places {
	if b == nil {
		return nil
	}
	s := &places{}
	declareAttributes(s, b.Attributes)
	for name, nested := range b.Blocks {
		if inner := sensitivePlaces(nested.Block); inner != nil {
			s.graft(name, nested.Nesting, inner)
		}
	}
	if !s.containsBelow() {
		return nil
	}
	return s
}

func declareAttributes(s *places, attrs map[string]*providers.Attribute) {
	for name, a := range attrs {
		if a.Sensitive {
			s.makeName(name).here = true
			continue
		}
		if a.Nested != nil {
			inner := &places{}
			declareAttributes(inner, a.Nested.Attributes)
			if inner.containsBelow() {
				s.graft(name, a.Nested.Nesting, inner)
			}
		}
	}
}

func (s *places) graft(name string, nesting providers.Nesting, inner *places) {
	at := s.makeName(name)
	if nesting == providers.Single || nesting == providers.Group {
		*at = *inner
		return
	}
	at.any = inner
}
