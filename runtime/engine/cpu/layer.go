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
	labels   []int32
	seed     uint64
	epoch    uint64
	training bool
	total    float64 // sum of weights
}

// parameter is one variable: its values and, per part, its gradient sums.
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
	dx, dy  []float32 // dx is nil where nobody needs it
	find    func(variable string) parameter
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// still is a layer without parameters.
type still struct{}

func (still) prepare() {}

// inPlace says whether a layer's outputs overwrite its inputs.
func inPlace(op model.Op) bool {
	return op == model.ReLU || op == model.Dropout || op == model.Flatten
}

// gradientInPlace says the same of its gradients.
func gradientInPlace(op model.Op) bool {
	return inPlace(op) || op == model.BatchNorm
}

func newLayer(w wiring) layer {
	switch w.spec.Op {
	case model.Dense:
		return newDense(w)
	case model.Conv2D:
		return newConv(w)
	case model.MaxPool:
		return newPool(w)
	case model.BatchNorm:
		return newNorm(w)
	case model.ReLU:
		return newReLU(w)
	case model.Dropout:
		return newDropout(w)
	default: // Flatten: Validate let nothing else through
		return flatten{}
	}
}

// flatten renames dimensions; values stay where they are.
type flatten struct{ still }

func (flatten) forward(*pass)  {}
func (flatten) backward(*pass) {}
