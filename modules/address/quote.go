package address

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// Quote writes s as an HCL string literal, in double quotes and with HCL's escapes,
// what cannot be printed as \uXXXX. Template introducers are doubled, so that reading
// it back never starts an interpolation.
func Quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		case r > 0xffff && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// unquote reads the HCL string literal at the start of text and returns its
// value, normalised as the language normalises every string (NFC), and what
// follows it.
func unquote(text string) (value, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(text); {
		c := text[i]
		switch {
		case c == '"':
			return cty.NormalizeString(b.String()), text[i+1:], nil
		case c == '\\':
			r, n, err := unescape(text[i:])
			if err != nil {
				return "", "", err
			}
			b.WriteRune(r)
			i += n
		case c == '$' || c == '%':
			mark := text[i : i+1]
			switch {
			case strings.HasPrefix(text[i:], mark+mark+"{"):
				b.WriteString(mark + "{")
				i += 3
			case strings.HasPrefix(text[i:], mark+"{"):
				return "", "", fmt.Errorf("a key cannot contain a template; write %s%s{ for a literal %s{", mark, mark, mark)
			default:
				b.WriteByte(c)
				i++
			}
		default:
			b.WriteByte(c)
			i++
		}
	}
	return "", "", fmt.Errorf("the string %s has no closing quote", clip(text))
}

// unescape reads the escape sequence at the start of text and returns its
// rune and its length.
func unescape(text string) (rune, int, error) {
	if len(text) < 2 {
		return 0, 0, fmt.Errorf("a string ends in a backslash")
	}
	switch text[1] {
	case 'n':
		return '\n', 2, nil
	case 'r':
		return '\r', 2, nil
	case 't':
		return '\t', 2, nil
	case '"', '\\':
		return rune(text[1]), 2, nil
	case 'u', 'U':
		digits := 4
		if text[1] == 'U' {
			digits = 8
		}
		if len(text) >= 2+digits {
			n, err := strconv.ParseUint(text[2:2+digits], 16, 32)
			if err == nil && utf8.ValidRune(rune(n)) {
				return rune(n), 2 + digits, nil
			}
		}
		return 0, 0, fmt.Errorf(`\%c must be followed by %d hexadecimal digits of a character`, text[1], digits)
	}
	return 0, 0, fmt.Errorf(`\%c is no escape sequence; write \\ for a backslash`, text[1])
}
