package stablehlotest

import "slices"

// indexing is how a gather or a scatter finds a part of an array, in the words of
// a gather.
type indexing struct {
	operand, indices Type
	window           []int // offset_dims: dimensions of the result within a part
	collapsed        []int // collapsed_slice_dims
	batchOperand     []int // operand_batching_dims
	batchIndices     []int // start_indices_batching_dims
	starts           []int // start_index_map
	vector           int   // index_vector_dim
	sizes            []int // slice_sizes
	result           Type  // of the gather, or the updates of a scatter
}

// checkIndexing compares the numbers with the shapes.
func (p *parser) checkIndexing(line int, x indexing) {
	rank := x.indices.rank()
	removed := slices.Concat(x.collapsed, x.batchOperand)
	if p.err != nil {
		return
	}
	switch {
	case !isInteger(x.indices.Element):
		p.fail(line, "indices of the type %s", x.indices)
	case x.vector < 0 || x.vector > rank:
		p.fail(line, "index_vector_dim %d of %s", x.vector, x.indices)
	case !unique(removed, x.operand.rank()):
		p.fail(line, "collapsed or inserted dimensions %v of %s", removed, x.operand)
	case !slices.IsSorted(x.collapsed) || !slices.IsSorted(x.batchOperand) || !slices.IsSorted(x.window):
		p.fail(line, "dimensions that are not in order")
	case !unique(x.window, x.result.rank()):
		p.fail(line, "window dimensions %v of %s", x.window, x.result)
	case !unique(slices.Concat(x.starts, x.batchOperand), x.operand.rank()):
		p.fail(line, "indices of the dimensions %v of %s", x.starts, x.operand)
	case !unique(x.batchIndices, rank) || slices.Contains(x.batchIndices, x.vector):
		p.fail(line, "batching dimensions %v of %s", x.batchIndices, x.indices)
	case len(x.batchIndices) != len(x.batchOperand):
		p.fail(line, "batching dimensions %v and %v", x.batchOperand, x.batchIndices)
	case len(x.starts) != x.components():
		p.fail(line, "%d indices in %s, want %d", x.components(), x.indices, len(x.starts))
	case len(x.window)+len(removed) != x.operand.rank() || len(x.window)+len(x.outer()) != x.result.rank():
		p.fail(line, "parts of %d dimensions of %s as %s", len(x.window), x.operand, x.result)
	}
	for i, d := range x.batchOperand {
		if p.err == nil && x.operand.Dims[d] != x.indices.Dims[x.batchIndices[i]] {
			p.fail(line, "batching dimensions %v and %v have different sizes", x.batchOperand, x.batchIndices)
		}
	}
}

// components is the number of indices of one part.
func (x indexing) components() int {
	if x.vector == x.indices.rank() {
		return 1
	}
	return x.indices.Dims[x.vector]
}

// outer are the sizes of the indices without the dimension of the vector.
func (x indexing) outer() []int {
	var sizes []int
	for i, d := range x.indices.Dims {
		if i != x.vector {
			sizes = append(sizes, d)
		}
	}
	return sizes
}

// inner are the sizes of a part in the result.
func (x indexing) inner() []int {
	var sizes []int
	for i, s := range x.sizes {
		if !slices.Contains(x.collapsed, i) && !slices.Contains(x.batchOperand, i) {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

// shape are the result's dimensions: the sizes of a part at the window dimensions,
// the sizes of the indices at the others.
func (x indexing) shape() []int {
	inner, outer := x.inner(), x.outer()
	var dims []int
	for i := range len(inner) + len(outer) {
		if slices.Contains(x.window, i) {
			dims, inner = append(dims, inner[0]), inner[1:]
		} else {
			dims, outer = append(dims, outer[0]), outer[1:]
		}
	}
	return dims
}

// each calls visit for all parts: with the first index of a part in the operand,
// and its place in the result.
func (x indexing) each(indices tensor, visit func(start []int, place int)) {
	strides, outer := stridesOf(x.indices.Dims), []int{}
	components := 0
	for i, s := range strides {
		if i != x.vector {
			outer = append(outer, s)
		} else {
			components = s
		}
	}
	var places []int
	for i, s := range stridesOf(x.result.Dims) {
		if !slices.Contains(x.window, i) {
			places = append(places, s)
		}
	}
	dims := x.outer()
	at := make([]int, len(dims))
	for n := range (Type{Dims: dims}).Size() {
		for i, d := range slices.Backward(dims) {
			at[i], n = n%d, n/d
		}
		from, place := 0, 0
		for i, a := range at {
			from += a * outer[i]
			place += a * places[i]
		}
		start := make([]int, x.operand.rank())
		for i, d := range x.starts {
			start[d] = indices.index(from + i*components)
		}
		for i, d := range x.batchOperand {
			b := x.batchIndices[i]
			if x.vector < b {
				b--
			}
			start[d] = at[b]
		}
		visit(start, place)
	}
}

// inside are the strides of a part in the operand and in the result.
func (x indexing) inside() (operand, result []int) {
	for i, s := range stridesOf(x.operand.Dims) {
		if !slices.Contains(x.collapsed, i) && !slices.Contains(x.batchOperand, i) {
			operand = append(operand, s)
		}
	}
	strides := stridesOf(x.result.Dims)
	for _, w := range x.window {
		result = append(result, strides[w])
	}
	return operand, result
}

func gatherForm(p *parser) operation {
	line, in := p.line(), p.arguments()
	if p.err == nil && len(in) != 2 {
		p.fail(line, "%d operands, want 2", len(in))
	}
	var x indexing
	g := p.generic(map[string]func(){
		"dimension_numbers": func() {
			p.structure("gather", map[string]func(){
				"offset_dims":                 func() { x.window = p.list() },
				"collapsed_slice_dims":        func() { x.collapsed = p.list() },
				"operand_batching_dims":       func() { x.batchOperand = p.list() },
				"start_indices_batching_dims": func() { x.batchIndices = p.list() },
				"start_index_map":             func() { x.starts = p.list() },
				"index_vector_dim":            func() { x.vector = p.number() },
			})
		},
		"slice_sizes":        func() { x.sizes = p.array64() },
		"indices_are_sorted": func() { p.boolean() },
	}, "dimension_numbers", "slice_sizes")
	g.end()
	got := p.signature(in)
	if p.err != nil {
		return operation{}
	}
	x.operand, x.indices, x.result = in[0].t, in[1].t, p.only(line, got)
	p.checkIndexing(line, x)
	p.part(line, x.operand, x.sizes)
	for _, d := range slices.Concat(x.collapsed, x.batchOperand) {
		if p.err == nil && x.sizes[d] > 1 {
			p.fail(line, "a collapsed dimension of %d elements", x.sizes[d])
		}
	}
	if p.err != nil {
		return operation{}
	}
	p.expect(line, got, Type{x.operand.Element, x.shape()})
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		out, strides := newTensor(x.result), stridesOf(x.operand.Dims)
		own, places := x.inside()
		x.each(in[1], func(start []int, place int) {
			from := 0
			for i, s := range start {
				from += strides[i] * max(0, min(s, x.operand.Dims[i]-x.sizes[i]))
			}
			in[0].put(x.inner(), own, from, out, places, place)
		})
		return out
	})}
}

