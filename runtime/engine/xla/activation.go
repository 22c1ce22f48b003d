package xla

import (
	"hash/fnv"
	"math"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

func (l *layer) relu() (value, backward) {
	x := l.in[0]
	y := x.Maximum(x.Fill(0))
	return l.narrow(y), func(dy value) []value {
		return one(y.Compare(stablehlo.Greater, y.Fill(0)).Select(dy.Convert(l.compute), y.Fill(0)))
	}
}

// function is an activation that is computed in f32. slope is its derivative.
func (l *layer) function(apply, slope func(x value) value) (value, backward) {
	x := l.in[0].Convert(stablehlo.F32)
	return l.narrow(apply(x)), func(dy value) []value {
		return one(dy.Convert(stablehlo.F32).Multiply(slope(x)).Convert(l.compute))
	}
}

func (l *layer) tanh() (value, backward) {
	return l.function(value.Tanh, func(x value) value {
		y := x.Tanh()
		return y.Fill(1).Subtract(y.Multiply(y))
	})
}

func (l *layer) sigmoid() (value, backward) {
	return l.function(value.Logistic, func(x value) value { return x.Logistic().Multiply(x.Negate().Logistic()) })
}

func (l *layer) gelu() (value, backward) {
	return l.function(
		func(x value) value { return x.Multiply(normal(x)) },
		func(x value) value {
			density := x.Multiply(x).Scale(-0.5).Exp().Scale(1 / math.Sqrt(2*math.Pi))
			return normal(x).Add(x.Multiply(density))
		})
}

// erfc has the coefficients of ln(erfc(z)·(1 + z/2)) + z² in powers of 1/(1 + z/2), from
// the highest one down: Press et al., Numerical Recipes in C, 2nd edition, section 6.2.
// The relative error of erfc is below 1.2e-7 for all z from 0 on.
var erfc = []float64{
	0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223,
}

// normal is the distribution function of the standard normal distribution. StableHLO has
// no error function.
func normal(x value) value {
	z := x.Abs().Scale(1 / math.Sqrt2)
	t := z.Fill(1).Divide(z.Scale(0.5).Plus(1))
	sum := t.Fill(erfc[0])
	for _, c := range erfc[1:] {
		sum = sum.Multiply(t).Plus(c)
	}
	tail := sum.Subtract(z.Multiply(z)).Exp().Multiply(t).Scale(0.5)
	return x.Compare(stablehlo.Greater, x.Fill(0)).Select(tail.Fill(1).Subtract(tail), tail)
}

// dropout drops elements in training and scales up the rest. Which ones follows from
// (seed, epoch, record, layer): the CPU engine drops the same ones.
func (l *layer) dropout() (value, backward) {
	x := l.in[0]
	threshold := uint32(float64(l.Rate) * (1 << 32))
	if !l.training || threshold == 0 {
		return l.narrow(x), func(dy value) []value { return one(dy.Convert(l.compute)) }
	}
	size := x.Size() / l.batch
	pairs := (size + 1) / 2 // a draw of 64 bits is for two elements
	h := fnv.New64a()
	h.Write([]byte(l.Name))
	state := mix(l.keys.Bits(stablehlo.Xor, l.keys.FillUnsigned(h.Sum64())))
	counts := l.Iota(stablehlo.U64, 1, l.batch, pairs)
	counts = counts.Add(counts.FillUnsigned(1)).Multiply(counts.FillUnsigned(model.Golden))
	draws := mix(state.Like(counts, 0).Add(counts))
	low, high := draws.Bits(stablehlo.And, draws.FillUnsigned(math.MaxUint32)), draws.Bits(stablehlo.ShiftRight, draws.FillUnsigned(32))
	halves := stablehlo.Concatenate(2, low.Reshape(l.batch, pairs, 1), high.Reshape(l.batch, pairs, 1))
	halves = halves.Reshape(l.batch, 2*pairs).SliceDim(1, 0, size)
	kept := halves.Compare(stablehlo.GreaterOrEqual, halves.FillUnsigned(uint64(threshold))).Reshape(x.Dims...)
	scale := float64(1 / (1 - l.Rate))
	drop := func(v value) value { return kept.Select(v.Scale(scale), v.Fill(0)) }
	return l.narrow(drop(x)), func(dy value) []value { return one(drop(dy.Convert(l.compute))) }
}

// mix is model.Mix.
func mix(z value) value {
	shifted := func(places uint64) value {
		return z.Bits(stablehlo.Xor, z.Bits(stablehlo.ShiftRight, z.FillUnsigned(places)))
	}
	z = shifted(30).Multiply(z.FillUnsigned(0xbf58476d1ce4e5b9))
	z = shifted(27).Multiply(z.FillUnsigned(0x94d049bb133111eb))
	return shifted(31)
}
