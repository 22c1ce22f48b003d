package view

import (
	"sort"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

func columnsOf(s string) int { return utf8.RuneCountInString(s) }

// elements returns the names of an object's attributes or a map's keys in
// order, and their values.
func elements(v cty.Value) ([]string, map[string]cty.Value) {
	if absent(v) || !v.IsKnown() {
		return nil, nil
	}
	values := v.AsValueMap()
	names := make([]string, 0, len(values))
	for n := range values {
		names = append(names, n)
	}
	sort.Strings(names)
	return names, values
}

// union is every name of either side, in order.
func union(a, b map[string]cty.Value) []string {
	names := make([]string, 0, max(len(a), len(b)))
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if _, both := a[n]; !both {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	return names
}

// changeKeyed writes the difference of two objects or maps: what changed,
// aligned, and how much did not.
func (d *differ) changeKeyed(c int, p pair) {
	_, before := elements(p.before)
	_, after := elements(p.after)
	always := p.before.Type().IsMapType() && p.after.Type().IsMapType()
	type row struct {
		name string
		pair
	}
	var rows []row
	width, unchanged := 0, 0
	for _, n := range union(before, after) {
		r := row{n, p.name(n, before[n], after[n])}
		if r.equal() {
			unchanged++
			continue
		}
		width = max(width, columnsOf(keyName(n, always)))
		rows = append(rows, r)
	}
	write := func(d *differ) {
		d.open("{", p)
		for _, r := range rows {
			d.element(c+4, keyName(r.name, always), width, r.pair, always)
			d.WriteByte('\n')
		}
		d.hidden(c+4, unchanged, elementWord(always))
		d.close(c, "}")
	}
	if always && p.after.Type().ElementType() == cty.String {
		d.texts(c, len(rows), write)
		return
	}
	write(d)
}

func elementWord(isMap bool) string {
	if isMap {
		return "element"
	}
	return "attribute"
}

// element writes "+ name = value", "- …" or "~ …" for one key. In a map,
// what goes says "-> null", because keys come and go one by one there.
func (d *differ) element(c int, name string, width int, p pair, inMap bool) {
	switch {
	case p.before == cty.NilVal:
		d.begin(c, add)
		d.label(name, width)
		d.writeWhole(c, add, p.after, p.afterSecret)
		d.forced(p)
	case p.after == cty.NilVal:
		d.begin(c, remove)
		d.label(name, width)
		d.writeWhole(c, remove, p.before, p.beforeSecret)
		if inMap {
			d.WriteString(dress(d.color, dim, " -> null"))
		}
		d.forced(p)
	default:
		d.begin(c, update)
		d.label(name, width)
		d.change(c, p)
	}
}
