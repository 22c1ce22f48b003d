package redact

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/providers"
)

// Texts are the sensitive texts of objects, to find their copies in the answers
// of providers. Marks and schemas say which places are sensitive; they do not
// say which computed attribute repeats an input (as terraform_data does with
// its output). Such a copy is found by its text.
//
// Found copies are kept out of output for people and of saved plans. It is not
// marked: an expression that refers to it stays as free as it is in Terraform.
type Texts map[string]bool

const (
	// shortestText is the length, in bytes, below which equal texts may be a
	// coincidence.
	shortestText = 4
	// shortestWithin is that for texts within others.
	shortestWithin = 6
)

// Add takes in what is at these places of a value.
func (x Texts) Add(v cty.Value, at []cty.Path) {
	if len(at) == 0 || v == cty.NilVal {
		return
	}
	x.gather(v, []*places{placesOf(at)})
}

func (x Texts) gather(v cty.Value, at []*places) {
	eachLeaf(v, at, func(leaf cty.Value) {
		if text, ok := textOf(leaf); ok {
			x[text] = true
		}
	})
}

// eachLeaf calls f for the known values without parts at the places of a value.
func eachLeaf(v cty.Value, at []*places, f func(cty.Value)) {
	if len(at) == 0 || !v.IsKnown() || v.IsNull() {
		return
	}
	whole := anyHere(at)
	if !v.CanIterateElements() {
		if whole {
			f(v)
		}
		return
	}
	named := v.Type().IsObjectType() || v.Type().IsMapType()
	for it := v.ElementIterator(); it.Next(); {
		key, e := it.Element()
		switch {
		case whole:
			eachLeaf(e, at, f)
		case named:
			eachLeaf(e, childPlaces(at, "."+key.AsString()), f)
		case v.Type().IsSetType():
			eachLeaf(e, childPlaces(at, "*"), f)
		default:
			eachLeaf(e, childPlaces(at, stepKey(cty.IndexStep{Key: key})), f)
		}
	}
}

// textOf is a string or a number as text, where that says enough.
func textOf(v cty.Value) (string, bool) {
	if !v.IsKnown() || v.IsNull() {
		return "", false
	}
	switch v.Type() {
	case cty.String:
		text := v.AsString()
		return text, len(text) >= shortestText
	case cty.Number:
		text := v.AsBigFloat().Text('f', -1)
		return text, len(text) >= shortestWithin
	}
	return "", false
}

// Echoes returns where an object repeats its sensitive values, in addition to
// the sensitive places.
func Echoes(v cty.Value, schema *providers.ResourceSchema, sensitive []cty.Path) []cty.Path {
	if v == cty.NilVal || v.IsNull() {
		return nil
	}
	var b *providers.Block
	if schema != nil {
		b = schema.Block
	}
	return EchoesOf(v, Places{}.SecretPaths(b, sensitive))
}

// EchoesOf is Echoes for the values at these places.
func EchoesOf(v cty.Value, at []cty.Path) []cty.Path {
	if len(at) == 0 || v == cty.NilVal || v.IsNull() {
		return nil
	}
	texts, secret := Texts{}, []*places{placesOf(at)}
	if texts.gather(v, secret); len(texts) == 0 {
		return nil
	}
	var long []string
	for text := range texts {
		if len(text) >= shortestWithin {
			long = append(long, text)
		}
	}
	h := &hidden{texts, newFinder(long)}
	return h.repeated(nil, make(cty.Path, 0, 8), v, secret)
}

// hidden is what the other places of an object are searched for.
type hidden struct {
	texts Texts
	long  *finder // the texts to look for within others
}

// repeated adds the places within a value, other than the secret ones, that
// say something hidden.
func (h *hidden) repeated(found []cty.Path, path cty.Path, v cty.Value, at []*places) []cty.Path {
	if anyHere(at) || !v.IsKnown() || v.IsNull() {
		return found
	}
	if !v.CanIterateElements() {
		if text, ok := textOf(v); ok && h.containsHidden(text) {
			found = append(found, path.Copy())
		}
		return found
	}
	ty := v.Type()
	for it := v.ElementIterator(); it.Next(); {
		key, e := it.Element()
		switch {
		case ty.IsObjectType():
			found = h.repeated(found, append(path, cty.GetAttrStep{Name: key.AsString()}), e, childPlaces(at, "."+key.AsString()))
		case ty.IsMapType():
			found = h.repeated(found, append(path, cty.IndexStep{Key: key}), e, childPlaces(at, "."+key.AsString()))
		case ty.IsSetType():
			if len(h.repeated(nil, nil, e, childPlaces(at, "*"))) > 0 {
				return append(found, path.Copy()) // an element has no place of its own
			}
		default:
			step := cty.IndexStep{Key: key}
			found = h.repeated(found, append(path, step), e, childPlaces(at, stepKey(step)))
		}
	}
	return found
}

// containsHidden reports whether a text is or holds something hidden.
func (h *hidden) containsHidden(text string) bool {
	return h.texts[text] || h.long.foundIn(text)
}

// HideEchoes marks within a value what repeats something that is marked as
// sensitive in it. It is for showing the value, and nothing else.
func HideEchoes(v cty.Value) cty.Value {
	plain, marked, _ := lang.Unmark(v)
	if len(marked.Sensitive) == 0 {
		return v
	}
	found := Echoes(plain, nil, marked.Sensitive)
	if len(found) == 0 {
		return v
	}
	marked.Sensitive = append(marked.Sensitive, found...)
	return marked.Apply(plain)
}
