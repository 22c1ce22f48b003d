package cpu

import (
	"github.com/stokehq/stoke/runtime/model"
)

// layer computes one model.Layer on buffers that were wired when the replica
// was built. Values are records × size, channels last.
type layer interface {
	// prepare follows a change of the parameters.
	prepare()
	forward(p *pass)
	// backward turns the gradient of the outputs into that of the inputs and
	// adds to the variables' sums.
	backward(p *pass)
}

// pass is the micro-batch under way, without its padding.
type pass struct {
	n        int // records
	weights  []float32
	records  []int64
	labels   []int32   // of all positions, where the targets are classes
	numbers  []float32 // where they are numbers
	seed     uint64
	epoch    uint64
	training bool
	total    float64 // sum of weights
}

// parameter is one variable: its values and, per part, its gradient sums. Both may move
// between two passes.
type parameter struct {
	value []float32
	sums  [][]float32
}

// wiring is what a layer is built from.
type wiring struct {
	spec    model.Layer
	threads *threads
	in, out []int // shapes per record
	x, y    []float32
	dx, dy  []float32 // dx is nil where no variable needs it
	ins     [][]int   // of all inputs; in, x and dx are of the first one
	xs, dxs [][]float32
	find    func(variable string) *parameter
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// noParameters is a layer without parameters.
type noParameters struct{}

func (noParameters) prepare() {}

// inPlace says whether a layer's outputs overwrite its inputs.
func inPlace(op model.Op) bool {
	return op == model.ReLU || op == model.Dropout || op == model.Flatten
}

// gradientInPlace reports whether the gradient of its first input overwrites the
// gradient of its outputs.
func gradientInPlace(op model.Op) bool {
	switch op {
	case model.BatchNorm, model.LayerNorm, model.GELU, model.Tanh, model.Sigmoid, model.Add, model.Position:
		return true
	}
	return inPlace(op)
}

func newLayer(w wiring) layer {
	l := newPlainLayer(w)
	if inPlace(w.spec.Op) && &w.x[0] != &w.y[0] {
		return &copied{layer: l, size: product(w.out), x: w.x, y: w.y}
	}
	return l
}

func newPlainLayer(w wiring) layer {
	switch w.spec.Op {
	case model.Dense:
		return newDense(w)
	case model.Conv2D:
		return newConv(w)
	case model.MaxPool:
		return newPool(w)
	case model.AvgPool, model.GlobalAvg:
		return newMean(w)
	case model.BatchNorm:
		return newNorm(w)
	case model.LayerNorm:
		return newRowNorm(w)
	case model.GELU, model.Tanh, model.Sigmoid:
		return newActivation(w)
	case model.Embedding:
		return newEmbedding(w)
	case model.Position:
		return newPosition(w)
	case model.Attention:
		return newAttention(w)
	case model.MatMul:
		return newMatMul(w)
	case model.Add:
		return newAdd(w)
	case model.Concat:
		return newConcat(w)
	case model.ReLU:
		return newReLU(w)
	case model.Dropout:
		return newDropout(w)
	default: // Flatten: Validate let nothing else through
		return flatten{}
	}
}

// copied is a layer that works in place, on a copy of inputs that other layers read.
type copied struct {
	layer
	size int
	x, y []float32
}

func (l *copied) forward(p *pass) {
	copy(l.y[:p.n*l.size], l.x)
	l.layer.forward(p)
}

// flatten renames dimensions; values stay where they are.
type flatten struct{ noParameters }

func (flatten) forward(*pass)  {}
func (flatten) backward(*pass) {}
