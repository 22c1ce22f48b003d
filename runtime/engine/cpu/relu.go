package cpu

import "math"

// relu is max(0, x), in place.
type relu struct {
	noParameters
	threads       *threads
	size          int
	y, dy         []float32
	rectify, mask job
}

func newReLU(w wiring) *relu {
	l := &relu{threads: w.threads, size: product(w.out), y: w.y, dy: w.dy}
	l.rectify, l.mask = l.rectifyPart, l.maskPart
	return l
}

func (l *relu) forward(p *pass)  { l.threads.run(p.n, l.rectify) }
func (l *relu) backward(p *pass) { l.threads.run(p.n, l.mask) }

func (l *relu) rectifyPart(_, from, to int) {
	y := l.y[from*l.size : to*l.size]
	for i, v := range y {
		// The builtin compiles without a branch and keeps NaN.
		y[i] = max(v, 0)
	}
}

// maskPart needs no inputs: an output of 0 is where the gradient ends.
func (l *relu) maskPart(_, from, to int) {
	y := l.y[from*l.size : to*l.size]
	dy := l.dy[from*l.size : to*l.size]
	for i, v := range y[:len(dy)] {
		// Of bits, the compiler chooses without a branch, which nobody could predict.
		bits := math.Float32bits(dy[i])
		if v == 0 {
			bits = 0
		}
		dy[i] = math.Float32frombits(bits)
	}
}
