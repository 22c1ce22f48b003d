package view

import (
	"html"
	"strings"
)

// Text from elsewhere (addresses with their keys, values, texts of providers
// and conditions) is always set as code: in a code span, in a fence, or as
// escaped HTML inside <code>. Renderers of Markdown find no markup, mention,
// link or end of a fold in code. A backslash is not enough: they look for
// mentions after removing it.

// longestName bounds a piece of foreign text in a line, in characters.
const longestName = 300

// longestTicks bounds a run of backticks, as what encloses it has to be longer.
const longestTicks = 16

// code is text as a code span.
func code(text string) string {
	text = shortenBackticks(truncate(strings.ReplaceAll(printable(text), "\t", " "), longestName))
	if strings.TrimSpace(text) == "" {
		return "` `"
	}
	ticks := strings.Repeat("`", 1+longestRun(text))
	if len(ticks) > 1 || text[0] == ' ' || text[len(text)-1] == ' ' {
		text = " " + text + " " // which those who read code spans take off again
	}
	return ticks + text + ticks
}

// htmlCode is text as code inside HTML.
func htmlCode(text string) string {
	return "<code>" + html.EscapeString(truncate(printable(text), longestName)) + "</code>"
}

// fence is text as a block of code in a language.
func fence(language, text string) string {
	text = shortenBackticks(text)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	ticks := strings.Repeat("`", max(3, 1+longestRun(text)))
	return ticks + language + "\n" + text + ticks + "\n"
}

// fold is a block that opens on a click below a line of HTML.
func fold(summary, block string) string {
	return "<details><summary>" + summary + "</summary>\n\n" + block + "\n</details>\n\n"
}

// longestRun is the length of the longest run of backticks.
func longestRun(text string) int {
	most, n := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}

// shortenBackticks shortens runs of backticks that nobody has written for people.
func shortenBackticks(text string) string {
	if longestRun(text) <= longestTicks {
		return text
	}
	var b strings.Builder
	n := 0
	for i := range len(text) {
		if text[i] != '`' {
			n = 0
		} else if n++; n > longestTicks {
			if n == longestTicks+1 {
				b.WriteString("…")
			}
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// longestLine bounds a line of a block, in characters.
const longestLine = 1000

// cutLines keeps lines of a text, n bytes at most, and says how many it has
// left out.
func cutLines(text string, n int) string {
	var b strings.Builder
	for left := text; left != ""; {
		line, rest, _ := strings.Cut(left, "\n")
		line = truncate(line, longestLine)
		if b.Len()+len(line) >= n {
			b.WriteString("# … " + counted(1+strings.Count(rest, "\n"), "more line") + "\n")
			break
		}
		b.WriteString(line + "\n")
		left = rest
	}
	return b.String()
}
