package stablehlotest

import "slices"

// pooling are the windows of reduce_window and select_and_scatter, one for each
// dimension.
type pooling struct {
	sizes   []int
	windows []window
	input   Type
	output  Type
}

// poolingAttributes are the attributes of windows. The function that is returned
// checks them.
func (p *parser) poolingAttributes(line int, reduce bool) (map[string]func(), func(input, output Type) pooling) {
	var sizes, strides, dilate, spread []int
	var padding [][2]int
	known := map[string]func(){
		"window_dimensions": func() { sizes = p.array64() },
		"window_strides":    func() { strides = p.array64() },
		"padding":           func() { padding = p.pairs() },
	}
	if reduce {
		known["base_dilations"] = func() { dilate = p.array64() }
		known["window_dilations"] = func() { spread = p.array64() }
	}
	return known, func(input, output Type) pooling {
		x := pooling{sizes: sizes, input: input, output: output}
		rank := input.rank()
		if p.err == nil && (len(sizes) != rank || padding != nil && len(padding) != rank) {
			p.fail(line, "windows of %d dimensions of %s", len(sizes), input)
		}
		for _, list := range [][]int{sizes, strides, dilate, spread} {
			if p.err == nil && (list != nil && len(list) != rank || slices.ContainsFunc(list, func(n int) bool { return n < 1 })) {
				p.fail(line, "windows with %v of %s", list, input)
			}
		}
		if p.err != nil {
			return x
		}
		item := func(list []int, i int) int {
			if list == nil {
				return 1
			}
			return list[i]
		}
		for i := range rank {
			w := window{stride: item(strides, i), dilate: item(dilate, i), spread: item(spread, i)}
			if padding != nil {
				w.low, w.high = padding[i][0], padding[i][1]
			}
			x.windows = append(x.windows, w)
		}
		return x
	}
}

// lengths are the numbers of windows.
func (x pooling) lengths() []int {
	dims := []int{}
	for i, w := range x.windows {
		dims = append(dims, w.length(x.input.Dims[i], x.sizes[i]))
	}
	return dims
}

// each calls visit for the elements of the window of an output, in their order.
func (x pooling) each(output int, visit func(input int)) {
	at := make([]int, x.input.rank())
	for i, d := range slices.Backward(x.output.Dims) {
		at[i], output = output%d, output/d
	}
	places := []int{0}
	for i, w := range x.windows {
		var next []int
		for _, place := range places {
			for k := range x.sizes[i] {
				if s := w.source(x.input.Dims[i], x.sizes[i], at[i], k); s >= 0 {
					next = append(next, place*x.input.Dims[i]+s)
				}
			}
		}
		places = next
	}
	for _, place := range places {
		visit(place)
	}
}

func reduceWindowForm(p *parser) operation {
	line, in := p.line(), p.arguments()
	if p.err == nil && len(in) != 2 {
		p.fail(line, "%d operands, want 2: several values are not supported here", len(in))
	}
	known, check := p.poolingAttributes(line, true)
	g := p.generic(known, "window_dimensions")
	if p.err != nil {
		return operation{}
	}
	t := in[0].t
	var r reducer
	g.regions(func() { r = p.regionReducer(t, t.Element) })
	g.end()
	got := p.signature(in)
	p.expect(line, []Type{in[1].t}, t.scalar())
	p.wantNarrow(line, t)
	x := check(t, p.only(line, got))
	p.expect(line, got, Type{t.Element, x.lengths()})
	return operation{in: in, results: got, eval: func(f *frame, in []tensor) ([]tensor, error) {
		var failed error
		combine, out := r.bind(f, &failed), newTensor(x.output)
		for i := range out.f {
			sum := in[1].f[0]
			x.each(i, func(input int) { sum = combine(sum, in[0].f[input]) })
			out.f[i] = sum
		}
		return []tensor{out}, failed
	}}
}

func selectAndScatterForm(p *parser) operation {
	line, in := p.line(), p.arguments()
	if p.err == nil && len(in) != 3 {
		p.fail(line, "%d operands, want 3", len(in))
	}
	known, check := p.poolingAttributes(line, false)
	g := p.generic(known)
	if p.err != nil {
		return operation{}
	}
	t := in[0].t
	var choose, scatter reducer
	g.regions(func() { choose = p.regionReducer(t, "i1") }, func() { scatter = p.regionReducer(t, t.Element) })
	g.end()
	got := p.signature(in)
	p.expect(line, got, t)
	p.expect(line, []Type{in[2].t}, t.scalar())
	p.wantNarrow(line, t)
	x := check(t, in[1].t)
	p.expect(line, []Type{in[1].t}, Type{t.Element, x.lengths()})
	return operation{in: in, results: got, eval: func(f *frame, in []tensor) ([]tensor, error) {
		var failed error
		selected, combine := choose.bind(f, &failed), scatter.bind(f, &failed)
		out := in[2].spread(t)
		if t.rank() == 0 {
			out = in[2].view(t, nil, 0)
		}
		for i, source := range in[1].f {
			best := -1
			x.each(i, func(input int) {
				if best < 0 || selected(in[0].f[best], in[0].f[input]) == 0 {
					best = input
				}
			})
			if best >= 0 {
				out.f[best] = combine(out.f[best], source)
			}
		}
		return []tensor{out}, failed
	}}
}
