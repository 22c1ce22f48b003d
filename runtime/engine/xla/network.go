package xla

import (
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// value is a tensor in a program, records first and channels last.
type value = *stablehlo.Value

// network is one use of a model in a program: forward, and backward in training.
type network struct {
	*stablehlo.Function
	model    *model.Model
	batch    int            // records of the micro-batch
	compute  stablehlo.Type // of activations
	training bool

	deterministic bool // no operation may add up in any order

	variables map[string]value // by name
	sums      map[string]value // what the pass adds to them: gradients, or moments

	features, labels value
	weights          value // f32 of each record; 0: it is padding
	keys             value // of dropout: ui64 of each record; nil without dropout
	total            value // the sum of the weights
}

// backward returns the gradients of a layer's inputs from the gradient of its outputs,
// and adds to sums. It may leave out gradients that needs says no variable needs.
type backward func(dy value) []value

// forward runs the layers and returns the outputs of the last one, and what runs them
// backward.
func (n *network) forward() (value, func(dy value), error) {
	sources, err := n.model.Sources()
	if err != nil {
		return nil, nil, err
	}
	n.total = n.weights.Sum(0)
	input := n.input()
	learns := n.learns(sources)
	outputs, backs := make([]value, len(sources)), make([]backward, len(sources))
	for i, from := range sources {
		var in []value
		var needs []bool
		for _, s := range from {
			x, need := input, false
			if s >= 0 {
				x, need = outputs[s], learns[s]
			}
			in, needs = append(in, x), append(needs, need)
		}
		l := layer{Layer: n.model.Layers[i], network: n, in: in, needs: needs, last: i == len(sources)-1}
		outputs[i], backs[i] = l.build()
	}
	return outputs[len(outputs)-1], func(dy value) {
		gradients := make([]value, len(sources)) // of outputs, of all readers so far
		gradients[len(sources)-1] = dy
		for i, from := range slices.Backward(sources) {
			if !learns[i] {
				continue
			}
			for k, dx := range backs[i](gradients[i]) {
				s := from[k]
				switch {
				case dx == nil || s < 0 || !learns[s]:
				case gradients[s] == nil:
					gradients[s] = dx
				default:
					gradients[s] = gradients[s].Add(dx)
				}
			}
		}
	}, nil
}

// input returns the features as the first layers read them: numbers, or ids as i32.
func (n *network) input() value {
	dims := append([]int{n.batch}, n.model.InputShape()...)
	x := n.features.Reshape(dims...)
	if n.model.Vocabulary() > 0 {
		return x.Convert(stablehlo.I32)
	}
	x = x.Convert(stablehlo.F32)
	if factor := n.model.InputFactor(); factor != 1 {
		x = x.Scale(float64(factor))
	}
	return x.Convert(n.compute)
}

// learns reports the layers that have variables, or that read such a layer.
func (n *network) learns(sources [][]int) []bool {
	all := make([]bool, len(sources))
	for i, from := range sources {
		_, all[i] = n.variables[n.model.Layers[i].Name+"/"+model.Weight]
		if !all[i] {
			_, all[i] = n.variables[n.model.Layers[i].Name+"/"+model.Gamma]
		}
		all[i] = all[i] || slices.ContainsFunc(from, func(s int) bool { return s >= 0 && all[s] })
	}
	return all
}

// layer is one layer in a program.
type layer struct {
	model.Layer
	*network
	in    []value
	needs []bool // for each input, whether a variable needs its gradient
	last  bool   // its outputs are the model's
}

// variable returns a variable's value.
func (l *layer) variable(name string) value { return l.variables[l.Name+"/"+name] }

// learn sets what the pass adds to a variable, f32 of its shape.
func (l *layer) learn(name string, sum value) {
	full := l.Name + "/" + name
	l.sums[full] = sum.Convert(stablehlo.F32).Reshape(l.variables[full].Dims...)
}

// narrow returns outputs in the type of activations; the model's outputs stay f32.
func (l *layer) narrow(y value) value {
	if l.last {
		return y.Convert(stablehlo.F32)
	}
	return y.Convert(l.compute)
}

// one returns the gradient of a single input.
func one(dx value) []value { return []value{dx} }

// build adds the layer's operations. Validate let no other operation through.
func (l *layer) build() (value, backward) {
	switch l.Op {
	case model.Dense:
		return l.dense()
	case model.Conv2D:
		return l.convolution()
	case model.MaxPool:
		return l.maxPool()
	case model.AvgPool:
		return l.averagePool()
	case model.GlobalAvg:
		return l.globalAverage()
	case model.BatchNorm:
		return l.batchNorm()
	case model.LayerNorm:
		return l.layerNorm()
	case model.ReLU:
		return l.relu()
	case model.GELU:
		return l.gelu()
	case model.Tanh:
		return l.tanh()
	case model.Sigmoid:
		return l.sigmoid()
	case model.Dropout:
		return l.dropout()
	case model.Flatten:
		return l.flatten()
	case model.Add:
		return l.add()
	case model.Concat:
		return l.concat()
	case model.Embedding:
		return l.embedding()
	case model.Position:
		return l.position()
	case model.Attention:
		return l.attention()
	case model.MatMul:
		return l.matMul()
	}
	panic(fmt.Sprintf("xla: operation %q", l.Op))
}
