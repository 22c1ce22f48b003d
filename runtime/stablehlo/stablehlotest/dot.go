package stablehlotest

import "slices"

// pair reads NAME = [0] x [1].
func (p *parser) pair(name string) (left, right []int) {
	left = p.setting(name)
	p.want("x")
	return left, p.list()
}

// precision reads [HIGHEST, HIGHEST]; each is read by a function.
func (p *parser) precision(read func() string) {
	line, n := p.line(), 0
	p.want("[")
	p.separated("]", func() {
		switch name := read(); name {
		case "DEFAULT", "HIGH", "HIGHEST":
		default:
			p.fail(line, "unknown precision %s", name)
		}
		n++
	})
	if p.err == nil && n != 0 && n != 2 {
		p.fail(line, "%d precisions, want 2", n)
	}
}

// side is one operand of a product: the strides of its dimensions by their part.
type side struct {
	t                      Type
	batch, contracted, own []int // dimensions
}

func (p *parser) side(line int, t Type, batch, contracted []int) side {
	s := side{t: t, batch: batch, contracted: contracted}
	if p.err == nil && !unique(slices.Concat(batch, contracted), t.rank()) {
		p.fail(line, "batching dimensions %v and contracting dimensions %v of %s", batch, contracted, t)
	}
	for i := range t.Dims {
		if !slices.Contains(batch, i) && !slices.Contains(contracted, i) {
			s.own = append(s.own, i)
		}
	}
	return s
}

func (s side) sizes(dimensions []int) []int {
	var sizes []int
	for _, d := range dimensions {
		sizes = append(sizes, s.t.Dims[d])
	}
	return sizes
}

// order copies a value so that its dimensions have the order of some lists.
func (v tensor) order(lists ...[]int) []float64 {
	t, own := Type{Element: v.t.Element}, stridesOf(v.t.Dims)
	var strides []int
	for _, d := range slices.Concat(lists...) {
		t.Dims = append(t.Dims, v.t.Dims[d])
		strides = append(strides, own[d])
	}
	return v.view(t, strides, 0).f
}

// wantProduct reports element types whose products are not computed.
func (p *parser) wantProduct(line int, a, b Type) {
	p.expect(line, []Type{b.scalar()}, a.scalar())
	if p.err == nil && !isFloat(a.Element) {
		p.fail(line, "products of %s are not supported here", a.Element)
	}
}

func dotForm(p *parser) operation {
	line, in := p.line(), p.count(2)
	p.want(",")
	var batchA, batchB []int
	if p.sees("batching_dims") {
		batchA, batchB = p.pair("batching_dims")
		p.want(",")
	}
	overA, overB := p.pair("contracting_dims")
	if p.accept(",") {
		p.want("precision")
		p.want("=")
		p.precision(func() string { return p.take(word, "a precision").text })
	}
	got := p.signature(in)
	a, b := p.side(line, in[0].t, batchA, overA), p.side(line, in[1].t, batchB, overB)
	p.wantProduct(line, a.t, b.t)
	if p.err == nil && !equalInts(a.sizes(batchA), b.sizes(batchB)) {
		p.fail(line, "batching dimensions of the sizes %v and %v", a.sizes(batchA), b.sizes(batchB))
	}
	if p.err == nil && !equalInts(a.sizes(overA), b.sizes(overB)) {
		p.fail(line, "contracting dimensions of the sizes %v and %v", a.sizes(overA), b.sizes(overB))
	}
	if p.err != nil {
		return operation{}
	}
	t := p.only(line, got)
	if p.err == nil && !isFloat(t.Element) {
		p.fail(line, "the product of %s is %s", a.t, t)
	}
	p.expect(line, got, Type{t.Element, slices.Concat(a.sizes(batchA), a.sizes(a.own), b.sizes(b.own))})
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return product(a, b, in, t) })}
}

// product is a matrix product for each batch.
func product(a, b side, in []tensor, t Type) tensor {
	size := func(s side, dimensions []int) int { return Type{Dims: s.sizes(dimensions)}.Size() }
	batches, rows, inner, columns := size(a, a.batch), size(a, a.own), size(a, a.contracted), size(b, b.own)
	out := newTensor(t)
	left, right := in[0].order(a.batch, a.own, a.contracted), in[1].order(b.batch, b.contracted, b.own)
	parallel(batches*rows, func(from, to int) {
		for r := from; r < to; r++ {
			sum := out.f[r*columns:][:columns]
			panel := right[r/rows*inner*columns:]
			for k, x := range left[r*inner:][:inner] {
				addScaled(sum, panel[k*columns:][:columns], x)
			}
		}
	})
	return out
}

// addScaled adds x·v to a sum.
func addScaled(sum, v []float64, x float64) {
	v = v[:len(sum)]
	for i := range sum {
		sum[i] += x * v[i]
	}
}
