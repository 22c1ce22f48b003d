package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/stokehq/stoke/providers"
)

// fileSecrets is what is sensitive of one record. It is sealed as a whole;
// in the record itself its places are unknown.
type fileSecrets struct {
	Before       [][]byte `json:"before,omitempty"` // in the order of cut
	After        [][]byte `json:"after,omitempty"`
	Config       [][]byte `json:"config,omitempty"`
	Private      []byte   `json:"private,omitempty"`
	PriorPrivate []byte   `json:"prior_private,omitempty"`
}

func (s *fileSecrets) empty() bool {
	return len(s.Before)+len(s.After)+len(s.Config)+len(s.Private)+len(s.PriorPrivate) == 0
}

// schemaPlaces remembers the secret places of schemas.
type schemaPlaces map[*providers.ResourceSchema][]cty.Path

// of are the places of a change that no file may show: what the configuration
// or the schema marks, and what is only ever written.
func (known schemaPlaces) of(c *Change) []cty.Path {
	paths, ok := known[c.Schema]
	if !ok && c.Schema != nil {
		paths = blockPlaces(nil, nil, c.Schema.Block)
		known[c.Schema] = paths
	}
	if len(c.BeforeSensitive)+len(c.AfterSensitive) == 0 {
		return paths
	}
	paths = slices.Clone(paths)
	for _, list := range [][]cty.Path{c.BeforeSensitive, c.AfterSensitive} {
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

// blockPlaces adds the secret attributes of a block. An element of something
// that is repeated is meant by an unknown key.
func blockPlaces(into []cty.Path, at cty.Path, b *providers.Block) []cty.Path {
	into = attributePlaces(into, at, b.Attributes)
	for name, n := range b.Blocks {
		into = blockPlaces(into, within(at.Copy().GetAttr(name), n.Nesting), n.Block)
	}
	return into
}

func attributePlaces(into []cty.Path, at cty.Path, attrs map[string]*providers.Attribute) []cty.Path {
	for name, a := range attrs {
		switch path := at.Copy().GetAttr(name); {
		case a.Sensitive || a.WriteOnly:
			into = append(into, path)
		case a.Nested != nil:
			into = attributePlaces(into, within(path, a.Nested.Nesting), a.Nested.Attributes)
		}
	}
	return into
}

func within(at cty.Path, n providers.Nesting) cty.Path {
	if n == providers.Single || n == providers.Group {
		return at
	}
	return at.Index(cty.DynamicVal)
}

// places is a set of paths as a trie; names and string keys are one and the
// same, and every element is meant by "*".
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

// into is what lies below one step, of all the sets that a walk is in.
func into(sets []*places, key string) []*places {
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

// cut takes the secrets out of a value: their places and themselves are
// returned, in the order of a walk, and they are unknown in what is left.
func cut(v cty.Value, paths []cty.Path) (left cty.Value, found []cty.Path, secrets [][]byte, err error) {
	if len(paths) == 0 || v == cty.NilVal {
		return v, nil, nil, nil
	}
	left, err = replace(nil, v, []*places{placesOf(paths)}, func(path cty.Path, at cty.Value) (cty.Value, error) {
		if !at.IsKnown() {
			return at, nil
		}
		b, err := msgpack.Marshal(at, cty.DynamicPseudoType)
		found, secrets = append(found, path.Copy()), append(secrets, b)
		return cty.UnknownVal(at.Type()), err
	})
	return left, found, secrets, err
}

// mend puts the secrets back that cut took out.
func mend(v cty.Value, found []cty.Path, secrets [][]byte) (cty.Value, error) {
	if len(secrets) != len(found) {
		return v, errors.New("sealed values and their places do not match")
	}
	if len(found) == 0 {
		return v, nil
	}
	mended := 0
	out, err := replace(nil, v, []*places{placesOf(found)}, func(path cty.Path, at cty.Value) (cty.Value, error) {
		if mended == len(secrets) || at.IsKnown() || !path.Equals(found[mended]) {
			return cty.DynamicVal, errors.New("sealed values and their places do not match")
		}
		mended++
		return msgpack.Unmarshal(secrets[mended-1], cty.DynamicPseudoType)
	})
	if err == nil && mended < len(secrets) {
		err = errors.New("there are more sealed values than places for them")
	}
	return out, err
}

// hides reports whether cut would find anything.
func hides(v cty.Value, paths []cty.Path) bool {
	if len(paths) == 0 || v == cty.NilVal {
		return false
	}
	some := false
	_, err := replace(nil, v, []*places{placesOf(paths)}, func(_ cty.Path, at cty.Value) (cty.Value, error) {
		some = some || at.IsKnown()
		return at, nil
	})
	return some || err != nil
}

type replacement func(path cty.Path, at cty.Value) (cty.Value, error)

// replace changes what is in the sets, from above and in one order always; of
// what is changed, nothing within is visited. Nulls hide nothing and stay.
func replace(path cty.Path, v cty.Value, sets []*places, with replacement) (cty.Value, error) {
	ty := v.Type()
	switch {
	case len(sets) == 0 || v.IsNull():
		return v, nil
	case anyHere(sets) || ty.IsSetType() && v.IsKnown(): // a set that holds a secret is one as a whole
		return with(path, v)
	case !v.IsKnown():
		return v, nil
	case ty.IsObjectType() || ty.IsMapType():
		return replaceNamed(path, v, sets, with)
	case v.CanIterateElements() && v.LengthInt() > 0:
		list := make([]cty.Value, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			key, e := it.Element()
			step := cty.IndexStep{Key: key}
			e, err := replace(append(path, step), e, into(sets, stepKey(step)), with)
			if err != nil {
				return v, err
			}
			list = append(list, e)
		}
		if ty.IsTupleType() {
			return cty.TupleVal(list), nil
		}
		return listOf(list, ty)
	}
	return v, nil
}

func replaceNamed(path cty.Path, v cty.Value, sets []*places, with replacement) (cty.Value, error) {
	all := v.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var step cty.PathStep = cty.GetAttrStep{Name: name}
		if v.Type().IsMapType() {
			step = cty.IndexStep{Key: cty.StringVal(name)}
		}
		e, err := replace(append(path, step), all[name], into(sets, "."+name), with)
		if err != nil {
			return v, err
		}
		all[name] = e
	}
	switch {
	case len(all) == 0:
		return v, nil
	case v.Type().IsObjectType():
		return cty.ObjectVal(all), nil
	}
	if !cty.CanMapVal(all) {
		return v, errors.New("sealed values do not fit the map that they belong to")
	}
	return cty.MapVal(all), nil
}

func listOf(list []cty.Value, ty cty.Type) (cty.Value, error) {
	if !cty.CanListVal(list) {
		return cty.DynamicVal, fmt.Errorf("sealed values do not fit the %s that they belong to", ty.FriendlyName())
	}
	return cty.ListVal(list), nil
}
