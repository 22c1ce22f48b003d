package view

import (
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// edit is one step from one sequence to another: before[i] stays as after[j],
// or one of them has no partner (-1), or before[i] turns into after[j].
type edit struct {
	i, j int
	same bool
}

// maxTable bounds the table of the longest common subsequence. Beyond it
// elements are compared position by position: cost stays linear, the text is
// longer and still true.
const maxTable = 1 << 20

// edits aligns two sequences, given as numbers that are equal where the
// elements are.
func edits(a, b []int) []edit {
	var out []edit
	lo := 0
	for lo < len(a) && lo < len(b) && a[lo] == b[lo] {
		out = append(out, edit{lo, lo, true})
		lo++
	}
	endA, endB := len(a), len(b)
	for endA > lo && endB > lo && a[endA-1] == b[endB-1] {
		endA--
		endB--
	}
	out = append(out, middle(a[lo:endA], b[lo:endB], lo)...)
	for endA < len(a) {
		out = append(out, edit{endA, endB, true})
		endA++
		endB++
	}
	return out
}

func middle(a, b []int, shift int) []edit {
	var out []edit
	if len(a)*len(b) > maxTable || len(a) > maxTable || len(b) > maxTable {
		for k := 0; k < max(len(a), len(b)); k++ {
			switch {
			case k >= len(a):
				out = append(out, edit{-1, k + shift, false})
			case k >= len(b):
				out = append(out, edit{k + shift, -1, false})
			default:
				out = append(out, edit{k + shift, k + shift, a[k] == b[k]})
			}
		}
		return out
	}
	table := common(a, b)
	w := len(b) + 1
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, edit{i + shift, j + shift, true})
			i++
			j++
		case j >= len(b) || (i < len(a) && table[(i+1)*w+j] >= table[i*w+j+1]):
			out = append(out, edit{i + shift, -1, false})
			i++
		default:
			out = append(out, edit{-1, j + shift, false})
			j++
		}
	}
	return out
}

// common is the table of lengths of the longest common subsequences of the
// tails of a and b.
func common(a, b []int) []int32 {
	w := len(b) + 1
	table := make([]int32, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i*w+j] = table[(i+1)*w+j+1] + 1
			} else {
				table[i*w+j] = max(table[(i+1)*w+j], table[i*w+j+1])
			}
		}
	}
	return table
}

// interner gives equal values equal numbers.
type interner map[string]int

func (in interner) text(s string) int {
	n, ok := in[s]
	if !ok {
		n = len(in)
		in[s] = n
	}
	return n
}

// value numbers an element; what is not wholly known equals nothing.
func (in interner) value(v cty.Value, hidden bool) int {
	mark := "v"
	if hidden {
		mark = "s"
	}
	if !v.IsWhollyKnown() {
		return in.text("?" + decimal(len(in)))
	}
	if data, err := ctyjson.Marshal(v, v.Type()); err == nil {
		return in.text(mark + v.Type().FriendlyName() + string(data))
	}
	return in.text(mark + v.GoString())
}

// changeSequence writes the difference of two lists or tuples: what changed,
// one unchanged element on either side of it, and how many more there are.
func (d *differ) changeSequence(c int, p pair) {
	before, after := p.before.AsValueSlice(), p.after.AsValueSlice()
	d.open("[", p)
	steps := steps(before, after, p)
	near := make([]bool, len(steps))
	for k, s := range steps {
		if !s.same {
			near[k] = true
			near[max(0, k-1)] = true
			near[min(len(steps)-1, k+1)] = true
		}
	}
	unseen := 0
	for k, s := range steps {
		if !near[k] {
			unseen++
			continue
		}
		d.hidden(c+4, unseen, "element")
		unseen = 0
		d.step(c+4, s, p, before, after)
	}
	d.hidden(c+4, unseen, "element")
	d.close(c, "]")
}

