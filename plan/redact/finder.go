package redact

import (
	"slices"
	"strings"
)

// finder finds texts within others, however many they are: it costs a binary
// search for each byte that one of them begins with.
type finder struct {
	texts  []string // in order, each once
	within []int    // text → the longest other one that it begins with, or -1
	first  [256]bool
}

func newFinder(texts []string) *finder {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	f := &finder{texts: texts, within: make([]int, len(texts))}
	var open []int // what begins with each other, the shortest first
	for i, text := range texts {
		for len(open) > 0 && !strings.HasPrefix(text, texts[open[len(open)-1]]) {
			open = open[:len(open)-1]
		}
		f.within[i] = -1
		if len(open) > 0 {
			f.within[i] = open[len(open)-1]
		}
		open = append(open, i)
		f.first[text[0]] = true
	}
	return f
}

// begins is how many bytes long the longest of the texts is that s begins with.
//
// Such a text sorts before s, and whatever sorts between the two begins with it,
// too: it is the last one that does not sort after s, or what that begins with.
func (f *finder) begins(s string) int {
	if s == "" || !f.first[s[0]] {
		return 0
	}
	i, same := slices.BinarySearch(f.texts, s)
	if same {
		return len(s)
	}
	if i--; i < 0 {
		return 0
	}
	n := common(s, f.texts[i])
	for i >= 0 && len(f.texts[i]) > n {
		i = f.within[i]
	}
	if i < 0 {
		return 0
	}
	return len(f.texts[i])
}

// common is how many bytes two texts have in common at the beginning.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// foundIn reports whether one of the texts is in s.
func (f *finder) foundIn(s string) bool {
	for i := range len(s) {
		if f.begins(s[i:]) > 0 {
			return true
		}
	}
	return false
}

// replace puts another text in the place of each of them. Of two that overlap
// neither leaves a rest.
func (f *finder) replace(s, instead string) string {
	if len(f.texts) == 0 {
		return s
	}
	var out strings.Builder
	done := 0 // how much of s is written or replaced
	for i := range len(s) {
		n := f.begins(s[i:])
		if n == 0 {
			continue
		}
		if i >= done {
			out.WriteString(s[done:i])
			out.WriteString(instead)
		}
		done = max(done, i+n)
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}
