package stablehlotest

import (
	"slices"
	"strconv"
)

// dimensions say where an array has its two named dimensions and the spatial ones.
type dimensions struct {
	first, second int // batch and feature, or input and output feature
	spatial       []int
}

// dimensionNames reads [b, 0, 1, f].
func (p *parser) dimensionNames(first, second string) dimensions {
	line := p.line()
	d := dimensions{-1, -1, nil}
	spatial := map[int]int{}
	count := 0
	p.want("[")
	p.separated("]", func() {
		t := p.next()
		n, err := strconv.ParseUint(t.text, 10, 8)
		_, known := spatial[int(n)]
		switch {
		case t.kind == word && t.text == first && d.first < 0:
			d.first = count
		case t.kind == word && t.text == second && d.second < 0:
			d.second = count
		case t.kind == integer && err == nil && !known:
			spatial[int(n)] = count
		default:
			p.fail(t.line, "%s is not a dimension here, or appears twice", t)
		}
		count++
	})
	for i := range len(spatial) {
		at, ok := spatial[i]
		if !ok {
			p.fail(line, "spatial dimension %d is missing", i)
		}
		d.spatial = append(d.spatial, at)
	}
	if d.first < 0 || d.second < 0 {
		p.fail(line, "dimension %s or %s is missing", first, second)
	}
	return d
}

// rank is the number of dimensions.
func (d dimensions) rank() int { return len(d.spatial) + 2 }

// window is how a convolution's windows lie in one spatial dimension.
type window struct {
	stride, low, high, dilate, spread int // dilate is of the input, spread of the kernel
	reverse                           bool
}

// length is the number of windows.
func (w window) length(input, kernel int) int {
	whole := w.low + w.high + dilated(input, w.dilate)
	covered := dilated(kernel, w.spread)
	if whole <= 0 || covered > whole {
		return 0
	}
	return (whole-covered)/w.stride + 1
}

func dilated(n, by int) int {
	if n == 0 {
		return 0
	}
	return (n-1)*by + 1
}

// source is the input's element that window o sees at place k of the kernel, -1
// for padding and for the holes of dilation.
func (w window) source(input, kernel, o, k int) int {
	if w.reverse {
		k = kernel - 1 - k
	}
	at := o*w.stride + k*w.spread - w.low
	if at < 0 || at%w.dilate != 0 || at/w.dilate >= input {
		return -1
	}
	return at / w.dilate
}

// convolution is a checked convolution.
type convolution struct {
	input, kernel, output dimensions
	windows               []window
	features, batches     int // groups
	a, k, t               Type
}

func convolutionForm(p *parser) operation {
	line, in := p.line(), p.arguments()
	if p.err == nil && len(in) != 2 {
		p.fail(line, "%d operands, want 2", len(in))
	}
	var c convolution
	p.want("dim_numbers")
	p.want("=")
	c.input = p.dimensionNames("b", "f")
	p.want("x")
	c.kernel = p.dimensionNames("i", "o")
	p.want("->")
	c.output = p.dimensionNames("b", "f")
	p.want(",")
	c.windows = p.windows(line, len(c.input.spatial))
	found := p.dictionary("{", "}", map[string]func(){
		"batch_group_count":   func() { c.batches = p.integer64() },
		"feature_group_count": func() { c.features = p.integer64() },
		"precision_config":    func() { p.precision(p.precisionAttribute) },
	})
	if !found["batch_group_count"] || !found["feature_group_count"] {
		p.fail(line, "batch_group_count or feature_group_count is missing")
	}
	got := p.signature(in)
	if p.err != nil {
		return operation{}
	}
	c.a, c.k, c.t = in[0].t, in[1].t, p.only(line, got)
	p.wantProduct(line, c.a, c.k)
	p.checkConvolution(line, c, got)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return c.compute(in[0], in[1]) })}
}

// precisionAttribute reads #stablehlo<precision HIGHEST>.
func (p *parser) precisionAttribute() string {
	if t := p.take(hash, "#stablehlo"); t.text != "stablehlo" {
		p.fail(t.line, "%s, want #stablehlo", t)
	}
	p.want("<")
	p.want("precision")
	name := p.take(word, "a precision").text
	p.want(">")
	return name
}

// windows reads window = {stride = [1, 1], pad = [[0, 0], [0, 0]], …}.
func (p *parser) windows(line, rank int) []window {
	list := make([]window, rank)
	for i := range list {
		list[i] = window{stride: 1, dilate: 1, spread: 1}
	}
	// each reads a list with one item for each spatial dimension.
	each := func(read func(w *window)) func() {
		return func() {
			n := 0
			p.want("[")
			p.separated("]", func() {
				var w window
				if n < rank {
					w = list[n]
				}
				read(&w)
				if n < rank {
					list[n] = w
				}
				n++
			})
			if p.err == nil && n != rank {
				p.fail(line, "%d items of a window's attribute, want %d", n, rank)
			}
		}
	}
	positive := func(n *int) {
		if *n = p.number(); *n < 1 {
			p.fail(line, "%d in a window, want 1 or more", *n)
		}
	}
	p.want("window")
	p.want("=")
	p.dictionary("{", "}", map[string]func(){
		"stride":     each(func(w *window) { positive(&w.stride) }),
		"lhs_dilate": each(func(w *window) { positive(&w.dilate) }),
		"rhs_dilate": each(func(w *window) { positive(&w.spread) }),
		"reverse":    each(func(w *window) { w.reverse = p.boolean() }),
		"pad": each(func(w *window) {
			p.want("[")
			w.low = p.number()
			p.want(",")
			w.high = p.number()
			p.want("]")
		}),
	})
	return list
}

