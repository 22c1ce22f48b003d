package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression. Its methods have the names and meanings of
// the methods of regexp.Regexp, and many goroutines may call them.
type Pattern struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns the pattern of an expression. The first use panics if the
// expression is not valid; the house test TestPatterns compiles all of them.
func New(text string) *Pattern { return &Pattern{text: text} }

func (p *Pattern) regexp() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}

// Each method below does the work of its namesake in regexp.Regexp.

func (p *Pattern) Match(b []byte) bool                    { return p.regexp().Match(b) }
func (p *Pattern) MatchString(s string) bool              { return p.regexp().MatchString(s) }
func (p *Pattern) FindString(s string) string             { return p.regexp().FindString(s) }
func (p *Pattern) FindStringSubmatch(s string) []string   { return p.regexp().FindStringSubmatch(s) }
func (p *Pattern) FindAllString(s string, n int) []string { return p.regexp().FindAllString(s, n) }
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.regexp().FindAllStringSubmatch(s, n)
}
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.regexp().ReplaceAllString(s, with)
}
func (p *Pattern) ReplaceAllStringFunc(s string, with func(string) string) string {
	return p.regexp().ReplaceAllStringFunc(s, with)
}