func (d *differ) step(c int, s edit, p pair, before, after []cty.Value) {
	switch {
	case s.same:
		d.begin(c, same)
		d.writeWhole(c, same, after[s.j], p.afterSecret.index(s.j))
	case s.j < 0:
		d.begin(c, remove)
		d.writeWhole(c, remove, before[s.i], p.beforeSecret.index(s.i))
	case s.i < 0:
		d.begin(c, add)
		d.writeWhole(c, add, after[s.j], p.afterSecret.index(s.j))
	default:
		d.begin(c, update)
		d.change(c, p.index(s.i, s.j, before[s.i], after[s.j]))
	}
	d.WriteString(",\n")
}

// steps aligns the elements and pairs what went with what came in its place.
func steps(before, after []cty.Value, p pair) []edit {
	in := make(interner)
	a, b := make([]int, len(before)), make([]int, len(after))
	for i, v := range before {
		h := p.beforeSecret.index(i)
		a[i] = in.value(v, h.atSecret() || h.aboveSecret())
	}
	for j, v := range after {
		h := p.afterSecret.index(j)
		b[j] = in.value(v, h.atSecret() || h.aboveSecret())
	}
	return paired(edits(a, b), before, after)
}

// paired turns a run of removals and additions into changes, in order, where
// the two look alike: both have parts of their own, or there are as many of
// the one as of the other.
func paired(steps []edit, before, after []cty.Value) []edit {
	out := make([]edit, 0, len(steps))
	for k := 0; k < len(steps); {
		if steps[k].same {
			out = append(out, steps[k])
			k++
			continue
		}
		var gone, come []int
		for ; k < len(steps) && !steps[k].same; k++ {
			if steps[k].i >= 0 {
				gone = append(gone, steps[k].i)
			}
			if steps[k].j >= 0 {
				come = append(come, steps[k].j)
			}
		}
		out = append(out, matched(gone, come, before, after)...)
	}
	return out
}

func matched(gone, come []int, before, after []cty.Value) []edit {
	n := 0
	for n < len(gone) && n < len(come) && (len(gone) == len(come) || haveComparableParts(before[gone[n]], after[come[n]])) {
		n++
	}
	var out []edit
	for k := range n {
		out = append(out, edit{gone[k], come[k], false})
	}
	for _, i := range gone[n:] {
		out = append(out, edit{i, -1, false})
	}
	for _, j := range come[n:] {
		out = append(out, edit{-1, j, false})
	}
	return out
}

// haveComparableParts reports whether both values have parts that can be compared.
func haveComparableParts(a, b cty.Value) bool {
	if absent(a) || absent(b) || !a.IsKnown() || !b.IsKnown() {
		return false
	}
	x, y := a.Type(), b.Type()
	return (keyed(x) && keyed(y)) || (sequential(x) && sequential(y))
}

// anyElement stands for the elements of a set, which have no index.
const anyElement = -1

// changeSet writes the difference of two sets: elements have no identity, so
// they only come and go.
func (d *differ) changeSet(c int, p pair) {
	in := make(interner)
	known := make(map[int]bool)
	before, after := p.before.AsValueSlice(), p.after.AsValueSlice()
	for _, v := range after {
		known[in.value(v, false)] = true
	}
	d.open("[", p)
	unchanged := 0
	stayed := make(map[int]bool)
	for _, v := range before {
		n := in.value(v, false)
		if known[n] {
			stayed[n] = true
			unchanged++
			continue
		}
		d.begin(c+4, remove)
		d.writeWhole(c+4, remove, v, p.beforeSecret.index(anyElement))
		d.WriteString(",\n")
	}
	for _, v := range after {
		if v.IsWhollyKnown() && stayed[in.value(v, false)] {
			continue
		}
		d.begin(c+4, add)
		d.writeWhole(c+4, add, v, p.afterSecret.index(anyElement))
		d.WriteString(",\n")
	}
	d.hidden(c+4, unchanged, "element")
	d.close(c, "]")
}
