package view

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// differ writes values and differences of values as text. Columns count from
// the left margin; the symbol of a line is two columns before its text, and
// nested values are indented by four more columns.
type differ struct {
	strings.Builder
	color bool
	// margin puts the symbols in the first column, as diffs have them.
	margin bool
	// inJSON is set inside of a JSON string, where null is a value.
	inJSON bool
	// short hides texts of many lines, named all texts of several lines: see brief.
	short, named bool
}

// symbol is the mark of a line: added, removed, changed, as in Terraform.
type symbol string

const (
	same   symbol = " "
	add    symbol = "+"
	remove symbol = "-"
	update symbol = "~"
)

func (s symbol) paint() paint {
	switch s {
	case add:
		return green
	case remove:
		return red
	case update:
		return yellow
	}
	return plain
}

// margin is the symbol as diffs have it, whose sign for a changed line is "!".
func (s symbol) margin() string {
	if s == update {
		return "!"
	}
	return string(s)
}

// begin starts a line: the symbol two columns before column c.
func (d *differ) begin(c int, s symbol) {
	if d.margin {
		d.WriteString(s.margin() + strings.Repeat(" ", c-1))
		return
	}
	for range c - 2 {
		d.WriteByte(' ')
	}
	d.WriteString(dress(d.color, s.paint(), string(s)))
	d.WriteByte(' ')
}

// comment writes a line "# …" in column c, for hidden parts.
func (d *differ) comment(c int, text string) {
	for range c {
		d.WriteByte(' ')
	}
	d.WriteString(dress(d.color, dim, "# "+text))
	d.WriteByte('\n')
}

// hidden prints the number of unchanged things that are not shown.
func (d *differ) hidden(c, n int, thing string) {
	if n > 0 {
		d.comment(c, "("+counted(n, "unchanged "+thing)+" hidden)")
	}
}

// close ends something that spans lines: bracket in column c.
func (d *differ) close(c int, bracket string) {
	for range c {
		d.WriteByte(' ')
	}
	d.WriteString(bracket)
}

// pair is a value before and after, with the sensitive places of both and the
// places that force a new object. An absent side is cty.NilVal.
type pair struct {
	before, after             cty.Value
	beforeSecret, afterSecret secret
	forces                    *places
}

func (p pair) name(n string, before, after cty.Value) pair {
	return pair{before, after, p.beforeSecret.name(n), p.afterSecret.name(n), p.forces.name(n)}
}

func (p pair) index(i, j int, before, after cty.Value) pair {
	return pair{before, after, p.beforeSecret.index(i), p.afterSecret.index(j), p.forces.index(j)}
}

// secret reports whether the value as a whole is hidden.
func (p pair) secret() bool { return p.beforeSecret.atSecret() || p.afterSecret.atSecret() }

// equal reports whether nothing changes, visibility included.
func (p pair) equal() bool {
	if p.before == cty.NilVal || p.after == cty.NilVal {
		return p.before == p.after
	}
	return p.before.RawEquals(p.after) && p.beforeSecret.atSecret() == p.afterSecret.atSecret()
}

// symbol returns the symbol of a value for which null means absent.
func (p pair) symbol() symbol {
	switch {
	case p.equal():
		return same
	case absent(p.before):
		return add
	case absent(p.after):
		return remove
	}
	return update
}

func absent(v cty.Value) bool { return v == cty.NilVal || (v.IsKnown() && v.IsNull()) }

// change writes what a value was and becomes, from the current position on,
// in a line whose text starts in column c.
func (d *differ) change(c int, p pair) {
	switch {
	case p.secret():
		d.WriteString(sensitiveValue)
	case !p.after.IsKnown():
		d.outgoing(c, p)
		d.WriteString(dress(d.color, yellow, " -> ") + knownAfterApply)
	case p.before.IsNull() || p.after.IsNull():
		d.writeReplaced(c, p)
	default:
		d.changeKnown(c, p)
		return // has shown which places force a replacement
	}
	d.forced(p)
}

// maxOutgoing bounds the lines of a value that another one takes the place of,
// which is not known yet: what a whole machine was hides what is to change.
const maxOutgoing = 60

// outgoing writes a value whose successor is not known, without its parts where
// they are many.
func (d *differ) outgoing(c int, p pair) {
	v := p.before
	if absent(v) || !v.IsKnown() || p.beforeSecret.atSecret() || !v.CanIterateElements() || linesOf(v) <= maxOutgoing {
		d.writeWhole(c, remove, v, p.beforeSecret)
		return
	}
	open, shut, thing := "[", "]", "element"
	if keyed(v.Type()) {
		open, shut = "{", "}"
	}
	if v.Type().IsObjectType() {
		thing = "attribute"
	}
	d.WriteString(open + "\n")
	d.comment(c+4, "("+counted(v.LengthInt(), thing)+" hidden)")
	d.close(c, shut)
}

// linesOf is how many lines a value's parts take.
func linesOf(v cty.Value) int {
	if v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		return 1
	}
	n := 2
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		n += linesOf(e)
	}
	return n
}

// forced ends a line with what its change costs.
func (d *differ) forced(p pair) {
	if p.forces.contains() {
		d.WriteString(dress(d.color, red, " # forces replacement"))
	}
}

// open begins a value that spans lines.
func (d *differ) open(bracket string, p pair) {
	d.WriteString(bracket)
	d.forced(p)
	d.WriteByte('\n')
}

// writeReplaced writes the old value and then the new one.
func (d *differ) writeReplaced(c int, p pair) {
	d.writeWhole(c, remove, p.before, p.beforeSecret)
	d.WriteString(dress(d.color, yellow, " -> "))
	d.writeWhole(c, add, p.after, p.afterSecret)
}

func (d *differ) changeKnown(c int, p pair) {
	before, after := p.before.Type(), p.after.Type()
	switch {
	case before == cty.String && after == cty.String:
		d.changeString(c, p)
	case keyed(before) && keyed(after):
		d.changeKeyed(c, p)
	case before.IsSetType() && after.IsSetType():
		d.changeSet(c, p)
	case sequential(before) && sequential(after):
		d.changeSequence(c, p)
	default:
		d.writeReplaced(c, p)
		d.forced(p)
	}
}

func keyed(t cty.Type) bool      { return t.IsObjectType() || t.IsMapType() }
func sequential(t cty.Type) bool { return t.IsListType() || t.IsTupleType() }
