package cpu

// pool is the maximum of each window, per channel; of equal values the first
// gets the gradient.
type pool struct {
	noParameters
	threads       *threads
	kernel, step  int
	width, depth  int // of the input
	rows, columns int // of the output
	in, out       int // elements per record
	x, y, dx, dy  []float32
	best          []int32 // where in its record each output came from
	pick, back    job
}

func newPool(w wiring) *pool {
	l := &pool{
		threads: w.threads, kernel: w.spec.Kernel, step: w.spec.Step(),
		width: w.in[1], depth: w.in[2], rows: w.out[0], columns: w.out[1],
		in: product(w.in), out: product(w.out),
		x: w.x, y: w.y, dx: w.dx, dy: w.dy,
		best: make([]int32, len(w.y)),
	}
	l.pick, l.back = l.pickPart, l.backPart
	return l
}

func (l *pool) forward(p *pass) { l.threads.run(p.n, l.pick) }

func (l *pool) backward(p *pass) {
	if l.dx != nil {
		l.threads.run(p.n, l.back)
	}
}

func (l *pool) pickPart(_, from, to int) {
	for r := from; r < to; r++ {
		x, y := l.x[r*l.in:(r+1)*l.in], l.y[r*l.out:(r+1)*l.out]
		best := l.best[r*l.out : (r+1)*l.out]
		for oy := range l.rows {
			for ox := range l.columns {
				at := (oy*l.columns + ox) * l.depth
				l.window(x, oy*l.step, ox*l.step, y[at:at+l.depth], best[at:at+l.depth])
			}
		}
	}
}

// window writes the maxima of the window at (top, left), all channels.
func (l *pool) window(x []float32, top, left int, y []float32, best []int32) {
	start := (top*l.width + left) * l.depth
	copy(y, x[start:start+l.depth])
	for c := range best {
		best[c] = int32(start + c)
	}
	for ky := range l.kernel {
		for kx := range l.kernel {
			at := start + (ky*l.width+kx)*l.depth
			for c, v := range x[at : at+len(y)] {
				if v > y[c] {
					y[c], best[c] = v, int32(at+c)
				}
			}
		}
	}
}

func (l *pool) backPart(_, from, to int) {
	for r := from; r < to; r++ {
		dx, dy := l.dx[r*l.in:(r+1)*l.in], l.dy[r*l.out:(r+1)*l.out]
		clear(dx)
		for i, at := range l.best[r*l.out : (r+1)*l.out] {
			dx[at] += dy[i]
		}
	}
}
