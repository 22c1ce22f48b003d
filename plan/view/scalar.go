package view

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const (
	knownAfterApply = "(known after apply)"
	sensitiveValue  = "(sensitive value)"
)

// quoted writes a string as configuration writes it: in double quotes, with
// HCL's escapes, and everything unprintable as \uXXXX.
func quoted(s string) string {
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
		case !unicode.IsPrint(r) || isDirection(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func escape(r rune) string {
	hex := strconv.FormatInt(int64(r), 16)
	if len(hex) <= 4 {
		return `\u` + strings.Repeat("0", 4-len(hex)) + hex
	}
	return `\U` + strings.Repeat("0", 8-len(hex)) + hex
}

// number writes a known number in the shortest form that reads back equal;
// astronomical ones with an exponent.
func number(v cty.Value) string {
	f := v.AsBigFloat()
	if e := f.MantExp(nil); e > 512 || e < -512 {
		return f.Text('g', -1)
	}
	return f.Text('f', -1)
}

// scalar writes a known, non-null primitive on one line.
func scalar(v cty.Value) string {
	switch v.Type() {
	case cty.String:
		return quoted(v.AsString())
	case cty.Number:
		return number(v)
	case cty.Bool:
		return strconv.FormatBool(v.True())
	}
	return "(" + v.Type().FriendlyName() + ")"
}

// keyName writes the key of an object or map: bare where it is a valid
// identifier, unless always is set.
func keyName(name string, always bool) string {
	if !always && hclsyntax.ValidIdentifier(name) {
		return name
	}
	return quoted(name)
}

// amount writes a sum of money or the like with two decimals at most.
func amount(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 2, 64), ".00")
}
