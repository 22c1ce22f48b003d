package stablehlotest

import "slices"

// reduction is a reduce of one or more values along the same dimensions.
type reduction struct {
	count int // of values
	over  []int
	t     Type // of the first value
	outer Type // of its result
}

// reduceForm reads the printed forms: "applies" with one value, and "reducer" with
// a region.
func reduceForm(p *parser) operation {
	line := p.line()
	var values, starts []operand
	for {
		p.want("(")
		values = append(values, p.operand())
		p.want("init")
		p.want(":")
		starts = append(starts, p.operand())
		p.want(")")
		if !p.accept(",") {
			break
		}
	}
	name := token{}
	if len(values) == 1 && p.accept("applies") {
		name = p.take(word, "an operation")
	}
	p.want("across")
	over := p.setting("dimensions")
	in := slices.Concat(values, starts)
	got := p.signature(in)
	r := p.reduction(line, in, over, got)
	if name.kind == word {
		o, ok := binaries()[trim(name.text)]
		if !ok || !commutative(trim(name.text)) {
			p.fail(line, "a reduction by %s", name)
			return operation{}
		}
		p.wantClass(line, r.t.Element, o.on)
		return operation{in: in, results: got, eval: r.by(o)}
	}
	p.want("reducer")
	p.push()
	left, right := []int{}, []int{}
	types := scalars(values)
	for i := range values {
		p.want("(")
		left = append(left, p.parameter(line, i, types)...)
		p.want(",")
		right = append(right, p.parameter(line, i, types)...)
		p.want(")")
	}
	p.want("{")
	body := p.closedBody(line, slices.Concat(left, right), slices.Concat(types, types), types)
	return operation{in: in, results: got, eval: r.byRegion(body)}
}

// genericReduceForm reads "stablehlo.reduce"(…) ({…}) {dimensions = …}.
func genericReduceForm(p *parser) operation {
	line := p.line()
	in := p.arguments()
	n := len(in) / 2
	var over []int
	g := p.generic(map[string]func(){"dimensions": func() { over = p.array64() }}, "dimensions")
	types := scalars(in[:n])
	var body *block
	g.regions(func() { body = p.region(slices.Concat(types, types), types) })
	g.end()
	got := p.signature(in)
	r := p.reduction(line, in, over, got)
	return operation{in: in, results: got, eval: r.byRegion(body)}
}

func scalars(in []operand) []Type {
	var types []Type
	for _, o := range in {
		types = append(types, o.t.scalar())
	}
	return types
}

// commutative reports whether MLIR's parser accepts an operation after "applies".
func commutative(name string) bool {
	return slices.Contains([]string{"add", "multiply", "maximum", "minimum", "and", "or", "xor"}, name)
}

// reduction checks types: values, then the scalars that they begin with.
func (p *parser) reduction(line int, in []operand, over []int, got []Type) reduction {
	n := len(in) / 2
	if p.err == nil && (n == 0 || len(in) != 2*n || !unique(over, in[0].t.rank())) {
		p.fail(line, "%d operands are reduced over %v", len(in), over)
	}
	if p.err != nil {
		return reduction{}
	}
	r := reduction{count: n, over: over, t: in[0].t}
	for i, d := range r.t.Dims {
		if !slices.Contains(over, i) {
			r.outer.Dims = append(r.outer.Dims, d)
		}
	}
	r.outer.Element = r.t.Element
	var want []Type
	for i, o := range in[:n] {
		if !equalInts(o.t.Dims, r.t.Dims) {
			p.fail(line, "%s and %s are reduced together", r.t, o.t)
		}
		p.expect(line, []Type{in[n+i].t}, o.t.scalar())
		want = append(want, r.outer.with(o.t.Element))
	}
	p.expect(line, got, want...)
	return r
}

// places are the strides of the result in the order of the value's dimensions, 0
// along reduced dimensions.
func (r reduction) places() []int {
	strides, rest := make([]int, r.t.rank()), stridesOf(r.outer.Dims)
	for i := range strides {
		if !slices.Contains(r.over, i) {
			strides[i], rest = rest[0], rest[1:]
		}
	}
	return strides
}

// by reduces one value with a binary operation.
func (r reduction) by(o binary) evaluator {
	places := r.places()
	return one(func(in []tensor) tensor {
		out := newTensor(r.outer)
		if out.u != nil {
			accumulate(r.t.Dims, in[0].u, out.u, in[1].u[0], places, o.wide(r.t.Element))
		} else {
			accumulate(r.t.Dims, in[0].f, out.f, in[1].f[0], places, o.scalar(r.t.Element))
		}
		return out
	})
}

func accumulate[T any](dims []int, in, out []T, start T, places []int, f func(x, y T) T) {
	for i := range out {
		out[i] = start
	}
	n, step := 1, 0
	if last := len(dims) - 1; last >= 0 {
		n, step = dims[last], places[last]
	}
	walk(dims, stridesOf(dims), places, 0, 0, func(from, to int) {
		for _, x := range in[from : from+n] {
			out[to] = f(out[to], x)
			to += step
		}
	})
}

// byRegion reduces with a region, from the first element of each sum on.
func (r reduction) byRegion(b *block) evaluator {
	places := r.places()
	return func(f *frame, in []tensor) ([]tensor, error) {
		values, starts := in[:r.count], in[r.count:]
		sums := make([][]tensor, r.outer.Size())
		for i := range sums {
			sums[i] = starts
		}
		order := make([]int, r.t.Size())
		walkAll(r.t.Dims, places, func(from, to int) { order[from] = to })
		for i, to := range order {
			next := slices.Clone(sums[to])
			for _, v := range values {
				next = append(next, v.element(i))
			}
			var err error
			if sums[to], err = f.run(b, next); err != nil {
				return nil, err
			}
		}
		out := make([]tensor, r.count)
		for k, v := range values {
			out[k] = newTensor(r.outer.with(v.t.Element))
			for i, s := range sums {
				out[k].set(i, s[k])
			}
		}
		return out, nil
	}
}

// set copies a scalar to an element.
func (v tensor) set(i int, from tensor) {
	if v.u != nil {
		v.u[i] = from.u[0]
		return
	}
	v.f[i] = from.f[0]
}

// walkAll calls visit for each element, with its number and its place by strides.
func walkAll(dims, places []int, visit func(number, place int)) {
	n, step := 1, 0
	if last := len(dims) - 1; last >= 0 {
		n, step = dims[last], places[last]
	}
	walk(dims, stridesOf(dims), places, 0, 0, func(from, to int) {
		for i := range n {
			visit(from+i, to+i*step)
		}
	})
}
