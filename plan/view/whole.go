package view

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
)

// writeWhole writes a value as it stands; every line inside it carries symbol s.
// The line that it starts in has its text in column c.
func (d *differ) writeWhole(c int, s symbol, v cty.Value, hide secret) {
	switch {
	case v == cty.NilVal:
		d.WriteString("null")
	case hide.atSecret():
		d.WriteString(sensitiveValue)
	case !v.IsKnown():
		d.WriteString(knownAfterApply)
	case v.IsNull():
		d.WriteString(dress(d.color, dim, "null"))
	case v.Type() == cty.String:
		d.wholeString(c, s, v.AsString())
	case keyed(v.Type()):
		d.wholeKeyed(c, s, v, hide)
	case v.CanIterateElements():
		d.wholeSequence(c, s, v, hide)
	default:
		d.WriteString(scalar(v))
	}
}

func (d *differ) wholeString(c int, s symbol, text string) {
	d.brief(func(d *differ) { d.fullString(c, s, text) })
}

func (d *differ) fullString(c int, s symbol, text string) {
	if lines, ok := heredoc(text); ok {
		d.WriteString("<<-EOT\n")
		for _, line := range lines {
			d.begin(c+4, same)
			d.WriteString(line)
			d.WriteByte('\n')
		}
		d.close(c, "EOT")
		return
	}
	if v, ok := jsonIn(text); ok {
		d.WriteString("jsonencode(\n")
		d.begin(c+4, same)
		was := d.inJSON
		d.inJSON = true
		d.writeWhole(c+4, s, v, secret{})
		d.inJSON = was
		d.WriteByte('\n')
		d.close(c, ")")
		return
	}
	d.WriteString(address.Quote(text))
}

func (d *differ) wholeKeyed(c int, s symbol, v cty.Value, hide secret) {
	names, values := elements(v)
	// A hidden attribute without a value is not shown: the secret that a file does
	// not have, say, or a write-only argument. Nor is an attribute that an object
	// does not have.
	without := v.Type().IsObjectType() && !d.inJSON
	names = slices.DeleteFunc(names, func(n string) bool {
		return absent(values[n]) && (hide.declared.name(n).contains() || without && !hide.name(n).atSecret())
	})
	if len(names) == 0 {
		d.WriteString("{}")
		return
	}
	always := v.Type().IsMapType()
	width := 0
	for _, n := range names {
		width = max(width, columnsOf(keyName(n, always)))
	}
	write := func(d *differ) {
		d.WriteString("{\n")
		for _, n := range names {
			d.begin(c+4, s)
			d.label(keyName(n, always), width)
			d.writeWhole(c+4, s, values[n], hide.name(n))
			d.WriteByte('\n')
		}
		d.close(c, "}")
	}
	if always && v.Type().ElementType() == cty.String {
		d.texts(c, len(names), write)
		return
	}
	write(d)
}

func (d *differ) wholeSequence(c int, s symbol, v cty.Value, hide secret) {
	if v.LengthInt() == 0 {
		d.WriteString("[]")
		return
	}
	d.WriteString("[\n")
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, e := it.Element()
		d.begin(c+4, s)
		d.writeWhole(c+4, s, e, hide.index(i))
		d.WriteString(",\n")
	}
	d.close(c, "]")
}

// label writes "name = " with the equals sign behind width columns.
func (d *differ) label(name string, width int) {
	d.WriteString(name)
	for range width - columnsOf(name) {
		d.WriteByte(' ')
	}
	d.WriteString(" = ")
}

// heredoc splits a text of several lines, when it can be shown line by line:
// all printable, tabs allowed.
func heredoc(text string) ([]string, bool) {
	body := strings.TrimSuffix(text, "\n")
	if !strings.Contains(text, "\n") || strings.TrimSpace(body) == "" {
		return nil, false
	}
	lines := strings.Split(body, "\n")
	for _, line := range lines {
		if printable(line) != line {
			return nil, false
		}
	}
	return lines, true
}
