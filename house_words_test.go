package stoke_test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shortest is the least number of words of a sentence that lint checks.
const shortest = 6

// mark is one pattern of English that has to be read twice.
type mark struct {
	name    string
	instead string
	needs   []string       // a sentence without all of these has no hit: cheaper than the expression
	find    *regexp.Regexp // nil: hits is enough
	hits    func(s string) bool
}

const aux = `(?:is|are|was|were|be)`

// old are words that most readers of today have to think about.
var old = []string{"anew", "beside", "but for", "by now", "at hand", "any more", "meanwhile", "alike", "one day", "so far as"}

// marks are the thirteen patterns of CONTRIBUTING.md's language rule.
var marks = []mark{
	{name: "W1", needs: []string{"What ", "Who ", "Whoever ", "Whose ", "Whom "}, hits: clauseFirst,
		instead: "begin with the noun, not with a clause (What, Who, Whoever …)"},
	{name: "W2", needs: []string{" what "}, instead: "put a noun in place of the clause: \"the observed value\"",
		find: regexp.MustCompile(`\b(?:of|by|from|with|for|to|as|than|and|says|tells|knows|keeps|makes|sees|reads|` +
			`is|are|was|shows|finds|undoes|restores) what (?:is|was|are|were|has|had|it|they|there|he|stoke|apply|` +
			`somebody|nobody|cannot|can|may|must|comes|goes|stays|differs|happens|became|becomes)\b`)},
	{name: "W3", needs: []string{"body"}, find: regexp.MustCompile(`\b(?:[Nn]obody|[Ss]omebody|[Ee]verybody|[Aa]nybody)\b`),
		instead: "name the actor: the caller, the provider, the API server, another process"},
	{name: "W4", needs: []string{" no ", " none"}, hits: isNo, instead: "write \"is not a\", \"has none\" or the fact itself"},
	{name: "W5", needs: []string{" says", " tells", " said", " told", " hears", " knows"},
		find:    regexp.MustCompile(`^\w+(?:\.\w+)? (?:says|tells|said|told|hears|knows)\b`),
		instead: "use a standard verb: returns, reports, checks, holds"},
	{name: "W6", needs: old, find: regexp.MustCompile(`\b(?:` + strings.Join(old, "|") + `)\b`),
		instead: "write again, next to, except, already, available, no longer"},
	{name: "W7", needs: []string{"'s"}, find: regexp.MustCompile(`\w's(?: own)?[.,;:)]`),
		instead: "give the possessive its noun: \"the kind's schema\""},
	{name: "W8", needs: []string{"alone"}, find: regexp.MustCompile(`\balone\b`), instead: "write only"},
	{name: "W9", needs: []string{" which", " whom", " whose"},
		instead: "make it a sentence of its own, or use where, whose or a participle",
		find:    regexp.MustCompile(`\b(?:of|by|for|to|from|in|on|after|before|with) (?:which|whom|whose)\b`)},
	{name: "W10", needs: []string{" to "}, instead: "write must, will, should or the plain verb",
		find: regexp.MustCompile(`\b(?:is|are|was|were) (?:not )?to (?:be|go|come|have|hold|happen|make|end|take|say|see)\b`)},
	{name: "W11", needs: []string{"ne that", "nes that", "hose that", "hose of", "hat of", "hose who", "ne who"},
		find:    regexp.MustCompile(`\b(?:[Oo]ne that|ones that|[Tt]hose that|[Tt]hose of|[Tt]hat of|those who|one who)\b`),
		instead: "repeat the noun"},
	{name: "W12", needs: []string{"goes", "comes", "lies", "stands"}, find: regexp.MustCompile(`\b(?:goes|comes|lies|stands)\b`),
		instead: "use the verb of the act: is removed, is read, is stored, follows"},
	{name: "W13", needs: []string{" told", " asked", " looked", " waited", " gone", " spoken", " let", " meant"},
		find:    regexp.MustCompile(`\b` + aux + ` (?:told|asked|looked at|waited for|gone on with|spoken of|let go|meant)\b`),
		instead: "use the active voice with a standard verb: stoke reports, reads, waits for"},
}

var (
	clause = regexp.MustCompile(`(?:^|[.;:!] )(?:What|Who|Whoever|Whose|Whom) `)
	code   = regexp.MustCompile("`[^`]+`")
	no     = regexp.MustCompile(`\b` + aux + ` (?:no |none\b)`)
)

// clauseFirst reports whether a clause begins like a question and ends without
// a question mark.
func clauseFirst(s string) bool {
	for _, at := range clause.FindAllStringIndex(s, -1) {
		rest := s[at[1]:]
		if end := strings.IndexAny(rest, ".?!"); end < 0 || rest[end] != '?' {
			return true
		}
	}
	return false
}