// checkConvolution compares the shapes.
func (p *parser) checkConvolution(line int, c convolution, got []Type) {
	rank := c.input.rank()
	if p.err == nil && (c.kernel.rank() != rank || c.output.rank() != rank || c.a.rank() != rank || c.k.rank() != rank) {
		p.fail(line, "dimension numbers of other ranks than %s and %s", c.a, c.k)
	}
	if p.err == nil && (c.batches < 1 || c.features < 1 || c.batches > 1 && c.features > 1) {
		p.fail(line, "%d batch groups and %d feature groups", c.batches, c.features)
	}
	if p.err != nil {
		return
	}
	records, features := c.a.Dims[c.input.first], c.a.Dims[c.input.second]
	filters := c.k.Dims[c.kernel.second]
	if records%c.batches != 0 || features%c.features != 0 || filters%c.batches != 0 || filters%c.features != 0 ||
		c.k.Dims[c.kernel.first] != features/c.features {
		p.fail(line, "%s and %s do not fit into %d batch groups and %d feature groups", c.a, c.k, c.batches, c.features)
	}
	t := Type{c.a.Element, make([]int, rank)}
	t.Dims[c.output.first], t.Dims[c.output.second] = records/c.batches, filters
	for i, w := range c.windows {
		t.Dims[c.output.spatial[i]] = w.length(c.a.Dims[c.input.spatial[i]], c.k.Dims[c.kernel.spatial[i]])
	}
	p.expect(line, got, t)
}

// tap is a place of the kernel with the input's place that a window sees there.
type tap struct{ input, kernel int }

// compute is a sum over the taps of each window. Arrays are ordered first, so that
// a window's outputs lie side by side.
func (c convolution) compute(a, k tensor) tensor {
	input := a.order([]int{c.input.first}, c.input.spatial, []int{c.input.second})
	kernel := k.order(c.kernel.spatial, []int{c.kernel.first, c.kernel.second})
	records, features := a.t.Dims[c.input.first], a.t.Dims[c.input.second]
	depth, filters := k.t.Dims[c.kernel.first], k.t.Dims[c.kernel.second]
	space := side{t: c.t}.sizes(c.output.spatial)
	places := Type{Dims: space}.Size()
	inside := Type{Dims: side{t: a.t}.sizes(c.input.spatial)}.Size()
	batch := records / c.batches
	sums := make([]float64, batch*places*filters)
	groups := max(c.features, c.batches)
	width := filters / groups // outputs of a group
	parallel(places*batch, func(from, to int) {
		var taps []tap
		for i := from; i < to; i++ {
			place, record := i/batch, i%batch
			if i == from || record == 0 {
				taps = c.taps(place, space)
			}
			sum := sums[(record*places+place)*filters:][:filters]
			for group := range groups {
				first, channel := record, 0
				if c.batches > 1 {
					first += group * batch
				} else {
					channel = group * depth
				}
				part := sum[group*width:][:width]
				for _, t := range taps {
					x := input[(first*inside+t.input)*features+channel:][:depth]
					for i, x := range x {
						addScaled(part, kernel[(t.kernel*depth+i)*filters+group*width:][:width], x)
					}
				}
			}
		}
	})
	return c.arrange(tensor{t: Type{c.t.Element, slices.Concat([]int{batch}, space, []int{filters})}, f: sums})
}

// arrange gives the dimensions of batch, space, filters their places in the result.
func (c convolution) arrange(v tensor) tensor {
	own, strides := stridesOf(v.t.Dims), make([]int, c.t.rank())
	last := v.t.rank() - 1
	strides[c.output.first], strides[c.output.second] = own[0], own[last]
	for i, d := range c.output.spatial {
		strides[d] = own[1+i]
	}
	return v.view(c.t, strides, 0)
}

// taps are the places of the kernel where a window does not see padding.
func (c convolution) taps(place int, space []int) []tap {
	at := make([]int, len(space))
	for i, d := range slices.Backward(space) {
		at[i] = place % d
		place /= d
	}
	list := []tap{{}}
	for i, w := range c.windows {
		input, kernel := c.a.Dims[c.input.spatial[i]], c.k.Dims[c.kernel.spatial[i]]
		var next []tap
		for _, t := range list {
			for k := range kernel {
				if source := w.source(input, kernel, at[i], k); source >= 0 {
					next = append(next, tap{t.input*input + source, t.kernel*kernel + k})
				}
			}
		}
		list = next
	}
	return list
}
