package view

import (
	"bufio"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printer writes views to one place in one dress.
type Printer struct {
	Out   io.Writer
	Color bool // ANSI colours
	Box   bool // a frame around diagnostics, as on a terminal
	Width int  // columns for running text; 0 is 78
}

// columns is the width that running text is wrapped to.
func (p *Printer) columns() int {
	switch {
	case p.Width <= 0:
		return 78
	case p.Width < 30:
		return 30
	case p.Width > 120: // longer lines are hard to read
		return 120
	}
	return p.Width
}

// print writes text. A failing writer is a closed terminal or pipe: there is no
// reader to report to.
func (p *Printer) print(text ...string) {
	for _, t := range text {
		_, _ = io.WriteString(p.Out, t)
	}
}

// buffered is the printer with a buffer before its output, for long views.
func (p *Printer) buffered() (*Printer, func()) {
	w := bufio.NewWriterSize(p.Out, 64<<10)
	q := *p
	q.Out = w
	return &q, func() { _ = w.Flush() } // as in print
}

// paint is an ANSI "select graphic rendition" code.
type paint string

const (
	bold      paint = "\x1b[1m"
	underline paint = "\x1b[4m"
	dim       paint = "\x1b[90m"
	red       paint = "\x1b[31m"
	green     paint = "\x1b[32m"
	yellow    paint = "\x1b[33m"
	cyan      paint = "\x1b[36m"
	plain     paint = ""
)

const reset = "\x1b[0m"

// dress puts text in a colour where colours are on.
func dress(on bool, c paint, text string) string {
	if !on || c == plain || text == "" {
		return text
	}
	return string(c) + text + reset
}

func (p *Printer) paintText(c paint, text string) string { return dress(p.Color, c, text) }

// printable replaces what a terminal would act upon (escape sequences, other
// control characters, invalid UTF-8) so that text from files, providers and
// programs is only ever shown.
func printable(text string) string {
	clean := true
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) || isDirection(r) {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case r == '\t':
			b.WriteByte('\t')
		case unicode.IsControl(r) || isDirection(r):
			b.WriteRune('·')
		default:
			b.WriteRune(r) // invalid bytes arrive here as U+FFFD
		}
	}
	return b.String()
}

// isDirection reports the characters that reorder text on the screen.
func isDirection(r rune) bool {
	return (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069)
}

// truncate shortens text to at most n characters and shows that it did.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	i := 0
	for at := range text {
		if i == n-1 {
			return text[:at] + "…"
		}
		i++
	}
	return text
}
