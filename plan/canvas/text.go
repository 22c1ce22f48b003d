package canvas

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Width returns the number of columns of a text without control characters.
func Width(text string) (n int) {
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// columns returns the number of columns of a character.
func columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// CutText returns the beginning of a text, at most so many columns of it. A text that was
// cut ends with an ellipsis.
func CutText(text string, most int) string {
	if most <= 0 {
		return ""
	}
	if len(text) <= most { // no character has more columns than bytes
		return text
	}
	n, end := 0, 0 // end is where the text is cut if the rest of it does not fit
	for i, r := range text {
		if n <= most-1 {
			end = i
		}
		if n += columns(r); n > most {
			return text[:end] + "…"
		}
	}
	return text
}

// Pad returns a text of exactly so many columns: cut, or with spaces behind it.
func Pad(text string, exactly int) string {
	text = CutText(text, exactly)
	return text + strings.Repeat(" ", max(0, exactly-Width(text)))
}

// Clean returns a text on one line without control characters, escape sequences and
// marks of direction. Tabs are spaces, and bytes that are not UTF-8 are replaced.
func Clean(text string) string {
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		if n := escape(text); n > 0 {
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch {
		case r == '\t':
			b.WriteString("    ")
		case r == '\n':
			b.WriteByte(' ')
		case unicode.IsPrint(r) || unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// escape returns the length of the escape sequence that a text begins with, 0 for
// none. A sequence without its end is as long as the text.
func escape(text string) int {
	if len(text) < 2 || text[0] != 0x1b {
		return 0
	}
	switch text[1] {
	case '[': // a control sequence ends with a letter or a sign from @ to ~
		for i := 2; i < len(text); i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				return i + 1
			}
		}
		return len(text)
	case ']', 'P', 'X', '^', '_': // a string ends with BEL or ESC \
		for i := 2; i < len(text); i++ {
			switch {
			case text[i] == 0x07:
				return i + 1
			case text[i] == 0x1b && i+1 < len(text) && text[i+1] == '\\':
				return i + 2
			}
		}
		return len(text)
	}
	return 2
}
