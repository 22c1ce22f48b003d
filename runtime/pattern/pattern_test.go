package pattern

import (
	"regexp"
	"slices"
	"sync"
	"testing"
)

// TestPattern: each method does what the one of regexp does, and an expression is
// compiled once, when it is first used.
func TestPattern(t *testing.T) {
	const text, in = `([a-z])([0-9]*)`, "a1 b22 c"
	p, want := New(text), regexp.MustCompile(text)
	if p.compiled != nil {
		t.Error("compiled before it is used")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { p.MatchString(in) })
	}
	all.Wait()
	first := p.compiled
	upper := func(s string) string { return s + "!" }
	for name, same := range map[string]bool{
		"Match":                 p.Match([]byte(in)) == want.Match([]byte(in)) && !p.Match([]byte("-")),
		"MatchString":           p.MatchString(in) && !p.MatchString("-"),
		"FindString":            p.FindString(in) == want.FindString(in),
		"FindStringSubmatch":    slices.Equal(p.FindStringSubmatch(in), want.FindStringSubmatch(in)),
		"FindAllString":         slices.Equal(p.FindAllString(in, 2), want.FindAllString(in, 2)),
		"FindAllStringSubmatch": slices.EqualFunc(p.FindAllStringSubmatch(in, -1), want.FindAllStringSubmatch(in, -1), slices.Equal),
		"ReplaceAllString":      p.ReplaceAllString(in, "$2$1") == want.ReplaceAllString(in, "$2$1"),
		"ReplaceAllStringFunc":  p.ReplaceAllStringFunc(in, upper) == want.ReplaceAllStringFunc(in, upper),
	} {
		if !same {
			t.Errorf("%s differs from regexp's", name)
		}
	}
	if first == nil || p.compiled != first {
		t.Error("compiled more than once")
	}
}
