package xla

import (
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// batchNorm normalises each channel over the records and positions of the micro-batch,
// weighted by the records' weights; in evaluation by the running moments.
func (l *layer) batchNorm() (value, backward) {
	x := l.in[0].Convert(stablehlo.F32)
	last := len(x.Dims) - 1
	var others []int
	for i := range last {
		others = append(others, i)
	}
	wide := func(v value) value { return v.Like(x, last) }
	gamma, beta := l.variable(model.Gamma), l.variable(model.Beta)
	if !l.training {
		inverse := l.variable(model.Variance).Plus(float64(l.Eps())).Rsqrt()
		y := x.Subtract(wide(l.variable(model.Mean))).Multiply(wide(inverse.Multiply(gamma))).Add(wide(beta))
		return l.narrow(y), nil
	}
	positions := float64(x.Size() / (x.Dims[0] * x.Dims[last]))
	counted := l.total.Compare(stablehlo.Greater, l.total.Fill(0)).Select(l.total, l.total.Fill(1)) // all may be padding
	share := l.weights.Divide(counted.Like(l.weights)).Scale(1/positions).Like(x, 0)
	mean := x.Multiply(share).Sum(others...)
	centred := x.Subtract(wide(mean))
	variance := centred.Multiply(centred).Multiply(share).Sum(others...)
	l.learn(model.Mean, mean.Multiply(l.total.Like(mean)))
	l.learn(model.Variance, variance.Multiply(l.total.Like(variance)))
	inverse := variance.Plus(float64(l.Eps())).Rsqrt()
	y := centred.Multiply(wide(inverse.Multiply(gamma))).Add(wide(beta))
	return l.narrow(y), func(dy value) []value {
		d := dy.Convert(stablehlo.F32)
		unit := centred.Multiply(wide(inverse))
		plain, along := d.Sum(others...), d.Multiply(unit).Sum(others...)
		l.learn(model.Beta, plain)
		l.learn(model.Gamma, along)
		common := share.Multiply(wide(plain).Add(unit.Multiply(wide(along))))
		return one(d.Subtract(common).Multiply(wide(gamma.Multiply(inverse))).Convert(l.compute))
	}
}

// layerNorm normalises the last dimension of each record and position.
func (l *layer) layerNorm() (value, backward) {
	x := l.in[0].Convert(stablehlo.F32)
	last := len(x.Dims) - 1
	var rows []int
	for i := range last {
		rows = append(rows, i)
	}
	width := float64(x.Dims[last])
	average := func(v value) value { return v.Sum(last).Scale(1/width).Like(x, rows...) }
	wide := func(name string) value { return l.variable(name).Like(x, last) }
	centred := x.Subtract(average(x))
	inverse := average(centred.Multiply(centred)).Plus(float64(l.Eps())).Rsqrt()
	unit := centred.Multiply(inverse)
	return l.narrow(unit.Multiply(wide(model.Gamma)).Add(wide(model.Beta))), func(dy value) []value {
		d := dy.Convert(stablehlo.F32)
		l.learn(model.Beta, d.Sum(rows...))
		l.learn(model.Gamma, d.Multiply(unit).Sum(rows...))
		g := d.Multiply(wide(model.Gamma))
		dx := g.Subtract(average(g)).Subtract(unit.Multiply(average(g.Multiply(unit)))).Multiply(inverse)
		return one(dx.Convert(l.compute))
	}
}
