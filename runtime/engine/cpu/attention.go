package cpu

import (
	"math"

	"gonum.org/v1/gonum/blas"
)

// attention is scaled dot-product attention (Vaswani et al. 2017, section 3.2) of
// queries, keys and values that are positions × width, each head on its columns. The
// weights of all records are kept for the backward pass.
type attention struct {
	noParameters
	threads           *threads
	positions, width  int
	heads             int
	causal            bool
	queries, keys     []float32
	values, y         []float32
	dqueries, dkeys   []float32 // nil where no variable needs it
	dvalues, dy       []float32
	weights           []float32   // records × heads × positions × positions
	dweights          [][]float32 // per part: of one head
	attend, attribute job
}

func newAttention(w wiring) *attention {
	l := &attention{
		threads: w.threads, positions: w.out[0], width: w.out[1], heads: w.spec.Heads, causal: w.spec.Causal,
		queries: w.xs[0], keys: w.xs[1], values: w.xs[2], y: w.y,
		dqueries: w.dxs[0], dkeys: w.dxs[1], dvalues: w.dxs[2], dy: w.dy,
		weights: make([]float32, len(w.y)/w.out[1]*w.spec.Heads*w.out[0]),
	}
	for range w.threads.parts {
		l.dweights = append(l.dweights, make([]float32, l.positions*l.positions))
	}
	l.attend, l.attribute = l.attendPart, l.attributePart
	return l
}

func (l *attention) forward(p *pass)  { l.threads.run(p.n, l.attend) }
func (l *attention) backward(p *pass) { l.threads.run(p.n, l.attribute) }

// head is the columns of a head in a record; of no data it is empty.
func (l *attention) head(of []float32, record, head int) matrix {
	if of == nil {
		return matrix{}
	}
	return matrix{of[record*l.positions*l.width+head*l.width/l.heads:], l.width}
}

// square is the weights of a head in a record: a row for each query.
func (l *attention) square(record, head int) matrix {
	n := l.positions * l.positions
	at := (record*l.heads + head) * n
	return matrix{l.weights[at : at+n], l.positions}
}

func (l *attention) attendPart(_, from, to int) {
	t, size := l.positions, l.width/l.heads
	clear(l.y[from*t*l.width : to*t*l.width])
	for r := from; r < to; r++ {
		for h := range l.heads {
			weights := l.square(r, h)
			clear(weights.data)
			multiply(blas.NoTrans, blas.Trans, t, t, size, l.head(l.queries, r, h), l.head(l.keys, r, h), weights)
			for i := range t {
				l.softmax(weights.data[i*t:(i+1)*t], i)
			}
			multiply(blas.NoTrans, blas.NoTrans, t, size, t, weights, l.head(l.values, r, h), l.head(l.y, r, h))
		}
	}
}

// scale keeps products of long rows in the range where the softmax is not flat.
func (l *attention) scale() float64 { return 1 / math.Sqrt(float64(l.width/l.heads)) }

// softmax turns the products of the query at position i into its weights.
func (l *attention) softmax(row []float32, i int) {
	if l.causal {
		clear(row[i+1:])
		row = row[:i+1]
	}
	top := row[0]
	for _, v := range row {
		top = max(top, v)
	}
	scale, total := l.scale(), 0.0
	for j, v := range row {
		e := math.Exp(float64(v-top) * scale)
		row[j] = float32(e)
		total += e
	}
	share := float32(1 / total)
	for j := range row {
		row[j] *= share
	}
}

func (l *attention) attributePart(part, from, to int) {
	t, size := l.positions, l.width/l.heads
	for _, d := range [][]float32{l.dqueries, l.dkeys, l.dvalues} {
		if d != nil {
			clear(d[from*t*l.width : to*t*l.width])
		}
	}
	for r := from; r < to; r++ {
		for h := range l.heads {
			weights, dy := l.square(r, h), l.head(l.dy, r, h)
			if l.dvalues != nil {
				multiply(blas.Trans, blas.NoTrans, t, size, t, weights, dy, l.head(l.dvalues, r, h))
			}
			if l.dqueries == nil && l.dkeys == nil {
				continue
			}
			d := matrix{l.dweights[part], t}
			clear(d.data)
			multiply(blas.NoTrans, blas.Trans, t, t, size, dy, l.head(l.values, r, h), d)
			for i := range t {
				l.unSoftmax(d.data[i*t:(i+1)*t], weights.data[i*t:(i+1)*t])
			}
			if l.dqueries != nil {
				multiply(blas.NoTrans, blas.NoTrans, t, size, t, d, l.head(l.keys, r, h), l.head(l.dqueries, r, h))
			}
			if l.dkeys != nil {
				multiply(blas.Trans, blas.NoTrans, t, size, t, d, l.head(l.queries, r, h), l.head(l.dkeys, r, h))
			}
		}
	}
}

// unSoftmax turns the gradient of a query's weights into the gradient of its products.
// Positions that it does not see have the weight 0.
func (l *attention) unSoftmax(d, weights []float32) {
	along := 0.0
	for j, w := range weights {
		along += float64(d[j]) * float64(w)
	}
	scale := l.scale()
	for j, w := range weights {
		d[j] = float32(float64(w) * (float64(d[j]) - along) * scale)
	}
}
