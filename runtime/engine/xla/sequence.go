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
		d := dy.Convert(stablehlo.F32).Reshape(rows.Dims...)
		if l.deterministic {
			l.learn(model.Weight, l.addRows(w, ids, d))
		} else {
			l.learn(model.Weight, w.Fill(0).ScatterAdd(ids, d))
		}
		return one(nil)
	}
}

// addRows is the sum of the rows for each row of a table, as ScatterAdd computes it, by a
// product with a matrix of zeros and ones. XLA rewrites a scatter to one of fixed order for
// deterministic runs, and versions of it gave wrong numbers: openxla/xla pull requests 19275
// and 34870, jax-ml/jax issue 27796.
func (l *layer) addRows(table, ids, rows value) value {
	n := rows.Dims[0]
	number := l.Iota(stablehlo.I32, 1, n, table.Dims[0])
	named := number.Compare(stablehlo.Equal, ids.Reshape(n).Like(number, 0)).Convert(stablehlo.F32)
	return named.Dot(rows, stablehlo.Product{Left: []int{0}, Right: []int{0}}, stablehlo.F32)
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
	// A tensor is records × positions × heads × columns, or records × heads × positions ×
	// positions: a square for each head.
	head, square := []int{0, 2}, []int{0, 1}
	product := func(a, b value, i, j int, left, right []int) value {
		return a.Dot(b, stablehlo.Product{Left: []int{i}, Right: []int{j}, CommonLeft: left, CommonRight: right}, stablehlo.F32)
	}
	products := product(queries, keys, 3, 3, head, head).Scale(scale)
	if l.Causal {
		later := l.Iota(stablehlo.I32, 3, products.Dims...).Compare(stablehlo.Greater, l.Iota(stablehlo.I32, 2, products.Dims...))
		products = later.Select(products.Fill(math.Inf(-1)), products)
	}
	rows := func(v value) value { return v.Like(products, 0, 1, 2) }
	e := products.Subtract(rows(products.Largest(3))).Exp()
	weights := e.Divide(rows(e.Sum(3)))
	narrow := weights.Convert(l.compute)
	y := product(narrow, values, 3, 1, square, head)
	back := func(v value) value { return v.Convert(l.compute).Transpose(0, 2, 1, 3).Reshape(n, t, width) }
	return l.narrow(y.Transpose(0, 2, 1, 3).Reshape(n, t, width)), func(dy value) []value {
		d := dy.Convert(l.compute).Reshape(n, t, heads, width/heads)
		dvalues := product(narrow, d, 2, 1, square, head)
		dweights := product(d, values, 3, 3, head, head)
		along := dweights.Multiply(weights).Sum(3)
		slopes := weights.Multiply(dweights.Subtract(rows(along))).Scale(scale).Convert(l.compute)
		dqueries := product(slopes, keys, 3, 1, square, head)
		dkeys := product(slopes, queries, 2, 1, square, head)
		return []value{back(dqueries), back(dkeys), back(dvalues)}
	}
}
