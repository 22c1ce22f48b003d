package cpu

// isDepthwise reports whether each group has one channel and one filter. Products
// of matrices with one column are slow, so that it works element by element, not unfolded.
func (l *conv) isDepthwise() bool { return l.groups > 1 && l.groups == l.depth && l.groups == l.maps }

// visitTaps calls f for each pair of an output position and an input that it sees, with the
// index of the first channel in the outputs, in the weights and in the inputs.
func (l *conv) visitTaps(f func(out, place, in int)) {
	patch := l.kernel * l.kernel * l.depth
	l.spans(0, l.rows, func(at, from, to int) {
		out, place := at/patch*l.maps, at%patch
		for ; from < to; from += l.depth {
			f(out, place, from)
			place += l.depth
		}
	})
}

func (l *conv) applyDepthwisePart(_, from, to int) {
	in, out := l.height*l.width*l.depth, l.rows*l.columns*l.maps
	for r := from; r < to; r++ {
		x, y := l.x[r*in:(r+1)*in], l.y[r*out:(r+1)*out]
		fillRows(y, l.maps, l.bias.value)
		l.visitTaps(func(out, place, in int) {
			addProducts(y[out:out+l.depth], x[in:], l.weight.value[place:])
		})
	}
}

func (l *conv) learnDepthwisePart(part, from, to int) {
	in, out := l.height*l.width*l.depth, l.rows*l.columns*l.maps
	for r := from; r < to; r++ {
		x, dy := l.x[r*in:(r+1)*in], l.dy[r*out:(r+1)*out]
		sumRows(dy, l.maps, l.bias.sums, part)
		l.visitTaps(func(out, place, in int) {
			addProducts(l.weight.sums[part][place:place+l.depth], x[in:], dy[out:])
		})
		if l.dx == nil {
			continue
		}
		dx := l.dx[r*in : (r+1)*in]
		clear(dx)
		l.visitTaps(func(out, place, in int) {
			addProducts(dx[in:in+l.depth], dy[out:], l.weight.value[place:])
		})
	}
}

// addProducts adds the products of the elements of a and b to the elements of c.
func addProducts(c, a, b []float32) {
	a, b = a[:len(c)], b[:len(c)]
	for i := range c {
		c[i] += a[i] * b[i]
	}
}
