package redact

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
)

// Secrets are texts that no message may repeat, however many they are. They may
// be used by several goroutines.
type Secrets struct {
	mu       sync.Mutex
	texts    map[string]bool
	finder   *finder // nil: texts are new
	withheld string
}

const (
	// shortestSecret is the length, in bytes, below which a secret is only taken
	// out of messages in quotation marks: it may be any word.
	shortestSecret = 6
	// shortestLine is that for one line of a secret of several, as logs show
	// it: a shorter one is more likely a piece of syntax.
	shortestLine = 12
	// instead replaces a secret.
	instead = "(sensitive value)"
)

// SecretsOf are these texts.
func SecretsOf(texts []string) *Secrets {
	s := &Secrets{texts: make(map[string]bool, len(texts))}
	for _, text := range texts {
		s.texts[text] = true
	}
	return s
}

// FoundIn reports whether a text says one of the secrets. s may be nil.
func (s *Secrets) FoundIn(text []byte) bool {
	return s != nil && s.Redact(string(text)) != string(text)
}

// Add takes in a text.
func (s *Secrets) Add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" || s.texts[text] {
		return
	}
	if s.texts == nil {
		s.texts = make(map[string]bool)
	}
	s.texts[text], s.finder = true, nil
}

// Withhold replaces every message, because the secrets are not known.
func (s *Secrets) Withhold(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withheld = "(withheld: " + why + ")"
}

// AddValue takes in the texts within a value, or with marked only within its
// sensitive parts.
func (s *Secrets) AddValue(v cty.Value, marked bool) {
	if marked {
		if !v.ContainsMarked() {
			return
		}
		if v.HasMark(lang.Sensitive) || v.HasMark(lang.Ephemeral) {
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

// AddAt takes in the texts at these places of a value, which is unmarked.
func (s *Secrets) AddAt(v cty.Value, at []cty.Path) {
	if len(at) > 0 && v != cty.NilVal {
		eachLeaf(v, []*places{placesOf(at)}, func(leaf cty.Value) { s.AddValue(leaf, false) })
	}
}

// Redact is a message without the secrets, also where they are quoted.
func (s *Secrets) Redact(text string) string {
	s.mu.Lock()
	if s.finder == nil {
		s.finder = newFinder(forms(slices.Collect(maps.Keys(s.texts))))
	}
	f, withheld := s.finder, s.withheld
	s.mu.Unlock()
	if withheld != "" && text != "" {
		return withheld
	}
	return f.replace(text, instead)
}

// forms are how messages write secrets: as they are, within quotation marks of
// Go and of JSON, and in URLs.
func forms(texts []string) []string {
	all := make([]string, 0, 3*len(texts))
	add := func(text string) {
		if len(text) >= shortestSecret {
			all = append(all, text)
		}
	}
	for _, text := range texts {
		quoted := strconv.Quote(text)
		all = append(all, quoted)
		add(text)
		add(quoted[1 : len(quoted)-1])
		if js, err := json.Marshal(text); err == nil {
			all = append(all, string(js))
			add(string(js[1 : len(js)-1]))
		}
		add(url.QueryEscape(text))
		add(url.PathEscape(text))
		if strings.ContainsRune(text, '\n') {
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); len(line) >= shortestLine {
					all = append(all, line)
				}
			}
		}
	}
	return all
}
