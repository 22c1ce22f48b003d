package cpu

import (
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// loss compares what the last layer gives with the target: it sums losses and metrics,
// and writes the gradient of the outputs.
type loss struct {
	threads           *threads
	metrics           []string
	rows, width       int // of a record: positions × classes, or 1 × numbers
	smoothing         float64
	outputs, gradient []float32
	sums              [][]float64 // per part: the loss, then the metrics
	pass              *pass
	compute           job
}

func newLoss(c *threads, m *model.Model, last wiring) *loss {
	l := &loss{
		threads: c, metrics: m.Metrics, smoothing: float64(m.LabelSmoothing),
		width: last.out[len(last.out)-1], outputs: last.y, gradient: last.dy,
	}
	l.rows = product(last.out) / l.width
	for range c.parts {
		l.sums = append(l.sums, make([]float64, 1+len(m.Metrics)))
	}
	l.compute = l.crossEntropyPart
	if m.Loss == model.MeanSquaredError {
		l.compute = l.squaredErrorPart
	}
	return l
}

// run adds the weighted sums of the metrics and returns the sum of the losses.
func (l *loss) run(p *pass, metrics []float64) (total float64) {
	l.pass = p
	for _, sums := range l.sums {
		clear(sums)
	}
	l.threads.run(p.n, l.compute)
	for _, sums := range l.sums {
		total += sums[0]
		for i, v := range sums[1:] {
			metrics[i] += v
		}
	}
	return total
}

// crossEntropyPart is the softmax cross-entropy of each position.
func (l *loss) crossEntropyPart(part, from, to int) {
	smoothing := l.smoothing
	if !l.pass.training {
		smoothing = 0
	}
	sums := l.sums[part]
	for row := from * l.rows; row < to*l.rows; row++ {
		z := l.outputs[row*l.width : (row+1)*l.width]
		d := l.gradient[row*l.width : (row+1)*l.width]
		label, weight := int(l.pass.labels[row]), float64(l.pass.weights[row/l.rows])/float64(l.rows)
		best := 0
		for k, v := range z {
			if v > z[best] {
				best = k
			}
		}
		top, total := float64(z[best]), 0.0
		for _, v := range z {
			total += math.Exp(float64(v) - top)
		}
		share := weight * smoothing / float64(l.width)
		for k, v := range z {
			d[k] = float32(weight*math.Exp(float64(v)-top)/total - share)
		}
		d[label] = float32(float64(d[label]) - weight*(1-smoothing))
		plain := math.Log(total) + top - float64(z[label])
		sums[0] += weight * plain
		if smoothing > 0 {
			sums[0] += weight * smoothing * (float64(z[label]) - average(z))
		}
		for i, name := range l.metrics {
			switch {
			case name == model.Perplexity:
				sums[1+i] += weight * plain
			case name == model.Accuracy && best == label, name == model.Top5Accuracy && isAmongBest(z, label, 5):
				sums[1+i] += weight
			}
		}
	}
}

func average(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	return sum / float64(len(v))
}

// isAmongBest reports whether fewer than n logits are better than the logit of the label. Of equal
// logits the lower class is the better; a NaN is not among the best.
func isAmongBest(z []float32, label, n int) bool {
	better := 0
	for k, v := range z {
		if k < label && !(v < z[label]) || k > label && !(v <= z[label]) {
			better++
		}
	}
	return better < n
}

// squaredErrorPart is the mean of the squared errors of each record.
func (l *loss) squaredErrorPart(part, from, to int) {
	sums := l.sums[part]
	for r := from; r < to; r++ {
		weight := float64(l.pass.weights[r]) / float64(l.width)
		d := l.gradient[r*l.width : (r+1)*l.width]
		square, absolute := 0.0, 0.0
		for i, v := range l.outputs[r*l.width : (r+1)*l.width] {
			off := float64(v) - float64(l.pass.numbers[r*l.width+i])
			d[i] = float32(2 * weight * off)
			square += off * off
			absolute += math.Abs(off)
		}
		sums[0] += weight * square
		for i := range l.metrics { // MeanAbsoluteError: the loss has no other
			sums[1+i] += weight * absolute
		}
	}
}
