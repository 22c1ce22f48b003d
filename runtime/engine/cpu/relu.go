package cpu

// relu is max(0, x), in place.
type relu struct {
	still
	crew         *crew
	size         int
	y, dy        []float32
	rectify, cut job
}

func newReLU(w wiring) *relu {
	l := &relu{crew: w.crew, size: product(w.out), y: w.y, dy: w.dy}
	l.rectify, l.cut = l.rectifyPart, l.cutPart
	return l
}

func (l *relu) forward(p *pass)  { l.crew.run(p.n, l.rectify) }
func (l *relu) backward(p *pass) { l.crew.run(p.n, l.cut) }

func (l *relu) rectifyPart(_, from, to int) {
	y := l.y[from*l.size : to*l.size]
	for i, v := range y {
		// The builtin compiles without a branch and keeps NaN.
		y[i] = max(v, 0)
	}
}

// cutPart needs no inputs: an output of 0 is where the gradient ends.
func (l *relu) cutPart(_, from, to int) {
	y := l.y[from*l.size : to*l.size]
	dy := l.dy[from*l.size : to*l.size]
	for i, v := range y[:len(dy)] {
		if v == 0 {
			dy[i] = 0
		}
	}
}
