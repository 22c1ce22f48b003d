package cpu

// gather adds up the gradients that the readers of a layer's outputs have for it.
type gather struct {
	threads *threads
	size    int // per record
	total   []float32
	others  [][]float32
	sum     job
}

// addGradient returns the gather with one more gradient; g may be nil.
func (g *gather) addGradient(threads *threads, total, other []float32, size int) *gather {
	if g == nil {
		g = &gather{threads: threads, size: size, total: total}
		g.sum = g.sumPart
	}
	g.others = append(g.others, other)
	return g
}

func (g *gather) run(p *pass) { g.threads.run(p.n, g.sum) }

func (g *gather) sumPart(_, from, to int) {
	total := g.total[from*g.size : to*g.size]
	for _, other := range g.others {
		for i, v := range other[from*g.size : to*g.size] {
			total[i] += v
		}
	}
}

// add is the sum of several inputs. Each input has its gradient.
type add struct {
	noParameters
	threads    *threads
	size       int
	xs, dxs    [][]float32
	y, dy      []float32
	sum, share job
}

func newAdd(w wiring) *add {
	l := &add{threads: w.threads, size: product(w.out), xs: w.xs, y: w.y, dy: w.dy, dxs: w.dxs}
	l.sum, l.share = l.sumPart, l.sharePart
	return l
}

func (l *add) forward(p *pass)  { l.threads.run(p.n, l.sum) }
func (l *add) backward(p *pass) { l.threads.run(p.n, l.share) }

func (l *add) sumPart(_, from, to int) {
	from, to = from*l.size, to*l.size
	y := l.y[from:to]
	copy(y, l.xs[0][from:to])
	for _, x := range l.xs[1:] {
		for i, v := range x[from:to] {
			y[i] += v
		}
	}
}

func (l *add) sharePart(_, from, to int) {
	from, to = from*l.size, to*l.size
	for _, dx := range l.dxs {
		if dx != nil && &dx[0] != &l.dy[0] {
			copy(dx[from:to], l.dy[from:to])
		}
	}
}

// concat puts the last dimensions of its inputs side by side.
type concat struct {
	noParameters
	threads     *threads
	rows        int // per record
	widths      []int
	width       int // of a row of the output
	xs, dxs     [][]float32
	y, dy       []float32
	join, split job
}

func newConcat(w wiring) *concat {
	l := &concat{threads: w.threads, width: w.out[len(w.out)-1], xs: w.xs, dxs: w.dxs, y: w.y, dy: w.dy}
	l.rows = product(w.out) / l.width
	for _, in := range w.ins {
		l.widths = append(l.widths, in[len(in)-1])
	}
	l.join, l.split = l.joinPart, l.splitPart
	return l
}

func (l *concat) forward(p *pass)  { l.threads.run(p.n, l.join) }
func (l *concat) backward(p *pass) { l.threads.run(p.n, l.split) }

func (l *concat) joinPart(_, from, to int) {
	for row := from * l.rows; row < to*l.rows; row++ {
		at := row * l.width
		for k, width := range l.widths {
			copy(l.y[at:at+width], l.xs[k][row*width:])
			at += width
		}
	}
}

func (l *concat) splitPart(_, from, to int) {
	for row := from * l.rows; row < to*l.rows; row++ {
		at := row * l.width
		for k, width := range l.widths {
			if l.dxs[k] != nil {
				copy(l.dxs[k][row*width:(row+1)*width], l.dy[at:at+width])
			}
			at += width
		}
	}
}
