package cpu

import "github.com/stokehq/stoke/runtime/model"

// embedding looks up a row of its weights for each id of the input. Stage has checked
// the ids; below 2²⁴ a float32 holds each of them exactly.
type embedding struct {
	noParameters
	threads         *threads
	positions, size int // ids per record, elements of a row
	x, y, dy        []float32
	weight          *parameter
	look, scatter   job
}

func newEmbedding(w wiring) *embedding {
	l := &embedding{threads: w.threads, positions: w.out[0], size: w.out[1], x: w.x, y: w.y, dy: w.dy, weight: w.find(model.Weight)}
	l.look, l.scatter = l.lookPart, l.scatterPart
	return l
}

func (l *embedding) forward(p *pass)  { l.threads.run(p.n, l.look) }
func (l *embedding) backward(p *pass) { l.threads.run(p.n, l.scatter) }

func (l *embedding) lookPart(_, from, to int) {
	for i := from * l.positions; i < to*l.positions; i++ {
		copy(l.y[i*l.size:(i+1)*l.size], l.weight.value[int(l.x[i])*l.size:])
	}
}

func (l *embedding) scatterPart(part, from, to int) {
	for i := from * l.positions; i < to*l.positions; i++ {
		addRow(l.dy[i*l.size:(i+1)*l.size], l.weight.sums[part][int(l.x[i])*l.size:][:l.size])
	}
}

// position adds its weights to each record. The gradient of its outputs is also the
// gradient of its inputs.
type position struct {
	noParameters
	threads    *threads
	size       int
	x, y, dy   []float32
	weight     *parameter
	sum, learn job
}

func newPosition(w wiring) *position {
	l := &position{threads: w.threads, size: product(w.out), x: w.x, y: w.y, dy: w.dy, weight: w.find(model.Weight)}
	l.sum, l.learn = l.sumPart, l.learnPart
	return l
}

func (l *position) forward(p *pass)  { l.threads.run(p.n, l.sum) }
func (l *position) backward(p *pass) { l.threads.run(p.n, l.learn) }

func (l *position) sumPart(_, from, to int) {
	for r := from; r < to; r++ {
		y := l.y[r*l.size : (r+1)*l.size]
		copy(y, l.x[r*l.size:])
		addRow(l.weight.value, y)
	}
}

func (l *position) learnPart(part, from, to int) {
	sumRows(l.dy[from*l.size:to*l.size], l.size, l.weight.sums, part)
}
