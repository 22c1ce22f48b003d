package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stokehq/stoke/providers"
)

// Source lists the runs that a dashboard shows. All texts that it and its runs give
// are without secrets. Its methods may be called by several goroutines.
type Source interface {
	// Runs returns the runs, in the order of the state.
	Runs(ctx context.Context) ([]Entry, error)
	// Validate checks a configuration that the form has written, as a new file of the
	// folder, and returns the problems as lines for people.
	Validate(ctx context.Context, file, hcl string) ([]string, error)
	// Plan returns the plan of the folder with the configuration as a new file. It changes
	// nothing. Where the plan fails, err says so, and the plan's text ends with
	// its errors.
	Plan(ctx context.Context, file, hcl string) (Plan, error)
	// Drift compares the run at an address, and all that it depends on, with the real
	// objects. It changes nothing. Where it fails, err says so, and the text ends with the
	// errors.
	Drift(ctx context.Context, address string) (Drift, error)
	// Save writes the configuration to a new file of the folder and returns the
	// file's path. Where the dashboard may not write, MayWrite is false.
	Save(ctx context.Context, name, hcl string) (path string, err error)
	MayWrite() bool
	// MayApply reports whether a plan may be applied; without that no Plan has Apply.
	MayApply() bool
}

// Plan is a plan for people.
type Plan struct {
	Text                       string
	Add, Change, Destroy, Left int // objects; Left: what only a later plan can decide
	// Apply saves the configuration as a new file of the folder and carries the plan out.
	// It is an error if there is such a file, or if the state has changed since. stop is
	// closed for an apply that shall finish its steps and end; the end of ctx ends the
	// steps. line hears what the apply prints, from one goroutine at a time. nil: the
	// dashboard may not apply, or nothing is to be done.
	Apply func(ctx context.Context, file string, stop <-chan struct{}, line func(string)) error
}

// Drift is what has changed outside of stoke since the last apply.
type Drift struct {
	Objects int    // that have changed
	Text    string // the changes and the warnings, for people
	// Warnings counts the plan's warnings: a provider that cannot read an object warns, and
	// keeps its stored values.
	Warnings int
}

// Totals returns the summary of the plan.
func (p *Plan) Totals() string {
	text := fmt.Sprintf("%s to add, %s to change, %s to destroy",
		integer(int64(p.Add)), integer(int64(p.Change)), integer(int64(p.Destroy)))
	if p.Left > 0 {
		text += fmt.Sprintf(", %s left for a later apply", integer(int64(p.Left)))
	}
	return text
}

// Entry is one run of a Source.
type Entry struct {
	Address       string
	ID            string            // of the run; changes with a new one at the address
	Configuration map[string]string // arguments by path
	Run           func(ctx context.Context) (providers.Run, error)
}

// Bounds of texts on a page, in bytes.
const (
	longestName = 200
	longestLine = 4 << 10
	longestText = 2 << 10
)

// cleanText returns a text without characters that move a cursor or turn the direction
// of writing, cut to so many bytes. Line feeds stay where isMany allows them.
func cleanText(text string, most int, isMany bool) string {
	isCut := len(text) > most
	if isCut {
		text = text[:most]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		if r, n := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && n == 1 {
			text = text[:len(text)-1] // the first byte of the character that is cut
		}
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t', isMany && r == '\n', unicode.IsPrint(r):
			return r
		case r == '\n':
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if isCut {
		text += "…"
	}
	return text
}

// keyOf returns the name that pages and scripts have for a run: its address, or a hash
// where a link could not have the address as it is.
func keyOf(address string) string {
	if name(address) == address && len(address) <= longestName {
		return address
	}
	sum := sha256.Sum256([]byte(address))
	return "run-" + hex.EncodeToString(sum[:16])
}

// name returns a name as pages show it.
func name(text string) string { return cleanText(text, longestName, false) }
