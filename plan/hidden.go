package plan

import (
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/providers"
)

// Hidden is the sensitive text of an object. Marks and schemas say which
// places are sensitive; they do not say where a provider repeats what it was
// given: in an attribute that it computes (as terraform_data does with its
// output), in a message, in a line of a log. There it is found by what it says.
//
// What is found that way is kept out of what people read and out of saved
// plans. It is not marked: an expression that refers to it stays as free as it
// is in Terraform.
type Hidden struct {
	secrets *lang.Secrets // nil: for finding echoes only
	mu      sync.Mutex
	texts   map[string]bool
	long    []string // those to look for within texts
}

const (
	// shortestHidden is the length below which a text says too little to be
	// told from others that happen to be the same, in bytes.
	shortestHidden = 4
	// shortestWithin is that for texts within others.
	shortestWithin = 6
	// mostWithin bounds how many are looked for within others.
	mostWithin = 64
)

// Add takes in what is sensitive of a value: what is at these places, and what
// the schema calls sensitive or write-only. It returns h, which may be nil.
func (h *Hidden) Add(v cty.Value, schema *providers.ResourceSchema, sensitive []cty.Path) *Hidden {
	if v == cty.NilVal {
		return h
	}
	return h.add(v, schemaPlaces{}.of(&Change{Schema: schema, AfterSensitive: sensitive}))
}

func (h *Hidden) add(v cty.Value, at []cty.Path) *Hidden {
	if len(at) == 0 || v == cty.NilVal || v.IsNull() {
		return h
	}
	if h == nil {
		h = &Hidden{texts: map[string]bool{}, secrets: &lang.Secrets{}}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gather(v, []*places{placesOf(at)})
	return h
}

// gather takes in the texts at the places of a value.
func (h *Hidden) gather(v cty.Value, at []*places) {
	if len(at) == 0 || !v.IsKnown() || v.IsNull() {
		return
	}
	whole := anyHere(at)
	if !v.CanIterateElements() {
		if whole && h.secrets != nil {
			h.secrets.AddValue(v, false)
		}
		if text, ok := textOf(v); ok && whole && !h.texts[text] {
			h.texts[text] = true
			if len(text) >= shortestWithin && len(h.long) < mostWithin {
				h.long = append(h.long, text)
			}
		}
		return
	}
	named := v.Type().IsObjectType() || v.Type().IsMapType()
	for it := v.ElementIterator(); it.Next(); {
		key, e := it.Element()
		switch {
		case whole:
			h.gather(e, at)
		case named:
			h.gather(e, into(at, "."+key.AsString()))
		case v.Type().IsSetType():
			h.gather(e, into(at, "*"))
		default:
			h.gather(e, into(at, stepKey(cty.IndexStep{Key: key})))
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
		return text, len(text) >= shortestHidden
	case cty.Number:
		text := v.AsBigFloat().Text('f', -1)
		return text, len(text) >= shortestWithin
	}
	return "", false
}

// Redact is a text without what is hidden. h may be nil.
func (h *Hidden) Redact(text string) string {
	if h == nil {
		return text
	}
	return h.secrets.Redact(text)
}

// Said is what a provider says, without what is hidden.
func (h *Hidden) Said(diags providers.Diagnostics) providers.Diagnostics {
	if h == nil {
		return diags
	}
	out := slices.Clone(diags)
	for i := range out {
		out[i].Summary, out[i].Detail = h.Redact(out[i].Summary), h.Redact(out[i].Detail)
	}
	return out
}

// Echoes returns where an object repeats what is sensitive in it, beside the
// sensitive places themselves.
func Echoes(v cty.Value, schema *providers.ResourceSchema, sensitive []cty.Path) []cty.Path {
	if v == cty.NilVal || v.IsNull() {
		return nil
	}
	return echoes(v, schemaPlaces{}.of(&Change{Schema: schema, AfterSensitive: sensitive}))
}

func echoes(v cty.Value, at []cty.Path) []cty.Path {
	if len(at) == 0 || v == cty.NilVal || v.IsNull() {
		return nil
	}
	h, secret := &Hidden{texts: map[string]bool{}}, []*places{placesOf(at)}
	if h.gather(v, secret); len(h.texts) == 0 {
		return nil
	}
	return h.repeated(nil, make(cty.Path, 0, 8), v, secret)
}

// repeated adds the places within a value, other than the secret ones, that
// say something hidden.
func (h *Hidden) repeated(found []cty.Path, path cty.Path, v cty.Value, at []*places) []cty.Path {
	if anyHere(at) || !v.IsKnown() || v.IsNull() {
		return found
	}
	if !v.CanIterateElements() {
		if text, ok := textOf(v); ok && h.says(text) {
			found = append(found, path.Copy())
		}
		return found
	}
	ty := v.Type()
	for it := v.ElementIterator(); it.Next(); {
		key, e := it.Element()
		switch {
		case ty.IsObjectType():
			found = h.repeated(found, append(path, cty.GetAttrStep{Name: key.AsString()}), e, into(at, "."+key.AsString()))
		case ty.IsMapType():
			found = h.repeated(found, append(path, cty.IndexStep{Key: key}), e, into(at, "."+key.AsString()))
		case ty.IsSetType():
			if len(h.repeated(nil, nil, e, into(at, "*"))) > 0 {
				return append(found, path.Copy()) // an element has no place of its own
			}
		default:
			step := cty.IndexStep{Key: key}
			found = h.repeated(found, append(path, step), e, into(at, stepKey(step)))
		}
	}
	return found
}

// says reports whether a text is or holds something hidden.
func (h *Hidden) says(text string) bool {
	return h.texts[text] || slices.ContainsFunc(h.long, func(l string) bool { return strings.Contains(text, l) })
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
