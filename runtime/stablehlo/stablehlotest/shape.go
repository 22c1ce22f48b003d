package stablehlotest

import "slices"

// stridesOf are the distances between neighbours of each dimension.
func stridesOf(dims []int) []int {
	strides := make([]int, len(dims))
	n := 1
	for i, d := range slices.Backward(dims) {
		strides[i] = n
		n *= d
	}
	return strides
}

// strides are the value's own strides, or zeros where a scalar is repeated over a
// type.
func (v tensor) strides(t Type) []int {
	if v.t.rank() == 0 {
		return make([]int, t.rank())
	}
	return stridesOf(t.Dims)
}

// walk calls visit for each row of an array, with the place of its first element
// in two arrays of other strides.
func walk(dims, a, b []int, from, to int, visit func(from, to int)) {
	if slices.Contains(dims, 0) {
		return
	}
	at := make([]int, len(dims))
	for {
		visit(from, to)
		i := len(dims) - 2
		for ; i >= 0; i-- {
			at[i]++
			from += a[i]
			to += b[i]
			if at[i] < dims[i] {
				break
			}
			from -= a[i] * dims[i]
			to -= b[i] * dims[i]
			at[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// transfer copies elements between arrays with strides of their own.
func transfer[T any](dims []int, src []T, a []int, from int, dst []T, b []int, to int) {
	n, stepA, stepB := 1, 0, 0
	if last := len(dims) - 1; last >= 0 {
		n, stepA, stepB = dims[last], a[last], b[last]
	}
	walk(dims, a, b, from, to, func(from, to int) {
		if stepA == 1 && stepB == 1 {
			copy(dst[to:to+n], src[from:from+n])
			return
		}
		for range n {
			dst[to] = src[from]
			from += stepA
			to += stepB
		}
	})
}

// view copies the elements at places given by strides and an offset.
func (v tensor) view(t Type, strides []int, offset int) tensor {
	out := newTensor(t)
	if out.u != nil {
		transfer(t.Dims, v.u, strides, offset, out.u, stridesOf(t.Dims), 0)
	} else {
		transfer(t.Dims, v.f, strides, offset, out.f, stridesOf(t.Dims), 0)
	}
	return out
}

// put copies a part of v to places in a new tensor.
func (v tensor) put(dims, from []int, offset int, out tensor, strides []int, to int) {
	if out.u != nil {
		transfer(dims, v.u, from, offset, out.u, strides, to)
		return
	}
	transfer(dims, v.f, from, offset, out.f, strides, to)
}

// unique reports whether numbers are different dimensions of an array.
func unique(numbers []int, rank int) bool {
	for i, n := range numbers {
		if n < 0 || n >= rank || slices.Contains(numbers[:i], n) {
			return false
		}
	}
	return true
}

func reshapeForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	got := p.signature(in)
	t := p.only(line, got)
	if p.err == nil && (t.Size() != in[0].t.Size() || t.Element != in[0].t.Element) {
		p.fail(line, "a reshape of %s to %s", in[0].t, t)
	}
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return tensor{t, in[0].f, in[0].u} })}
}

func broadcastForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	p.want(",")
	over := p.setting("dims")
	got := p.signature(in)
	t, from := p.only(line, got), in[0].t
	strides := make([]int, t.rank())
	own := stridesOf(from.Dims)
	if p.err == nil && (len(over) != from.rank() || !unique(over, t.rank()) || t.Element != from.Element) {
		p.fail(line, "a broadcast of %s over %v of %s", from, over, t)
	}
	for i, o := range over {
		switch {
		case p.err != nil:
		case from.Dims[i] == t.Dims[o] && from.Dims[i] != 1:
			strides[o] = own[i]
		case from.Dims[i] != 1:
			p.fail(line, "dimension %d of %s becomes dimension %d of %s", i, from, o, t)
		}
	}
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return in[0].view(t, strides, 0) })}
}

func transposeForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	p.want(",")
	order := p.setting("dims")
	got := p.signature(in)
	from := in[0].t
	if p.err == nil && (len(order) != from.rank() || !unique(order, from.rank())) {
		p.fail(line, "%v is not an order of the dimensions of %s", order, from)
	}
	if p.err != nil {
		return operation{}
	}
	t := Type{Element: from.Element}
	var strides []int
	for _, o := range order {
		t.Dims = append(t.Dims, from.Dims[o])
		strides = append(strides, stridesOf(from.Dims)[o])
	}
	p.expect(line, got, t)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return in[0].view(t, strides, 0) })}
}

func reverseForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	p.want(",")
	over := p.setting("dims")
	got := p.same(in)
	t := in[0].t
	p.expect(line, got, t)
	if p.err == nil && !unique(over, t.rank()) {
		p.fail(line, "%v are not dimensions of %s", over, t)
	}
	if p.err != nil {
		return operation{}
	}
	strides, offset := stridesOf(t.Dims), 0
	for _, o := range over {
		offset += strides[o] * (t.Dims[o] - 1)
		strides[o] = -strides[o]
	}
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return in[0].view(t, strides, offset) })}
}

func sliceForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	from := in[0].t
	t := Type{Element: from.Element}
	strides, offset := stridesOf(from.Dims), 0
	p.want("[")
	p.separated("]", func() {
		low, step := p.number(), 1
		p.want(":")
		high := p.number()
		if p.accept(":") {
			step = p.number()
		}
		i := t.rank()
		if p.err == nil && (i >= from.rank() || low < 0 || low > high || high > from.Dims[i] || step < 1) {
			p.fail(line, "%d:%d:%d is not a part of dimension %d of %s", low, high, step, i, from)
		}
		if p.err == nil {
			t.Dims = append(t.Dims, (high-low+step-1)/step)
			offset += low * strides[i]
			strides[i] *= step
		}
	})
	got := p.signature(in)
	if p.err == nil && t.rank() != from.rank() {
		p.fail(line, "a slice of %d dimensions of %s", t.rank(), from)
	}
	p.expect(line, got, t)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return in[0].view(t, strides, offset) })}
}

func concatenateForm(p *parser) operation {
	line := p.line()
	var in []operand
	for p.peek().kind == value {
		in = append(in, p.operand())
		p.want(",")
	}
	p.want("dim")
	p.want("=")
	along := p.number()
	got := p.signature(in)
	if p.err == nil && (len(in) == 0 || along < 0 || along >= in[0].t.rank()) {
		p.fail(line, "%d values are joined along dimension %d", len(in), along)
	}
	if p.err != nil {
		return operation{}
	}
	t := Type{in[0].t.Element, slices.Clone(in[0].t.Dims)}
	for _, o := range in[1:] {
		if o.t.rank() != t.rank() {
			p.fail(line, "%s and %s are joined", in[0].t, o.t)
			return operation{}
		}
		t.Dims[along] += o.t.Dims[along]
		expected := Type{t.Element, slices.Clone(t.Dims)}
		expected.Dims[along] = o.t.Dims[along]
		if !o.t.equal(expected) {
			p.fail(line, "%s and %s are joined along dimension %d", in[0].t, o.t, along)
		}
	}
	p.expect(line, got, t)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		out, strides, at := newTensor(t), stridesOf(t.Dims), 0
		for _, v := range in {
			v.put(v.t.Dims, stridesOf(v.t.Dims), 0, out, strides, at)
			at += v.t.Dims[along] * strides[along]
		}
		return out
	})}
}

func padForm(p *parser) operation {
	line, in := p.line(), p.count(2)
	p.want(",")
	low := p.setting("low")
	p.want(",")
	high := p.setting("high")
	p.want(",")
	interior := p.setting("interior")
	got := p.signature(in)
	from := in[0].t
	p.expect(line, []Type{in[1].t}, from.scalar())
	if n := from.rank(); p.err == nil && (len(low) != n || len(high) != n || len(interior) != n) {
		p.fail(line, "padding of another number of dimensions than %s", from)
	}
	if p.err != nil {
		return operation{}
	}
	t := Type{Element: from.Element}
	// Elements first[i] and following, seen[i] in number, are in the result.
	first, seen := make([]int, from.rank()), make([]int, from.rank())
	for i, d := range from.Dims {
		n := d + low[i] + high[i] + max(d-1, 0)*interior[i]
		if interior[i] < 0 || n < 0 {
			p.fail(line, "a padding of %d, %d, %d of %s", low[i], high[i], interior[i], from)
			return operation{}
		}
		t.Dims = append(t.Dims, n)
		step := interior[i] + 1
		first[i] = (max(-low[i], 0) + step - 1) / step
		seen[i] = max(min((n-1-low[i]+step)/step, d)-first[i], 0)
		if n-1-low[i] < 0 {
			seen[i] = 0
		}
	}
	p.expect(line, got, t)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		out := in[1].spread(t)
		if t.rank() == 0 {
			return in[0]
		}
		own, strides := stridesOf(from.Dims), stridesOf(t.Dims)
		offset, to := 0, 0
		for i := range own {
			offset += own[i] * first[i]
			to += strides[i] * (low[i] + first[i]*(interior[i]+1))
			strides[i] *= interior[i] + 1
		}
		in[0].put(seen, own, offset, out, strides, to)
		return out
	})}
}
