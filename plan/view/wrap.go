package view

import (
	"strings"
	"unicode/utf8"
)

// wrap breaks running text into lines of at most width characters. Lines that
// begin with white space are set as they are: they are examples, lists or
// listings. A word longer than a line gets a line of its own, unbroken, so that
// it can be copied.
func wrap(text string, width int) []string {
	var lines []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line = strings.TrimRight(printable(line), " \t\r")
		if line == "" || line[0] == ' ' || line[0] == '\t' || len(line) <= width {
			lines = append(lines, line)
			continue
		}
		lines = wrapLine(lines, line, width)
	}
	return lines
}

func wrapLine(lines []string, text string, width int) []string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > width {
			lines = append(lines, b.String())
			b.Reset()
			used = 0
		}
		if used > 0 {
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	if used > 0 {
		lines = append(lines, b.String())
	}
	return lines
}

// paragraph prints wrapped text and ends the line.
func (p *Printer) paragraph(text string) {
	for _, line := range wrap(text, p.columns()) {
		p.print(line, "\n")
	}
}

// counted is "1 thing" or "n things".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return decimal(n) + " " + thing + "s"
}
