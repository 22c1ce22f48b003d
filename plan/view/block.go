package view

import (
	"sort"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

// important attributes are shown although they do not change: they tell
// people which object they look at.
func important(name string) bool { return name == "id" || name == "name" || name == "tags" }

// body writes the inside of a block: attributes in order, then nested blocks. s
// applies to the whole block: it is added (add), removed (remove), shown as it
// is (same) or changed (update). Top is true for the resource itself.
func (d *differ) body(c int, s symbol, b *providers.Block, p pair, top bool) {
	d.attributes(c, s, b, p, top)
	if b == nil {
		return
	}
	names := make([]string, 0, len(b.Blocks))
	for n := range b.Blocks {
		names = append(names, n)
	}
	sort.Strings(names)
	unchanged := 0
	for _, n := range names {
		unchanged += d.blocks(c, s, n, b.Blocks[n], p.name(n, attribute(p.before, n), attribute(p.after, n)))
	}
	if unchanged > 0 {
		d.WriteByte('\n')
		d.hidden(c, unchanged, "block")
	}
}

// attribute returns one attribute of an object, NilVal without an object.
func attribute(v cty.Value, name string) cty.Value {
	if absent(v) || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return v.GetAttr(name)
}

type attributeRow struct {
	name string
	symbol
	pair
	writeOnly bool
}

func (d *differ) attributes(c int, s symbol, b *providers.Block, p pair, top bool) {
	var rows []attributeRow
	unchanged, width := 0, 0
	for _, name := range attributeNames(b, p) {
		r := attributeRow{name: name, pair: p.name(name, attribute(p.before, name), attribute(p.after, name))}
		// A write-only argument never has a value to show.
		writeOnly := s == add && b != nil && b.Attributes[name].WriteOnly
		if absent(r.before) && absent(r.after) && !writeOnly {
			continue
		}
		r.symbol, r.writeOnly = r.pair.symbol(), writeOnly
		if s != update {
			r.symbol = s
		} else if r.symbol == same && (!top || !important(name)) {
			unchanged++
			continue
		}
		width = max(width, columnsOf(name))
		rows = append(rows, r)
	}
	for _, r := range rows {
		d.attributeRow(c, width, r)
	}
	d.hidden(c, unchanged, "attribute")
}

func attributeNames(b *providers.Block, p pair) []string {
	if b == nil {
		_, before := elements(p.before)
		_, after := elements(p.after)
		return union(before, after)
	}
	names := make([]string, 0, len(b.Attributes))
	for n := range b.Attributes {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (d *differ) attributeRow(c, width int, r attributeRow) {
	d.begin(c, r.symbol)
	d.label(r.name, width)
	if r.writeOnly {
		d.WriteString("(write-only attribute)\n")
		return
	}
	switch r.symbol {
	case remove:
		d.writeWhole(c, remove, r.before, r.beforeSecret)
		d.WriteString(dress(d.color, dim, " -> null"))
		d.forced(r.pair)
	case update:
		d.change(c, r.pair)
	default:
		d.writeWhole(c, r.symbol, r.after, r.afterSecret)
		if r.symbol == add {
			d.forced(r.pair)
		}
	}
	d.WriteByte('\n')
}

// blocks writes the nested blocks of one name and returns how many of them
// stay as they are and were left out.
func (d *differ) blocks(c int, s symbol, name string, nb *providers.NestedBlock, p pair) int {
	if p.secret() && !(absent(p.before) && absent(p.after)) {
		d.secretBlock(c, s, name, p)
		return 0
	}
	if unknown(p.after) {
		d.unknownBlock(c, name)
		return 0
	}
	if nb.Nesting == providers.Single || nb.Nesting == providers.Group {
		return d.block(c, s, name, nb.Block, p)
	}
	if nb.Nesting == providers.Map {
		return d.mapBlocks(c, s, name, nb.Block, p)
	}
	before, after := slice(p.before), slice(p.after)
	var pairs []edit
	if nb.Nesting == providers.Set {
		pairs = setSteps(before, after)
	} else {
		pairs = steps(before, after, p)
	}
	unchanged := 0
	for _, e := range pairs {
		b, a, i, j := cty.NilVal, cty.NilVal, e.i, e.j
		if i >= 0 {
			b = before[i]
		}
		if j >= 0 {
			a = after[j]
		}
		if nb.Nesting == providers.Set {
			i, j = anyElement, anyElement
		}
		unchanged += d.block(c, s, name, nb.Block, p.index(i, j, b, a))
	}
	return unchanged
}

func unknown(v cty.Value) bool { return v != cty.NilVal && !v.IsKnown() }

func slice(v cty.Value) []cty.Value {
	if absent(v) || !v.IsKnown() || !v.CanIterateElements() {
		return nil
	}
	return v.AsValueSlice()
}

// setSteps pairs equal elements; the others come and go.
func setSteps(before, after []cty.Value) []edit {
	in := make(interner)
	at := make(map[int]int)
	for j, v := range after {
		at[in.value(v, false)] = j
	}
	var out []edit
	stays := make(map[int]bool)
	for i, v := range before {
		if j, ok := at[in.value(v, false)]; ok {
			out = append(out, edit{i, j, true})
			stays[j] = true
			continue
		}
		out = append(out, edit{i, -1, false})
	}
	for j := range after {
		if !stays[j] {
			out = append(out, edit{-1, j, false})
		}
	}
	return out
}

func (d *differ) mapBlocks(c int, s symbol, name string, b *providers.Block, p pair) int {
	_, before := elements(p.before)
	_, after := elements(p.after)
	unchanged := 0
	for _, key := range union(before, after) {
		unchanged += d.block(c, s, name+" "+address.Quote(key), b, p.name(key, before[key], after[key]))
	}
	return unchanged
}

// block writes one nested block, or nothing if it is absent or unchanged; it
// returns 1 for the latter.
func (d *differ) block(c int, s symbol, header string, b *providers.Block, p pair) int {
	if absent(p.before) && absent(p.after) {
		return 0
	}
	own := p.symbol()
	if s != update {
		own = s
	} else if own == same {
		return 1
	}
	d.WriteByte('\n')
	d.begin(c, own)
	d.WriteString(header)
	d.open(" {", p)
	d.body(c+4, own, b, p, false)
	d.close(c, "}\n")
	return 0
}

func (d *differ) unknownBlock(c int, name string) {
	d.WriteByte('\n')
	d.begin(c, add)
	d.WriteString(name + " " + knownAfterApply + "\n")
}

func (d *differ) secretBlock(c int, s symbol, name string, p pair) {
	own := p.symbol()
	if s != update {
		own = s
	}
	d.WriteByte('\n')
	d.begin(c, own)
	d.WriteString(name + " " + sensitiveValue + "\n")
}
