package engine

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Names of the variables that a layer may have: "<layer>/<variable>".
const (
	Weight   = "weight"   // Dense: inputs × units; Conv2D: kernel × kernel × channels × filters
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
	var trained, moments []Var
	in := m.InputShape()
	for i, l := range m.Layers {
		t, mo := l.variables(in)
		trained, moments = append(trained, t...), append(moments, mo...)
		in = shapes[i]
	}
	vars := append(trained, moments...)
	if len(vars) == 0 {
		return nil, nil, fmt.Errorf("model %q: no layer has parameters to train", m.Name)
	}
	offset := 0
	for i := range vars {
		n := 1
		for _, d := range vars[i].Shape {
			if n > MaxParameters/d {
				return nil, nil, fmt.Errorf("model %q: variable %q has more than %d elements", m.Name, vars[i].Name, MaxParameters)
			}
			n *= d
		}
		vars[i].Offset, vars[i].Len = offset, n
		if offset += n; offset > MaxParameters {
			return nil, nil, fmt.Errorf("model %q: more than %d parameters", m.Name, MaxParameters)
		}
	}
	return vars, nil, nil
}

// variables of a valid layer that gets records of shape in.
func (l Layer) variables(in []int) (trained, moments []Var) {
	v := func(name string, decay bool, shape ...int) Var {
		return Var{Name: l.Name + "/" + name, Shape: shape, Decay: decay}
	}
	channels := in[len(in)-1]
	switch l.Op {
	case Dense:
		return []Var{v(Weight, true, channels, l.Units), v(Bias, false, l.Units)}, nil
	case Conv2D:
		return []Var{v(Weight, true, l.Kernel, l.Kernel, channels, l.Filters), v(Bias, false, l.Filters)}, nil
	case BatchNorm:
		mean, variance := v(Mean, false, channels), v(Variance, false, channels)
		for _, mo := range []*Var{&mean, &variance} {
			mo.Kind, mo.Momentum = Moment, l.RunningMomentum()
		}
		return []Var{v(Gamma, false, channels), v(Beta, false, channels)}, []Var{mean, variance}
	}
	return nil, nil
}

// Length is the number of elements of the vector that vars lay out.
func Length(vars []Var) int {
	if len(vars) == 0 {
		return 0
	}
	last := vars[len(vars)-1]
	return last.Offset + last.Len
}

// Cut returns the variables of the vector's span [from, to), those at its
// ends shortened, with offsets relative to from: what a server that owns the
// span passes to Update. A shortened variable's Shape is its length.
func Cut(vars []Var, from, to int) []Var {
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
// Each variable's values follow from the seed and its name only. Weights that
// a ReLU follows are He-uniform (He et al. 2015), others Glorot-uniform
// (Glorot and Bengio 2010); biases and shifts 0, scales and variances 1.
func (m *Model) Init(seed uint64, vector []float32) error {
	vars, _, err := m.Layout()
	if err != nil {
		return err
	}
	if len(vector) != Length(vars) {
		return fmt.Errorf("initialise model %q: vector has %d elements, want %d", m.Name, len(vector), Length(vars))
	}
	rectified := make(map[string]bool)
	for i, l := range m.Layers[:len(m.Layers)-1] {
		// A normalisation between the two does not change the scale's reason.
		next := m.Layers[i+1].Op
		if next == BatchNorm && i+2 < len(m.Layers) {
			next = m.Layers[i+2].Op
		}
		rectified[l.Name+"/"+Weight] = next == ReLU
	}
	ones := make(map[string]bool)
	for _, l := range m.Layers {
		if l.Op == BatchNorm {
			ones[l.Name+"/"+Gamma], ones[l.Name+"/"+Variance] = true, true
		}
	}
	for _, v := range vars {
		span := vector[v.Offset : v.Offset+v.Len]
		switch {
		case len(v.Shape) >= 2:
			spread(span, v, seed, rectified[v.Name])
		case ones[v.Name]:
			for i := range span {
				span[i] = 1
			}
		default:
			clear(span)
		}
	}
	return nil
}

// spread draws from ±limit. Only single multiplications and additions, each
// rounded by a conversion, so that every architecture draws the same.
func spread(span []float32, v Var, seed uint64, rectified bool) {
	out := v.Shape[len(v.Shape)-1]
	fanIn := v.Len / out
	fanOut := out
	if len(v.Shape) == 4 {
		fanOut *= v.Shape[0] * v.Shape[1]
	}
	limit := math.Sqrt(6 / float64(fanIn+fanOut))
	if rectified {
		limit = math.Sqrt(6 / float64(fanIn))
	}
	h := fnv.New64a()
	h.Write([]byte(v.Name))
	random := rand.NewPCG(seed, h.Sum64())
	for i := range span {
		u := float64(int64(random.Uint64())>>11) * 0x1p-52 // [-1, 1)
		span[i] = float32(float64(u * limit))
	}
}
