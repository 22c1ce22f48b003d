package xla

import (
	"math"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// embedding looks up a row of the weights for each id. Stage has checked the ids.
func (l *layer) embedding() (value, backward) {
	ids, w := l.in[0], l.variable(model.Weight)
	rows := w.Gather(ids)
	dims := append(append([]int(nil), ids.Dims...), l.Units)
	return l.narrow(rows.Reshape(dims...)), func(dy value) []value {
		l.learn(model.Weight, w.Fill(0).ScatterAdd(ids, dy.Convert(stablehlo.F32).Reshape(rows.Dims...)))
		return one(nil)
	}
}

// position adds its weights to each record.
func (l *layer) position() (value, backward) {
	x, w := l.in[0], l.variable(model.Weight)
	over := make([]int, len(x.Dims)-1)
	for i := range over {
		over[i] = i + 1
	}
	return l.narrow(x.Add(w.Convert(l.compute).Like(x, over...))), func(dy value) []value {
		l.learn(model.Weight, dy.Convert(stablehlo.F32).Sum(0))
		return one(dy.Convert(l.compute))
	}
}

// attention is scaled dot-product attention of queries, keys and values, each head on its
// columns.
func (l *layer) attention() (value, backward) {
	n, t, width := l.batch, l.in[0].Dims[1], l.in[0].Dims[2]
	heads := l.Heads
	var parts [3]value // records × positions × heads × columns
	for i, x := range l.in {
		parts[i] = x.Reshape(n, x.Dims[1], heads, width/heads)
	}
	queries, keys, values := parts[0], parts[1], parts[2]
	scale := 1 / math.Sqrt(float64(width/heads))
	head := []int{0, 2}
	square := []int{0, 1} // of what is records × heads × positions × positions
	products := queries.Dot(keys, stablehlo.Product{Left: []int{3}, Right: []int{3}, CommonLeft: head, CommonRight: head}, stablehlo.F32).Scale(scale)
	if l.Causal {
		later := l.Iota(stablehlo.I32, 3, products.Dims...).Compare(stablehlo.Greater, l.Iota(stablehlo.I32, 2, products.Dims...))
		products = later.Select(products.Fill(math.Inf(-1)), products)
	}
	rows := func(v value) value { return v.Like(products, 0, 1, 2) }
	e := products.Subtract(rows(products.Largest(3))).Exp()
	weights := e.Divide(rows(e.Sum(3)))
	narrow := weights.Convert(l.compute)
	y := narrow.Dot(values, stablehlo.Product{Left: []int{3}, Right: []int{1}, CommonLeft: square, CommonRight: head}, stablehlo.F32)
	back := func(v value) value { return v.Convert(l.compute).Transpose(0, 2, 1, 3).Reshape(n, t, width) }
	return l.narrow(y.Transpose(0, 2, 1, 3).Reshape(n, t, width)), func(dy value) []value {
		d := dy.Convert(l.compute).Reshape(n, t, heads, width/heads)
		dvalues := narrow.Dot(d, stablehlo.Product{Left: []int{2}, Right: []int{1}, CommonLeft: square, CommonRight: head}, stablehlo.F32)
		dweights := d.Dot(values, stablehlo.Product{Left: []int{3}, Right: []int{3}, CommonLeft: head, CommonRight: head}, stablehlo.F32)
		along := dweights.Multiply(weights).Sum(3)
		products := weights.Multiply(dweights.Subtract(rows(along))).Scale(scale).Convert(l.compute)
		dqueries := products.Dot(keys, stablehlo.Product{Left: []int{3}, Right: []int{1}, CommonLeft: square, CommonRight: head}, stablehlo.F32)
		dkeys := products.Dot(queries, stablehlo.Product{Left: []int{2}, Right: []int{1}, CommonLeft: square, CommonRight: head}, stablehlo.F32)
		return []value{back(dqueries), back(dkeys), back(dvalues)}
	}
}
