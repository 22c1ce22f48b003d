package cpu

import (
	"github.com/stokehq/stoke/runtime/model"
)

// narrow is the width up to which a dense layer works on transposed weights:
// gonum is fast along long rows, and the inputs' side is the longer one then.
const narrow = 32

// dense is y = x·W + b, at each position of a sequence.
type dense struct {
	threads      *threads
	rows         int // per record: the positions
	in, out      int // of a row
	x, y, dx, dy []float32
	weight, bias *parameter
	transposed   []float32   // out × in
	scratch      [][]float32 // narrow: per part, the transposed weights' gradient
	apply, learn job
}

// fillRows writes the bias into each row; a layer without one begins with zeros.
func fillRows(y []float32, width int, bias []float32) {
	if bias == nil {
		clear(y)
		return
	}
	for i := 0; i < len(y); i += width {
		copy(y[i:i+width], bias)
	}
}

// sumRows adds the rows to the sums of the bias; nil: there is none.
func sumRows(dy []float32, width int, sums [][]float32, part int) {
	if sums == nil {
		return
	}
	for i := 0; i < len(dy); i += width {
		addRow(dy[i:i+width], sums[part])
	}
}

func newDense(w wiring) *dense {
	l := &dense{
		threads: w.threads, in: w.in[len(w.in)-1], out: w.out[len(w.out)-1],
		x: w.x, y: w.y, dx: w.dx, dy: w.dy,
		weight: w.find(model.Weight), bias: w.find(model.Bias),
	}
	l.rows = product(w.in) / l.in
	if l.narrow() || l.dx != nil {
		l.transposed = make([]float32, l.in*l.out)
	}
	if l.narrow() {
		for range w.threads.parts {
			l.scratch = append(l.scratch, make([]float32, l.in*l.out))
		}
	}
	l.apply, l.learn = l.applyPart, l.learnPart
	return l
}

func (l *dense) narrow() bool { return l.out <= narrow && l.out < l.in }

func (l *dense) prepare() {
	if l.transposed != nil {
		transpose(l.in, l.out, l.weight.value, l.transposed)
	}
}

func (l *dense) forward(p *pass)  { l.threads.run(p.n, l.apply) }
func (l *dense) backward(p *pass) { l.threads.run(p.n, l.learn) }

func (l *dense) applyPart(_, from, to int) {
	from, to = from*l.rows, to*l.rows
	x, y := l.x[from*l.in:to*l.in], l.y[from*l.out:to*l.out]
	fillRows(y, l.out, l.bias.value)
	if l.narrow() {
		mulAddTB(to-from, l.out, l.in, x, l.transposed, y)
	} else {
		mulAdd(to-from, l.out, l.in, x, l.weight.value, y)
	}
}

func (l *dense) learnPart(part, from, to int) {
	from, to = from*l.rows, to*l.rows
	x, dy := l.x[from*l.in:to*l.in], l.dy[from*l.out:to*l.out]
	sumRows(dy, l.out, l.bias.sums, part)
	sums := l.weight.sums[part]
	if l.narrow() {
		s := l.scratch[part]
		clear(s)
		mulAddTA(l.out, l.in, to-from, dy, x, s)
		addTransposed(s, l.out, sums)
	} else {
		mulAddTA(l.in, l.out, to-from, x, dy, sums)
	}
	if l.dx != nil {
		dx := l.dx[from*l.in : to*l.in]
		clear(dx)
		mulAdd(to-from, l.in, l.out, dy, l.transposed, dx)
	}
}