// isNo reports a "no" or "none" after a form of "be", except in front of the
// words that make it plain English: "is no longer".
func isNo(s string) bool {
	for _, at := range no.FindAllStringIndex(s, -1) {
		plain := slices.ContainsFunc([]string{"longer", "more than", "less", "such", "way", "need"}, func(word string) bool {
			return strings.HasPrefix(s[at[1]:], word)
		})
		if !plain || s[at[1]-1] != ' ' {
			return true
		}
	}
	return false
}

// marksOf returns the patterns that a sentence hits. Code within a sentence is
// not prose.
func marksOf(s string) []mark {
	var hit []mark
	if strings.Contains(s, "`") {
		s = code.ReplaceAllString(s, "`code`")
	}
	for _, m := range marks {
		if !slices.ContainsFunc(m.needs, func(part string) bool { return strings.Contains(s, part) }) {
			continue
		}
		if m.find != nil && m.find.MatchString(s) || m.hits != nil && m.hits(s) {
			hit = append(hit, m)
		}
	}
	return hit
}

// sentence is a sentence with its hits.
type sentence struct {
	text, file string
	line       int // of the comment, string or paragraph
	marks      []mark
}

// lint returns the sentences of some texts that hit a pattern, and the number of
// all sentences.
func lint(texts []prose) (hit []sentence, all int) {
	for _, p := range texts {
		for _, s := range sentences(p.text) {
			if strings.Count(s, " ")+1 < shortest {
				continue
			}
			all++
			if m := marksOf(s); len(m) > 0 {
				hit = append(hit, sentence{s, p.file, p.line, m})
			}
		}
	}
	return hit, all
}

// sentences splits a text after each full stop or semicolon that a space
// follows. The spaces within a sentence become single ones, so that a text may
// be wrapped in another way.
func sentences(text string) []string {
	words := strings.Fields(text)
	var list []string
	from := 0
	for i, word := range words {
		if end := word[len(word)-1]; end == '.' || end == ';' || i == len(words)-1 {
			list = append(list, strings.Join(words[from:i+1], " "))
			from = i + 1
		}
	}
	return list
}

var (
	sentenceFence = fence{list: "sentences.txt", plain: true, fault: "times",
		rule:  "Sentences that hit two or more of the patterns W1 to W13, each after its folder.",
		fix:   "write the sentence again, as CONTRIBUTING.md says under \"Language\"",
		group: func(key string) string { _, text, _ := strings.Cut(key, ": "); return text }}
	hitFence = fence{list: "hits.txt", fault: "sentences", group: func(string) string { return "" },
		rule: "Sentences that hit at least one of the patterns W1 to W13, in each folder.",
		fix: "write the new ones again, as CONTRIBUTING.md says under \"Language\" " +
			"(for code that moved here from another folder, change the number by hand in the commit that moves it); " +
			"this lists all of them:"}
)

// key names a sentence in the list of exceptions.
func (s sentence) key() string { return path.Dir(s.file) + ": " + s.text }

// advice is the place of a sentence, its hits and what to write instead.
func (s sentence) advice() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s:%d: %s", s.file, s.line, s.text)
	for _, m := range s.marks {
		fmt.Fprintf(&out, "\n\t%s: %s", m.name, m.instead)
	}
	return out.String()
}

// countHits returns the numbers of the two lists, and the sentences by key.
func countHits(hit []sentence) (twice, byFolder map[string]int, places map[string][]sentence) {
	twice, byFolder, places = make(map[string]int), make(map[string]int), make(map[string][]sentence)
	for _, s := range hit {
		byFolder[path.Dir(s.file)]++
		if len(s.marks) > 1 {
			twice[s.key()]++
			places[s.key()] = append(places[s.key()], s)
		}
	}
	return twice, byFolder, places
}

func TestFenceWords(t *testing.T) {
	hit, all := lint(append(goProse(sources(t)), pages(t)...))
	if all < 10000 {
		t.Errorf("only %d sentences found: the comments are not read", all)
	}
	if *show != "" {
		for _, s := range hit {
			if strings.HasPrefix(s.file, *show) {
				t.Log(s.advice())
			}
		}
	}
	twice, byFolder, places := countHits(hit)
	sentenceFence.check(t, twice, func(key string) string {
		var out []string
		for _, s := range places[key] {
			out = append(out, s.advice())
		}
		return strings.Join(out, "\n")
	})
	hitFence.check(t, byFolder, func(folder string) string { return "go test . -v -run FenceWords -show " + folder })
}
