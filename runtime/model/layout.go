package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// Kind says how a variable of the flat vector changes.
type Kind uint8

const (
	// Trained variables follow their gradient.
	Trained Kind = iota
	// Moment variables are batch normalisation's running statistics: their
	// "gradient" is the micro-batch's moment times its weight, so that the
	// update's weighted mean moves the running average one step.
	Moment
)

// Var is one named span of the flat parameter vector. Trained variables come
// first, in forward order; moments are the vector's tail.
type Var struct {
	Name        string
	Shape       []int
	Offset, Len int // in float32 elements
	Kind        Kind
	Momentum    float32 // of a Moment's running average, e.g. 0.9
	Decay       bool    // weight decay applies (never to biases, normalisation and positions)
	Init        Init    `json:"-"` // follows from the model: not stored
}

// Table is an embedding table; its rows are never part of the flat vector.
type Table struct {
	Name  string
	Width int  // elements of a row
	Init  Init // of a row that nobody has updated yet (see Row)
}

// Rows are rows of one table: ids unique and ascending, len(Values) =
// len(IDs) × Width.
type Rows struct {
	IDs    []int64
	Values []float32
}

// Names of the variables that a layer may have: "<layer>/<variable>".
const (
	// Dense: inputs × units; Conv2D: kernel × kernel × channels/groups × filters;
	// Embedding: vocabulary × units; Position: the shape of its input
	Weight   = "weight"
	Bias     = "bias"     // one per unit or filter
	Gamma    = "gamma"    // BatchNorm's scale, one per channel
	Beta     = "beta"     // BatchNorm's shift
	Mean     = "mean"     // BatchNorm's running mean: a Moment
	Variance = "variance" // BatchNorm's running variance (biased): a Moment
)

// Layout is the flat parameter vector of the model, a function of the model
// alone: trained variables in forward order, then the moments.
func (m *Model) Layout() ([]Var, []Table, error) {
	shapes, err := m.Shapes()
	if err != nil {
		return nil, nil, err
	}
	sources, err := m.Sources()
	if err != nil {
		return nil, nil, err
	}
	follows := followers(sources)
	var trained, moments []Var
	for i, l := range m.Layers {
		in := m.InputShape()
		if s := sources[i][0]; s >= 0 {
			in = shapes[s]
		}
		t, mo := l.variables(in, m.rectified(follows, i))
		trained, moments = append(trained, t...), append(moments, mo...)
	}
	vars := append(trained, moments...)
	if len(vars) == 0 {
		return nil, nil, m.addName(errors.New("no layer has parameters to train"))
	}
	offset := 0
	for i := range vars {
		n := 1
		for _, d := range vars[i].Shape {
			if n > MaxParameters/d {
				return nil, nil, m.addName(fmt.Errorf("variable %q has more than %d elements", vars[i].Name, MaxParameters))
			}
			n *= d
		}
		vars[i].Offset, vars[i].Len = offset, n
		if offset += n; offset > MaxParameters {
			return nil, nil, m.addName(fmt.Errorf("more than %d parameters", MaxParameters))
		}
	}
	return vars, nil, nil
}

// followers returns the first layer that reads each layer; 0: none does.
func followers(sources [][]int) []int {
	first := make([]int, len(sources))
	for i, from := range sources {
		for _, s := range from {
			if s >= 0 && first[s] == 0 {
				first[s] = i
			}
		}
	}
	return first
}

// rectified reports whether a ReLU follows layer i; a normalisation or a sum between
// the two changes nothing about it.
func (m *Model) rectified(follows []int, i int) bool {
	for i = follows[i]; i > 0; i = follows[i] {
		if op := m.Layers[i].Op; op != BatchNorm && op != LayerNorm && op != Add {
			return op == ReLU
		}
	}
	return false
}

// variables of a valid layer that gets records of shape in.
func (l Layer) variables(in []int, rectified bool) (trained, moments []Var) {
	v := func(name string, n Init, shape ...int) Var {
		return Var{Name: l.Name + "/" + name, Shape: shape, Decay: name == Weight, Init: n}
	}
	weight := func(shape ...int) Var {
		if rectified {
			return v(Weight, he(shape), shape...)
		}
		return v(Weight, glorot(shape), shape...)
	}
	zeros, ones := Init{Distribution: Zeros}, Init{Distribution: Ones}
	channels := in[len(in)-1]
	switch l.Op {
	case Dense:
		trained = []Var{weight(channels, l.Units), v(Bias, zeros, l.Units)}
	case Conv2D:
		trained = []Var{weight(l.Kernel, l.Kernel, channels/l.GroupCount(), l.Filters), v(Bias, zeros, l.Filters)}
	case Embedding:
		return []Var{v(Weight, embedded, l.Vocabulary, l.Units)}, nil
	case Position:
		positions := v(Weight, embedded, in...)
		positions.Decay = false
		return []Var{positions}, nil
	case LayerNorm:
		return []Var{v(Gamma, ones, channels), v(Beta, zeros, channels)}, nil
	case BatchNorm:
		mean, variance := v(Mean, zeros, channels), v(Variance, ones, channels)
		for _, mo := range []*Var{&mean, &variance} {
			mo.Kind, mo.Momentum = Moment, l.RunningMomentum()
		}
		return []Var{v(Gamma, ones, channels), v(Beta, zeros, channels)}, []Var{mean, variance}
	}
	if l.NoBias {
		trained = trained[:1]
	}
	return trained, nil
}

// Length is the number of elements of the vector that vars lay out.
func Length(vars []Var) int {
	if len(vars) == 0 {
		return 0
	}
	last := vars[len(vars)-1]
	return last.Offset + last.Len
}

// TrainedLength is the number of elements before the moments, which are the vector's tail.
func TrainedLength(vars []Var) int {
	for _, v := range vars {
		if v.Kind == Moment {
			return v.Offset
		}
	}
	return Length(vars)
}

// Slice returns the variables of the vector's span [from, to), those at its
// ends shortened, with offsets relative to from: what a server that owns the
// span passes to Update. A shortened variable's Shape is its length.
func Slice(vars []Var, from, to int) []Var {
	var out []Var
	for _, v := range vars {
		a, b := max(v.Offset, from), min(v.Offset+v.Len, to)
		if a >= b {
			continue
		}
		if b-a != v.Len {
			v.Shape = []int{b - a}
		}
		v.Offset, v.Len = a-from, b-a
		out = append(out, v)
	}
	return out
}

// Init writes the initial values into the whole vector (Length elements).
// Each variable's values follow from the seed, its name and its Init only.
func (m *Model) Init(seed uint64, vector []float32) error {
	vars, _, err := m.Layout()
	if err != nil {
		return err
	}
	if len(vector) != Length(vars) {
		return fmt.Errorf("initialise model %q: vector has %d elements, want %d", m.Name, len(vector), Length(vars))
	}
	for _, v := range vars {
		v.Init.fill(vector[v.Offset:v.Offset+v.Len], rand.NewPCG(seed, nameHash(v.Name)))
	}
	return nil
}
