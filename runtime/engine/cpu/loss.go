package cpu

import "math"

// crossEntropy is the softmax cross-entropy of the logits, its gradient, and
// the count of correct answers.
type crossEntropy struct {
	threads         *threads
	classes         int
	logits, dlogits []float32
	loss, correct   []float64 // per part
	pass            *pass
	compute         job
}

func newCrossEntropy(c *threads, classes int, logits, dlogits []float32) *crossEntropy {
	l := &crossEntropy{
		threads: c, classes: classes, logits: logits, dlogits: dlogits,
		loss: make([]float64, c.parts), correct: make([]float64, c.parts),
	}
	l.compute = l.computePart
	return l
}

// run returns the weighted sums of losses and of correct answers.
func (l *crossEntropy) run(p *pass) (loss, correct float64) {
	l.pass = p
	clear(l.loss)
	clear(l.correct)
	l.threads.run(p.n, l.compute)
	for part := range l.loss {
		loss += l.loss[part]
		correct += l.correct[part]
	}
	return loss, correct
}

func (l *crossEntropy) computePart(part, from, to int) {
	for r := from; r < to; r++ {
		z := l.logits[r*l.classes : (r+1)*l.classes]
		d := l.dlogits[r*l.classes : (r+1)*l.classes]
		label, weight := int(l.pass.labels[r]), float64(l.pass.weights[r])
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
		for k, v := range z {
			d[k] = float32(weight * math.Exp(float64(v)-top) / total)
		}
		d[label] = float32(float64(d[label]) - weight)
		l.loss[part] += weight * (math.Log(total) + top - float64(z[label]))
		if best == label {
			l.correct[part] += weight
		}
	}
}