func scatterForm(p *parser) operation {
	line, in := p.line(), p.arguments()
	if p.err == nil && len(in) != 3 {
		p.fail(line, "%d operands, want 3: several values are not supported here", len(in))
	}
	var x indexing
	g := p.generic(map[string]func(){
		"scatter_dimension_numbers": func() {
			p.structure("scatter", map[string]func(){
				"update_window_dims":            func() { x.window = p.list() },
				"inserted_window_dims":          func() { x.collapsed = p.list() },
				"input_batching_dims":           func() { x.batchOperand = p.list() },
				"scatter_indices_batching_dims": func() { x.batchIndices = p.list() },
				"scatter_dims_to_operand_dims":  func() { x.starts = p.list() },
				"index_vector_dim":              func() { x.vector = p.number() },
			})
		},
		"indices_are_sorted": func() { p.boolean() },
		"unique_indices":     func() { p.boolean() },
	}, "scatter_dimension_numbers")
	if p.err != nil {
		return operation{}
	}
	x.operand, x.indices, x.result = in[0].t, in[1].t, in[2].t
	var r reducer
	g.regions(func() { r = p.regionReducer(x.operand, x.operand.Element) })
	g.end()
	got := p.signature(in)
	p.expect(line, got, x.operand)
	p.expect(line, []Type{x.result.scalar()}, x.operand.scalar())
	p.wantNarrow(line, x.operand)
	p.checkIndexing(line, x)
	if p.err != nil {
		return operation{}
	}
	// The updates give the sizes of a part.
	x.sizes = slices.Repeat([]int{1}, x.operand.rank())
	next := 0
	for i := range x.sizes {
		if !slices.Contains(x.collapsed, i) && !slices.Contains(x.batchOperand, i) {
			x.sizes[i] = x.result.Dims[x.window[next]]
			next++
		}
	}
	p.part(line, x.operand, x.sizes)
	p.expect(line, []Type{x.result}, Type{x.operand.Element, x.shape()})
	return operation{in: in, results: got, eval: x.scatter(r)}
}

// wantNarrow reports integers of 64 bits, where they are not supported.
func (p *parser) wantNarrow(line int, t Type) {
	if p.err == nil && isWide(t.Element) {
		p.fail(line, "%s is not supported here", t)
	}
}

// scatter updates elements in the order of the updates. An element outside of the
// operand is left out.
func (x indexing) scatter(r reducer) evaluator {
	return func(f *frame, in []tensor) ([]tensor, error) {
		var failed error
		combine := r.bind(f, &failed)
		strides := stridesOf(x.operand.Dims)
		out := in[0].view(x.operand, strides, 0)
		_, places := x.inside()
		dims := x.sizes
		// The places of a part's elements in the updates, in the order of the
		// operand's dimensions.
		updates := make([]int, len(dims))
		next := 0
		for i := range dims {
			if !slices.Contains(x.collapsed, i) && !slices.Contains(x.batchOperand, i) {
				updates[i] = places[next]
				next++
			}
		}
		x.each(in[1], func(start []int, place int) {
			at := make([]int, len(dims))
			for n := range (Type{Dims: dims}).Size() {
				for i, d := range slices.Backward(dims) {
					at[i], n = n%d, n/d
				}
				from, to, ok := place, 0, true
				for i, a := range at {
					s := start[i] + a
					ok = ok && s >= 0 && s < x.operand.Dims[i]
					from += a * updates[i]
					to += s * strides[i]
				}
				if ok {
					out.f[to] = combine(out.f[to], in[2].f[from])
				}
			}
		})
		return []tensor{out}, failed
	}
}
