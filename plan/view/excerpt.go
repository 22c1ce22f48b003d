package view

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/runtime/pattern"
)

const (
	excerptLines = 12  // more than that tells no more
	excerptCut   = 160 // characters of one line
)

// excerpt is the place of a diagnostic: file, line, the block it is in, the
// lines themselves and the values of what the expression refers to.
func (p *Printer) excerpt(d *hcl.Diagnostic, src Sources) []string {
	rng := *d.Subject
	where := "  on " + printable(rng.Filename) + " line " + decimal(rng.Start.Line)
	var text []byte
	if src != nil {
		text = src(rng.Filename)
	}
	if text == nil || !utf8.Valid(window(text, rng)) {
		values := p.values(d)
		if len(values) == 0 {
			return []string{where}
		}
		return append([]string{where + ":"}, values...)
	}
	first, last := rng.Start.Line, rng.End.Line
	if d.Context != nil && d.Context.Filename == rng.Filename && d.Context.Start.Line <= first {
		first, last = d.Context.Start.Line, max(last, d.Context.End.Line)
		if last-first >= excerptLines {
			first, last = rng.Start.Line, rng.End.Line
		}
	}
	if rng.End.Column == 1 && last == rng.End.Line && last > first && (d.Context == nil || d.Context.End.Line <= last) {
		last-- // a range that ends before the first character of a line
	}
	last = min(last, first+excerptLines-1)
	lines := []string{where + inBlock(text, rng.Start.Line) + ":"}
	for n, line := range numberLines(text, first, last) {
		lines = append(lines, p.sourceLine(first+n, line, rng))
	}
	return append(lines, p.values(d)...)
}

// window is the part of text that the range covers, whole lines and no more
// than an excerpt needs.
func window(text []byte, rng hcl.Range) []byte {
	start := min(max(rng.Start.Byte, 0), len(text))
	end := min(max(rng.End.Byte, start), len(text), start+4096)
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return text[start:end]
}

// numberLines returns lines first to last (from 1) of text.
func numberLines(text []byte, first, last int) []string {
	var lines []string
	for n := 1; n <= last; n++ {
		line, rest, more := bytes.Cut(text, []byte{'\n'})
		if n >= first {
			lines = append(lines, string(line))
		}
		if !more {
			break
		}
		text = rest
	}
	return lines
}

// sourceLine sets one line with its number; what is at fault is underlined
// on a terminal. Of a very long line only the surroundings are shown.
func (p *Printer) sourceLine(n int, line string, rng hcl.Range) string {
	from, to := span(line, n, rng)
	before, fault, after := line[:from], line[from:to], line[to:]
	if utf8.RuneCountInString(line) > excerptCut {
		if r := []rune(before); len(r) > excerptCut/4 {
			before = "…" + string(r[len(r)-excerptCut/4:])
		}
		fault = truncate(fault, excerptCut/2)
		after = truncate(after, excerptCut/4)
	}
	number := decimal(n)
	pad := strings.Repeat(" ", max(0, 4-len(number)))
	return pad + number + ": " + printable(before) + p.paintText(underline, printable(fault)) + printable(strings.TrimRight(after, "\r"))
}

// span is the part of line n that the range covers, in bytes. HCL counts
// columns in characters as people see them; runes are near enough here.
func span(line string, n int, rng hcl.Range) (from, to int) {
	if n < rng.Start.Line || n > rng.End.Line {
		return 0, 0
	}
	from, to = 0, len(line)
	if n == rng.Start.Line {
		from = offset(line, rng.Start.Column)
	}
	if n == rng.End.Line {
		to = offset(line, rng.End.Column)
	}
	return from, max(from, to)
}

func offset(line string, column int) int {
	n := 1
	for at := range line {
		if n >= column {
			return at
		}
		n++
	}
	return len(line)
}

// header matches the first line of a top-level block.
var header = pattern.New(`^([a-z_]+)((?:\s+"[^"\n]{1,200}")*)\s*\{`)

// inBlock names the top-level block that holds a line, by looking for its
// header and end at the left margin, where formatted files have them. Parsing
// again could not be afforded for the files that are most in need of a
// diagnostic: broken and enormous ones.
func inBlock(text []byte, line int) string {
	const reach = 2000 // lines
	lines := numberLines(text, max(1, line-reach), line)
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		if i < len(lines)-1 && strings.HasPrefix(l, "}") {
			return ""
		}
		if m := header.FindStringSubmatch(l); m != nil {
			if i < len(lines)-1 && strings.Contains(l, "}") {
				return "" // a block of one line, closed before
			}
			return ", in " + printable(strings.Join(strings.Fields(m[1]+m[2]), " "))
		}
	}
	return ""
}
