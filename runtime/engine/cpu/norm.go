package cpu

import (
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// norm is batch normalisation (Ioffe and Szegedy 2015) over the records and
// positions of the micro-batch, per channel, weighted by the records' weights.
// In evaluation it uses the running moments of the vector.
type norm struct {
	threads               *threads
	size, channels        int
	epsilon               float32
	x, y, dy              []float32
	gamma, beta           *parameter
	runMean, runVariance  *parameter
	mean, inverse         []float32 // of the pass: 1/√(variance + ε)
	scale, shift          []float32 // y = x·scale + shift
	partial               [][]float64
	record                [][]float32 // per part: sums of one record
	first, second         []float64   // merged sums
	count                 float64     // weighted positions of the pass
	pass                  *pass
	sum, square, apply    job
	sumGradient, gradient job
}

func newNorm(w wiring) *norm {
	c := w.in[len(w.in)-1]
	l := &norm{
		threads: w.threads, size: product(w.in), channels: c, epsilon: w.spec.Eps(),
		x: w.x, y: w.y, dy: w.dy,
		gamma: w.find(model.Gamma), beta: w.find(model.Beta),
		runMean: w.find(model.Mean), runVariance: w.find(model.Variance),
		mean: make([]float32, c), inverse: make([]float32, c),
		scale: make([]float32, c), shift: make([]float32, c),
		first: make([]float64, c), second: make([]float64, c),
	}
	for range w.threads.parts {
		l.partial = append(l.partial, make([]float64, 2*c))
		l.record = append(l.record, make([]float32, 2*c))
	}
	l.sum, l.square, l.apply = l.sumPart, l.squarePart, l.applyPart
	l.sumGradient, l.gradient = l.sumGradientPart, l.gradientPart
	return l
}

func (l *norm) prepare() {}

func (l *norm) forward(p *pass) {
	l.pass = p
	if !p.training {
		l.fold(l.runMean.value, func(c int) float64 { return float64(l.runVariance.value[c]) })
		l.threads.run(p.n, l.apply)
		return
	}
	l.count = p.total * float64(l.size/l.channels)
	l.reduce(p.n, l.sum)
	for c, s := range l.first {
		l.mean[c] = float32(s / l.count)
	}
	l.reduce(p.n, l.square)
	l.fold(l.mean, func(c int) float64 { return l.first[c] / l.count })
	for c, s := range l.first {
		l.runMean.sums[0][c] += float32(float64(l.mean[c]) * p.total)
		l.runVariance.sums[0][c] += float32(s / l.count * p.total)
	}
	l.threads.run(p.n, l.apply)
}

func (l *norm) backward(p *pass) {
	l.reduce(p.n, l.sumGradient)
	for c := range l.first {
		l.beta.sums[0][c] += float32(l.first[c])
		l.gamma.sums[0][c] += float32(l.second[c])
	}
	l.threads.run(p.n, l.gradient)
}

// reduce runs a job that fills partial, and adds the parts in their order.
func (l *norm) reduce(n int, f job) {
	for _, p := range l.partial {
		clear(p)
	}
	l.threads.run(n, f)
	clear(l.first)
	clear(l.second)
	for _, p := range l.partial {
		for c := range l.first {
			l.first[c] += p[c]
			l.second[c] += p[l.channels+c]
		}
	}
}

// fold turns moments, γ and β into one multiplication and one addition.
func (l *norm) fold(mean []float32, variance func(c int) float64) {
	for c := range l.scale {
		inverse := 1 / math.Sqrt(variance(c)+float64(l.epsilon))
		l.inverse[c] = float32(inverse)
		l.scale[c] = float32(inverse * float64(l.gamma.value[c]))
		l.shift[c] = l.beta.value[c] - mean[c]*l.scale[c]
	}
}

func (l *norm) sumPart(part, from, to int) {
	record := l.record[part][:l.channels]
	for r := from; r < to; r++ {
		clear(record)
		x := l.x[r*l.size : (r+1)*l.size]
		for i := 0; i < len(x); i += l.channels {
			addRow(x[i:i+l.channels], record)
		}
		weighted(l.partial[part], record, l.pass.weights[r])
	}
}

func (l *norm) squarePart(part, from, to int) {
	record := l.record[part][:l.channels]
	mean := l.mean[:len(record)]
	for r := from; r < to; r++ {
		clear(record)
		x := l.x[r*l.size : (r+1)*l.size]
		for i := 0; i < len(x); i += len(record) {
			row := x[i : i+len(record)]
			for c, v := range row {
				d := v - mean[c]
				record[c] += d * d
			}
		}
		weighted(l.partial[part], record, l.pass.weights[r])
	}
}

func (l *norm) applyPart(_, from, to int) {
	x, y := l.x[from*l.size:to*l.size], l.y[from*l.size:to*l.size]
	scale := l.scale
	shift := l.shift[:len(scale)]
	for i := 0; i < len(x); i += len(scale) {
		in := x[i : i+len(scale)]
		out := y[i : i+len(scale)]
		for c, s := range scale {
			out[c] = in[c]*s + shift[c]
		}
	}
}

// sumGradientPart sums dy and dy·x̂. The gradients carry the weights already.
func (l *norm) sumGradientPart(part, from, to int) {
	plain, along := l.record[part][:l.channels], l.record[part][l.channels:]
	mean, inverse := l.mean[:len(plain)], l.inverse[:len(plain)]
	for r := from; r < to; r++ {
		clear(l.record[part])
		for i := r * l.size; i < (r+1)*l.size; i += len(plain) {
			x := l.x[i : i+len(plain)]
			for c, d := range l.dy[i : i+len(plain)] {
				plain[c] += d
				along[c] += d * (x[c] - mean[c]) * inverse[c]
			}
		}
		weighted(l.partial[part], l.record[part], 1)
	}
}

func (l *norm) gradientPart(_, from, to int) {
	n := l.channels
	mean, inverse, scale := l.mean[:n], l.inverse[:n], l.scale[:n]
	for r := from; r < to; r++ {
		share := float64(l.pass.weights[r]) / l.count
		for i := r * l.size; i < (r+1)*l.size; i += n {
			x, dy := l.x[i:i+n], l.dy[i:i+n]
			for c, d := range dy {
				common := float32(l.first[c]*share) + float32(l.second[c]*share)*(x[c]-mean[c])*inverse[c]
				dy[c] = scale[c] * (d - common)
			}
		}
	}
}

// weighted adds one record's sums.
func weighted(total []float64, record []float32, weight float32) {
	for c, v := range record {
		total[c] += float64(v) * float64(weight)
	}
}
