package stablehlotest

// starts checks the start indices of a dynamic slice.
func (p *parser) starts(line int, t Type, starts []operand) {
	if p.err == nil && len(starts) != t.rank() {
		p.fail(line, "%d start indices of %s", len(starts), t)
	}
	if p.err != nil {
		return
	}
	for _, s := range starts {
		if s.t.rank() != 0 || !isInteger(s.t.Element) || !s.t.equal(starts[0].t) {
			p.fail(line, "start indices of the types %s and %s, want integers of one type", starts[0].t, s.t)
		}
	}
}

// offset is the place of a part of an array. Start indices are clamped so that the
// array has the whole part.
func offset(t Type, sizes []int, starts []tensor) int {
	strides, n := stridesOf(t.Dims), 0
	for i, s := range starts {
		n += strides[i] * max(0, min(s.index(0), t.Dims[i]-sizes[i]))
	}
	return n
}

func dynamicSliceForm(p *parser) operation {
	line := p.line()
	var in []operand
	for p.peek().kind == value {
		in = append(in, p.operand())
		p.want(",")
	}
	sizes := p.setting("sizes")
	got := p.signature(in)
	if p.err == nil && len(in) == 0 {
		p.fail(line, "no operands")
	}
	if p.err != nil {
		return operation{}
	}
	from := in[0].t
	p.starts(line, from, in[1:])
	p.part(line, from, sizes)
	t := Type{from.Element, sizes}
	p.expect(line, got, t)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		return in[0].view(t, stridesOf(from.Dims), offset(from, sizes, in[1:]))
	})}
}

// part checks that an array has room for a part.
func (p *parser) part(line int, t Type, sizes []int) {
	if p.err == nil && len(sizes) != t.rank() {
		p.fail(line, "%d sizes for a part of %s", len(sizes), t)
	}
	for i, s := range sizes {
		if p.err == nil && (s < 0 || s > t.Dims[i]) {
			p.fail(line, "a part of the sizes %v of %s", sizes, t)
		}
	}
}

func dynamicUpdateForm(p *parser) operation {
	line, in := p.line(), p.operands()
	got := p.signature(in)
	if p.err == nil && len(in) < 2 {
		p.fail(line, "%d operands", len(in))
	}
	if p.err != nil {
		return operation{}
	}
	t, update := in[0].t, in[1].t
	p.starts(line, t, in[2:])
	p.part(line, t, update.Dims)
	p.expect(line, []Type{update.scalar()}, t.scalar())
	p.expect(line, got, t)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		out := in[0].view(t, stridesOf(t.Dims), 0)
		in[1].put(update.Dims, stridesOf(update.Dims), 0, out, stridesOf(t.Dims), offset(t, update.Dims, in[2:]))
		return out
	})}
}
