package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression. Its methods have the names and meanings of the
// methods of regexp.Regexp, and many goroutines may call them.
type Pattern struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns the pattern of an expression that regexp.MustCompile takes. Where it
// does not take it, the first use panics, and the house test TestPatterns fails.
func New(text string) *Pattern { return &Pattern{text: text} }

func (p *Pattern) regexp() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}

// Match does what regexp.Regexp does under this name.
func (p *Pattern) Match(b []byte) bool { return p.regexp().Match(b) }

// MatchString does what regexp.Regexp does under this name.
func (p *Pattern) MatchString(s string) bool { return p.regexp().MatchString(s) }

// FindString does what regexp.Regexp does under this name.
func (p *Pattern) FindString(s string) string { return p.regexp().FindString(s) }

// FindStringSubmatch does what regexp.Regexp does under this name.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.regexp().FindStringSubmatch(s) }

// FindAllString does what regexp.Regexp does under this name.
func (p *Pattern) FindAllString(s string, n int) []string { return p.regexp().FindAllString(s, n) }

// FindAllStringSubmatch does what regexp.Regexp does under this name.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.regexp().FindAllStringSubmatch(s, n)
}

// ReplaceAllString does what regexp.Regexp does under this name.
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.regexp().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc does what regexp.Regexp does under this name.
func (p *Pattern) ReplaceAllStringFunc(s string, with func(string) string) string {
	return p.regexp().ReplaceAllStringFunc(s, with)
}
