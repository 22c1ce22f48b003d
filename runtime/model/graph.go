package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// members are the members of a Layer that each operation has, apart from its name,
// operation and inputs.
var members = map[Op][]string{
	Dense:     {"units", "no_bias"},
	Conv2D:    {"filters", "kernel", "stride", "padding", "pad", "groups", "no_bias"},
	MaxPool:   {"kernel", "stride", "padding"},
	AvgPool:   {"kernel", "stride", "padding"},
	GlobalAvg: nil,
	BatchNorm: {"momentum", "epsilon"},
	LayerNorm: {"epsilon"},
	ReLU:      nil,
	GELU:      nil,
	Tanh:      nil,
	Sigmoid:   nil,
	Dropout:   {"rate"},
	Flatten:   nil,
	Add:       nil,
	Concat:    nil,
	Embedding: {"vocabulary", "units"},
	Position:  nil,
	Attention: {"heads", "causal"},
	MatMul:    {"transpose"},
}

// Ops returns the operations, sorted.
func Ops() []Op { return slices.Sorted(maps.Keys(members)) }

// checkMembers reports a member that the layer's operation does not have.
func (l Layer) checkMembers() error {
	known, ok := members[l.Op]
	if !ok {
		return fmt.Errorf("unknown operation %q: want one of %s", l.Op, joinNames(Ops()))
	}
	l.Name, l.Op, l.Inputs = "", "", nil
	l.Momentum, l.Epsilon, l.Rate = sign(l.Momentum), sign(l.Epsilon), sign(l.Rate) // JSON has no NaN
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("members: %w", err)
	}
	var given map[string]any
	if err := json.Unmarshal(text, &given); err != nil {
		return fmt.Errorf("members: %w", err)
	}
	delete(given, "name")
	delete(given, "op")
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("has no %s: %s", name, memberAdvice(known))
		}
	}
	return nil
}

// sign returns 1 for every number except 0.
func sign(v float32) float32 {
	if v == 0 {
		return 0
	}
	return 1
}

func memberAdvice(known []string) string {
	if len(known) == 0 {
		return "it has only inputs"
	}
	return "it has " + strings.Join(known, ", ")
}

func joinNames(ops []Op) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	return strings.Join(names, ", ")
}

// Sources returns the inputs of each layer as indices of layers; -1 is the model's
// input. A layer reads earlier layers only.
func (m *Model) Sources() ([][]int, error) {
	at := map[string]int{Source: -1}
	later := make(map[string]bool, len(m.Layers))
	for _, l := range m.Layers {
		later[l.Name] = true
	}
	all := make([][]int, len(m.Layers))
	read := make([]bool, len(m.Layers))
	for i, l := range m.Layers {
		switch {
		case l.Name == "" || strings.Contains(l.Name, "/") || len(l.Name) > 100:
			return nil, m.wrong(i, errors.New("its name must have 1 to 100 characters and no slash"))
		case l.Name == Source && m.hasInputs():
			return nil, m.wrong(i, fmt.Errorf("the model's input has the name %q: choose another one", Source))
		}
		if _, ok := at[l.Name]; ok && l.Name != Source {
			return nil, m.wrong(i, errors.New("another layer has the same name"))
		}
		all[i] = []int{i - 1}
		if l.Inputs != nil {
			all[i] = nil
		}
		for _, name := range l.Inputs {
			source, ok := at[name]
			switch {
			case !ok && later[name]:
				return nil, m.wrong(i, fmt.Errorf("its input %q is a later layer, or its own: a layer reads earlier ones", name))
			case !ok:
				return nil, m.wrong(i, fmt.Errorf("its input %q is not a layer: want %q or the name of an earlier layer", name, Source))
			}
			all[i] = append(all[i], source)
		}
		if err := l.checkInputs(len(all[i])); err != nil {
			return nil, m.wrong(i, err)
		}
		for _, source := range all[i] {
			if source >= 0 {
				read[source] = true
			}
		}
		at[l.Name] = i
	}
	for i := range m.Layers[:len(m.Layers)-1] {
		if !read[i] {
			return nil, m.wrong(i, errors.New("no later layer reads it, and only the last layer is the output"))
		}
	}
	return all, nil
}

// hasInputs reports whether a layer names its inputs. Chains of before did not, and a
// layer of theirs may have any name.
func (m *Model) hasInputs() bool {
	return slices.ContainsFunc(m.Layers, func(l Layer) bool { return l.Inputs != nil })
}

func (l Layer) checkInputs(n int) error {
	switch l.Op {
	case Add, Concat:
		if n < 2 {
			return fmt.Errorf("joins %d input: give inputs with two names or more", n)
		}
	case Attention:
		if n != 3 {
			return fmt.Errorf("has %d inputs: give inputs with three names: queries, keys and values", n)
		}
	case MatMul:
		if n != 2 {
			return fmt.Errorf("has %d inputs: give inputs with two names", n)
		}
	default:
		if n != 1 {
			return fmt.Errorf("has %d inputs: want one", n)
		}
	}
	if n > MaxLayers {
		return fmt.Errorf("has %d inputs: want at most %d", n, MaxLayers)
	}
	return nil
}

// joined is the output shape of Add and Concat.
func (l Layer) joined(inputs [][]int) ([]int, error) {
	out := slices.Clone(inputs[0])
	last := len(out) - 1
	for i, in := range inputs[1:] {
		same := slices.Equal(in, inputs[0])
		if l.Op == Concat {
			same = len(in) == len(out) && slices.Equal(in[:last], out[:last])
		}
		if !same {
			return nil, fmt.Errorf("its inputs %d and 1 have the shapes %v and %v, which do not fit", i+2, in, inputs[0])
		}
		if l.Op == Concat {
			out[last] += in[last]
		}
	}
	return out, nil
}
