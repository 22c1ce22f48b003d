package lang

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Secrets are texts that no message may repeat. They may be used by several
// goroutines.
type Secrets struct {
	mu       sync.Mutex
	texts    map[string]bool
	replacer *strings.Replacer
}

const (
	// shortestSecret is the length below which a secret is only taken out of
	// messages where it stands in quotation marks, in bytes: it may be any word.
	shortestSecret = 6
	// mostSecrets bounds how many a message is searched for.
	mostSecrets = 256
	// Instead stands where a secret was.
	instead = "(sensitive value)"
)

// SecretsOf are these texts, however many they are.
func SecretsOf(texts []string) *Secrets {
	s := &Secrets{texts: make(map[string]bool, len(texts))}
	for _, text := range texts {
		s.texts[text] = true
	}
	return s
}

// In reports whether a text says one of the secrets. s may be nil.
func (s *Secrets) In(text []byte) bool { return s != nil && s.Redact(string(text)) != string(text) }

// Add takes in a text.
func (s *Secrets) Add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" || s.texts[text] || len(s.texts) >= mostSecrets {
		return
	}
	if s.texts == nil {
		s.texts = make(map[string]bool)
	}
	s.texts[text], s.replacer = true, nil
}

// AddValue takes in the texts within a value, or with marked those within its
// sensitive parts alone.
func (s *Secrets) AddValue(v cty.Value, marked bool) {
	if marked {
		if !v.ContainsMarked() {
			return
		}
		if v.HasMark(Sensitive) || v.HasMark(Ephemeral) {
			marked = false
		}
	}
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown() || v.IsNull():
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			s.AddValue(e, marked)
		}
	case marked:
	case v.Type() == cty.String:
		s.Add(v.AsString())
	case v.Type() == cty.Number:
		s.Add(v.AsBigFloat().Text('f', -1))
	}
}

// AddReference takes in what is sensitive in what a reference leads to, as far
// as there are values, and in the object that it is a part of: one attribute
// may repeat another one, as the output of terraform_data does.
func (s *Secrets) AddReference(t hcl.Traversal, ctx *hcl.EvalContext) {
	for n := len(t); n > 0; n-- {
		v, diags := t[:n].TraverseAbs(ctx)
		if diags.HasErrors() {
			continue
		}
		s.AddValue(v, true)
		for _, whole := range PartOf(t[:n]) {
			if v, diags := whole.TraverseAbs(ctx); !diags.HasErrors() {
				s.AddValue(v, true)
			}
		}
		return
	}
}

// PartOf is what a reference leads to a part of: references to objects or less,
// the longest first, and not to all instances or to all objects of a type.
func PartOf(t hcl.Traversal) []hcl.Traversal {
	object := 2 // steps to it: its type and its name
	if t.RootName() == "data" {
		object = 3
	}
	if len(t) > object {
		if _, key := t[object].(hcl.TraverseIndex); key {
			object++
		}
	}
	var wholes []hcl.Traversal
	for n := len(t) - 1; n >= object; n-- {
		wholes = append(wholes, t[:n])
	}
	return wholes
}

// Redact is a message without the secrets, also where they are quoted.
func (s *Secrets) Redact(text string) string {
	s.mu.Lock()
	if s.replacer == nil {
		s.replacer = newReplacer(s.texts)
	}
	r := s.replacer
	s.mu.Unlock()
	return r.Replace(text)
}

func newReplacer(texts map[string]bool) *strings.Replacer {
	var all []string
	for text := range texts {
		quoted := strconv.Quote(text)
		all = append(all, quoted)
		if len(text) >= shortestSecret {
			all = append(all, text, quoted[1:len(quoted)-1])
		}
	}
	sort.Slice(all, func(i, j int) bool { return len(all[i]) > len(all[j]) || len(all[i]) == len(all[j]) && all[i] < all[j] })
	var pairs []string
	for _, text := range slices.Compact(all) { // the longest first
		pairs = append(pairs, text, instead)
	}
	return strings.NewReplacer(pairs...)
}

// WithoutSecrets takes out of diagnostics the sensitive values of what their
// expressions refer to: a function that fails may say with what.
func WithoutSecrets(diags hcl.Diagnostics) hcl.Diagnostics {
	for i, d := range diags {
		if d == nil || d.Expression == nil || d.EvalContext == nil {
			continue
		}
		var s Secrets
		for _, traversal := range d.Expression.Variables() {
			s.AddReference(traversal, d.EvalContext)
		}
		if s.texts == nil {
			continue
		}
		if detail := s.Redact(d.Detail); detail != d.Detail {
			clean := *d
			clean.Detail = detail
			diags[i] = &clean
		}
	}
	return diags
}
