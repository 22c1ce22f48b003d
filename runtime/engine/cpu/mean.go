package cpu

import "github.com/stokehq/stoke/runtime/model"

// mean is the mean of each window, per channel; over the whole picture for
// model.GlobalAvg.
type mean struct {
	noParameters
	threads       *threads
	tall, wide    int // of a window
	step          int
	width, depth  int // of the input
	rows, columns int // of the output
	in, out       int // elements per record
	x, y, dx, dy  []float32
	average, back job
}

func newMean(w wiring) *mean {
	l := &mean{
		threads: w.threads, tall: w.in[0], wide: w.in[1], step: 1, width: w.in[1], depth: w.in[2], rows: 1, columns: 1,
		in: product(w.in), out: product(w.out), x: w.x, y: w.y, dx: w.dx, dy: w.dy,
	}
	if w.spec.Op == model.AvgPool {
		l.tall, l.wide, l.step, l.rows, l.columns = w.spec.Kernel, w.spec.Kernel, w.spec.Step(), w.out[0], w.out[1]
	}
	l.average, l.back = l.averagePart, l.backPart
	return l
}

func (l *mean) forward(p *pass) { l.threads.run(p.n, l.average) }

func (l *mean) backward(p *pass) {
	if l.dx != nil {
		l.threads.run(p.n, l.back)
	}
}

// windows calls f for each row of inputs of each window, with the index of the window's
// output and the index of the row's first input.
func (l *mean) windows(f func(at, from int)) {
	for row := range l.rows {
		for column := range l.columns {
			for y := range l.tall {
				f((row*l.columns+column)*l.depth, ((row*l.step+y)*l.width+column*l.step)*l.depth)
			}
		}
	}
}

func (l *mean) averagePart(_, from, to int) {
	share := 1 / float32(l.tall*l.wide)
	for r := from; r < to; r++ {
		x, y := l.x[r*l.in:(r+1)*l.in], l.y[r*l.out:(r+1)*l.out]
		clear(y)
		l.windows(func(at, from int) {
			for i := range l.wide {
				addRow(x[from+i*l.depth:from+(i+1)*l.depth], y[at:at+l.depth])
			}
		})
		for i := range y {
			y[i] *= share
		}
	}
}

func (l *mean) backPart(_, from, to int) {
	share := 1 / float32(l.tall*l.wide)
	for r := from; r < to; r++ {
		dx, dy := l.dx[r*l.in:(r+1)*l.in], l.dy[r*l.out:(r+1)*l.out]
		clear(dx)
		l.windows(func(at, from int) {
			for i := range l.wide {
				d := dx[from+i*l.depth : from+(i+1)*l.depth]
				for c, v := range dy[at : at+l.depth] {
					d[c] += v * share
				}
			}
		})
	}
}
