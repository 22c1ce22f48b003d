package modules

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// What a file of values says of a sensitive variable is starred in the copy
// that messages quote: a value of the wrong type, or one without its closing
// quote, is a secret all the same.

// secret reports whether the variable's value must not be shown.
func (v *Variable) secret() bool { return v.Sensitive || v.Ephemeral }

// starred is a text of the same shape that says nothing.
func starred(text []byte) []byte {
	out := bytes.Repeat([]byte{'*'}, len(text))
	for i, c := range text {
		if c == '\n' || c == '\r' || c == ' ' || c == '\t' {
			out[i] = c
		}
	}
	return out
}

// secrets tells whether one of the variables is secret.
func (g *gatherer) secrets() bool {
	for _, v := range g.root.Variables {
		if v.secret() {
			return true
		}
	}
	return false
}

// quotable is a file of values that has been parsed, for messages. An
// undeclared name may be a misspelled secret variable.
func (g *gatherer) quotable(content []byte, attrs hcl.Attributes) []byte {
	if !g.secrets() {
		return content
	}
	content = slices.Clone(content)
	for name, attr := range attrs {
		at := attr.Expr.Range()
		if v := g.root.Variables[name]; v != nil && !v.secret() || at.Start.Byte > at.End.Byte || at.End.Byte > len(content) {
			continue
		}
		copy(content[at.Start.Byte:], starred(content[at.Start.Byte:at.End.Byte]))
	}
	return content
}

// quotableBroken is that for one that cannot be parsed: what follows the name of
// a sensitive variable, up to a line that begins with the name of another one.
func (g *gatherer) quotableBroken(name string, content []byte) []byte {
	if !g.secrets() {
		return content
	}
	if strings.HasSuffix(name, ".json") { // which may be one line
		return starred(content)
	}
	var out []byte
	hide := false
	for _, line := range bytes.SplitAfter(content, []byte{'\n'}) {
		from := 0
		before, _, _ := bytes.Cut(line, []byte{'='})
		if v := g.root.Variables[string(bytes.Trim(before, " \t"))]; v != nil {
			hide, from = v.secret(), min(len(before)+1, len(line))
		}
		out = append(out, line[:from]...)
		if hide {
			out = append(out, starred(line[from:])...)
		} else {
			out = append(out, line[from:]...)
		}
	}
	return out
}
