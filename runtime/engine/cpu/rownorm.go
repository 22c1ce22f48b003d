package cpu

import (
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// rowNorm is layer normalisation (Ba, Kiros and Hinton 2016) over the last dimension.
type rowNorm struct {
	noParameters
	threads      *threads
	rows, width  int // per record
	epsilon      float64
	x, y, dy     []float32
	gamma, beta  *parameter
	mean         []float32 // of each row of the pass
	inverse      []float32 // 1/√(variance + ε)
	apply, learn job
}

func newRowNorm(w wiring) *rowNorm {
	width := w.in[len(w.in)-1]
	rows := product(w.in) / width
	batch := len(w.x) / product(w.in)
	l := &rowNorm{
		threads: w.threads, rows: rows, width: width, epsilon: float64(w.spec.Eps()), x: w.x, y: w.y, dy: w.dy,
		gamma: w.find(model.Gamma), beta: w.find(model.Beta),
		mean: make([]float32, batch*rows), inverse: make([]float32, batch*rows),
	}
	l.apply, l.learn = l.applyPart, l.learnPart
	return l
}

func (l *rowNorm) forward(p *pass)  { l.threads.run(p.n, l.apply) }
func (l *rowNorm) backward(p *pass) { l.threads.run(p.n, l.learn) }

func (l *rowNorm) applyPart(_, from, to int) {
	n := float64(l.width)
	for row := from * l.rows; row < to*l.rows; row++ {
		x, y := l.x[row*l.width:(row+1)*l.width], l.y[row*l.width:(row+1)*l.width]
		sum, square := 0.0, 0.0
		for _, v := range x {
			sum += float64(v)
		}
		mean := sum / n
		for _, v := range x {
			square += (float64(v) - mean) * (float64(v) - mean)
		}
		m, inverse := float32(mean), float32(1/math.Sqrt(square/n+l.epsilon))
		l.mean[row], l.inverse[row] = m, inverse
		for i, v := range x {
			y[i] = (v-m)*inverse*l.gamma.value[i] + l.beta.value[i]
		}
	}
}

func (l *rowNorm) learnPart(part, from, to int) {
	n := float64(l.width)
	gamma, beta := l.gamma.sums[part], l.beta.sums[part]
	for row := from * l.rows; row < to*l.rows; row++ {
		x, dy := l.x[row*l.width:(row+1)*l.width], l.dy[row*l.width:(row+1)*l.width]
		mean, inverse := l.mean[row], l.inverse[row]
		plain, along := 0.0, 0.0
		for i, d := range dy {
			unit := (x[i] - mean) * inverse
			gamma[i] += d * unit
			beta[i] += d
			g := float64(d * l.gamma.value[i])
			plain += g
			along += g * float64(unit)
		}
		plain, along = plain/n, along/n
		for i, d := range dy {
			unit := float64((x[i] - mean) * inverse)
			dy[i] = inverse * float32(float64(d*l.gamma.value[i])-plain-along*unit)
		}
	}
}
