package stoke_test

import (
	"fmt"
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
	comment    bool
	marks      []mark
}

// tally counts the sentences of comments, or of texts for users.
type tally struct{ all, hit int }

// lint returns the sentences that hit a pattern, and how many sentences the
// comments and the texts for users have. A text for users must not hit
// neverForUsers in a shorter sentence either; W1 is for sentences with a full
// stop, because it is the usual form of a heading.
func lint(texts []prose) (hit []sentence, comments, users tally) {
	for _, p := range texts {
		count := &users
		if p.comment {
			count = &comments
		}
		for _, s := range sentences(p.text) {
			m := marksOf(s)
			switch {
			case strings.Count(s, " ")+1 >= shortest:
				count.all++
			case p.comment:
				continue
			default:
				heading := !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, ";")
				m = slices.DeleteFunc(m, func(m mark) bool { return !slices.Contains(neverForUsers, m.name) || heading && m.name == "W1" })
			}
			if len(m) > 0 {
				count.hit++
				hit = append(hit, sentence{s, p.file, p.line, p.comment, m})
			}
		}
	}
	return hit, comments, users
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

// Limits of the sentences that hit a pattern, in percent of all.
const (
	maxInComments = 12
	maxForUsers   = 1 // messages, help texts, descriptions and pages
)

// neverForUsers are the patterns that no text for users may hit.
var neverForUsers = []string{"W1", "W3", "W7"}

// advice is the place of a sentence, its hits and what to write instead.
func (s sentence) advice() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s:%d: %s", s.file, s.line, s.text)
	for _, m := range s.marks {
		fmt.Fprintf(&out, "\n\t%s: %s", m.name, m.instead)
	}
	return out.String()
}

// rejected reports whether a sentence must be rewritten: it hits two patterns,
// or is for users and hits one of neverForUsers.
func (s sentence) rejected() bool {
	return len(s.marks) > 1 || !s.comment && slices.ContainsFunc(s.marks, func(m mark) bool { return slices.Contains(neverForUsers, m.name) })
}

// checkShare reports more hits than a limit allows.
func checkShare(t *testing.T, what string, n tally, limit int) {
	t.Helper()
	if 100*n.hit > limit*n.all {
		t.Errorf("%d of %d sentences of %s hit a pattern, more than %d %%: write the new ones again, as CONTRIBUTING.md says "+
			"under \"Language\"; go test . -v -run FenceWords -show FOLDER lists them", n.hit, n.all, what, limit)
	}
}

func TestFenceWords(t *testing.T) {
	hit, comments, users := lint(append(goProse(sources(t)), pages(t)...))
	if comments.all < 10000 || users.all < 5000 {
		t.Errorf("only %d sentences in comments and %d for users found: they are not read", comments.all, users.all)
	}
	for _, s := range hit {
		if *show != "" && strings.HasPrefix(s.file, *show) {
			t.Log(s.advice())
		}
		if s.rejected() {
			t.Errorf("write the sentence again, as CONTRIBUTING.md says under \"Language\": %s", s.advice())
		}
	}
	checkShare(t, "comments", comments, maxInComments)
	checkShare(t, "messages, help texts, descriptions and pages", users, maxForUsers)
}
