package cpu

import (
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// activation is a function of each element.
type activation struct {
	noParameters
	threads     *threads
	size        int
	x, y, dy    []float32
	value       func(x float64) float64
	slope       func(x float64) float64 // from x: a later layer may overwrite y
	apply, back job
}

func newActivation(w wiring) *activation {
	l := &activation{threads: w.threads, size: product(w.out), x: w.x, y: w.y, dy: w.dy}
	switch w.spec.Op {
	case model.Tanh:
		l.value, l.slope = math.Tanh, func(x float64) float64 { return 1 - math.Tanh(x)*math.Tanh(x) }
	case model.Sigmoid:
		l.value, l.slope = sigmoid, func(x float64) float64 { return sigmoid(x) * sigmoid(-x) }
	default: // GELU
		l.value, l.slope = gelu, geluSlope
	}
	l.apply, l.back = l.applyPart, l.backPart
	return l
}

func (l *activation) forward(p *pass)  { l.threads.run(p.n, l.apply) }
func (l *activation) backward(p *pass) { l.threads.run(p.n, l.back) }

func (l *activation) applyPart(_, from, to int) {
	y := l.y[from*l.size : to*l.size]
	for i, v := range l.x[from*l.size : to*l.size] {
		y[i] = float32(l.value(float64(v)))
	}
}

func (l *activation) backPart(_, from, to int) {
	x, dy := l.x[from*l.size:to*l.size], l.dy[from*l.size:to*l.size]
	for i, d := range dy {
		dy[i] = float32(float64(d) * l.slope(float64(x[i])))
	}
}

func sigmoid(x float64) float64 {
	if x < 0 { // where eˣ does not overflow
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

func gelu(x float64) float64 { return x * normal(x) }

func geluSlope(x float64) float64 {
	return normal(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

// normal is the distribution function of the standard normal distribution.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
