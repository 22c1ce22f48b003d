package xla

import (
	"slices"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// dense multiplies each row of its input by the weights.
func (l *layer) dense() (value, backward) {
	x := l.in[0]
	width := x.Dims[len(x.Dims)-1]
	rows := x.Reshape(x.Size()/width, width)
	w := l.variable(model.Weight).Convert(l.compute)
	y := rows.Dot(w, stablehlo.Product{Left: []int{1}, Right: []int{0}}, stablehlo.F32)
	if !l.NoBias {
		y = y.Add(l.variable(model.Bias).Like(y, 1))
	}
	dims := append(slices.Clone(x.Dims[:len(x.Dims)-1]), l.Units)
	return l.narrow(y).Reshape(dims...), func(dy value) []value {
		d := dy.Reshape(rows.Dims[0], l.Units)
		if !l.NoBias {
			l.learn(model.Bias, d.Convert(stablehlo.F32).Sum(0))
		}
		d = d.Convert(l.compute)
		l.learn(model.Weight, rows.Dot(d, stablehlo.Product{Left: []int{0}, Right: []int{0}}, stablehlo.F32))
		if !l.needs[0] {
			return one(nil)
		}
		dx := d.Dot(w, stablehlo.Product{Left: []int{1}, Right: []int{1}}, stablehlo.F32)
		return one(dx.Convert(l.compute).Reshape(x.Dims...))
	}
}

// matMul multiplies its inputs, m×k and k×n, or n×k where the second one is transposed.
func (l *layer) matMul() (value, backward) {
	a, b := l.in[0], l.in[1]
	inner, outer := 1, 2 // of b
	if l.Transpose {
		inner, outer = 2, 1
	}
	record := []int{0}
	product := func(x, y value, i, j int) value {
		p := stablehlo.Product{Left: []int{i}, Right: []int{j}, CommonLeft: record, CommonRight: record}
		return x.Dot(y, p, stablehlo.F32)
	}
	return l.narrow(product(a, b, 2, inner)), func(dy value) []value {
		d := dy.Convert(l.compute)
		gradients := make([]value, 2)
		if l.needs[0] {
			gradients[0] = product(d, b, 2, outer).Convert(l.compute)
		}
		switch {
		case !l.needs[1]:
		case l.Transpose:
			gradients[1] = product(d, a, 1, 1).Convert(l.compute)
		default:
			gradients[1] = product(a, d, 1, 1).Convert(l.compute)
		}
		return gradients
	}
}

// add is the sum of the inputs.
func (l *layer) add() (value, backward) {
	y := l.in[0]
	for _, x := range l.in[1:] {
		y = y.Add(x)
	}
	return l.narrow(y), func(dy value) []value {
		all := make([]value, len(l.in))
		for i := range all {
			all[i] = dy.Convert(l.compute)
		}
		return all
	}
}

// concat puts the inputs side by side.
func (l *layer) concat() (value, backward) {
	last := len(l.in[0].Dims) - 1
	return l.narrow(stablehlo.Concatenate(last, l.in...)), func(dy value) []value {
		var all []value
		at := 0
		for _, x := range l.in {
			all = append(all, dy.Convert(l.compute).SliceDim(last, at, at+x.Dims[last]))
			at += x.Dims[last]
		}
		return all
	}
}

// flatten makes one dimension of all except the record.
func (l *layer) flatten() (value, backward) {
	x := l.in[0]
	return l.narrow(x.Reshape(l.batch, x.Size()/l.batch)), func(dy value) []value {
		return one(dy.Convert(l.compute).Reshape(x.Dims...))
	}
}
