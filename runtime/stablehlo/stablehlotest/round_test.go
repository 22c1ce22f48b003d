package stablehlotest

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Rounding to bfloat16 agrees with the nearest of big's numbers of 8 bits.
func TestRoundBfloat(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 200000 {
		x := math.Ldexp(2*r.Float64()-1, r.IntN(200)-100)
		switch i % 4 {
		case 1: // a tie
			x = math.Float64frombits(math.Float64bits(x)&^(1<<45-1) | 1<<44)
		case 2: // just above a tie, below the precision of float32
			x = math.Float64frombits(math.Float64bits(x)&^(1<<45-1) | 1<<44 | 1)
		case 3: // just below a tie
			x = math.Float64frombits(math.Float64bits(x)&^(1<<45-1) | 1<<44 - 1)
		}
		want, _ := new(big.Float).SetPrec(8).SetMode(big.ToNearestEven).SetFloat64(x).Float64()
		if got := roundTo("bf16", x); got != want {
			t.Fatalf("%v is rounded to %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]float64{
		0: 0, inf: inf, -inf: -inf, 3.3961775292304957e38: inf, 3.38e38: 3.3762e38, 1e300: inf,
		math.Ldexp(1, -133): math.Ldexp(1, -133), math.Ldexp(1.5, -134): math.Ldexp(1, -133), math.Ldexp(1, -134): 0, 1e-300: 0,
	} {
		if got := roundTo("bf16", x); math.Abs(got-want) > 1e-3*want && got != want {
			t.Errorf("%v is rounded to %v, want %v", x, got, want)
		}
	}
	if !math.IsNaN(roundTo("bf16", nan)) {
		t.Error("NaN is rounded to a number")
	}
}

// Round rounds arguments, constants and results, but not sums within an operation.
func TestRound(t *testing.T) {
	text := program("%a: tensor<f32>, %v: tensor<2xbf16>, %u: tensor<ui64>", `%third = stablehlo.constant dense<0.3333333333333333> : tensor<bf16>
%b = stablehlo.add %a, %a : tensor<f32>
%c = stablehlo.convert %b : (tensor<f32>) -> tensor<bf16>
%d = stablehlo.reshape %v : (tensor<2xbf16>) -> tensor<2x1xbf16>
%e = stablehlo.dot_general %v, %d, contracting_dims = [0] x [0] : (tensor<2xbf16>, tensor<2x1xbf16>) -> tensor<1xf32>
%f = stablehlo.convert %u : (tensor<ui64>) -> tensor<bf16>
%g = stablehlo.convert %u : (tensor<ui64>) -> tensor<f32>
return %third, %b, %c, %e, %f, %g : tensor<bf16>, tensor<f32>, tensor<bf16>, tensor<1xf32>, tensor<bf16>, tensor<f32>`)
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	a, v := values("f32", nil, 0.1), vector("bf16", 256.7, 1.001)
	// One bit above a tie of both types, below the precision of float64.
	u := bits("ui64", nil, 1<<63+1<<55+1)
	f32 := func(x float64) float64 { return float64(float32(x)) }
	for _, round := range []bool{false, true, false} {
		p.Set(Options{Round: round})
		got, err := p.Run([]Tensor{a, v, u})
		if err != nil {
			t.Fatal(err)
		}
		want := []Tensor{values("bf16", nil, 1.0/3), values("f32", nil, 0.2), values("bf16", nil, 0.2),
			vector("f32", 256.7*256.7+1.001*1.001), values("bf16", nil, 1<<63+1<<55), values("f32", nil, 1<<63+1<<55)}
		if round {
			want = []Tensor{values("bf16", nil, 0.333984375), values("f32", nil, f32(0.1)*2), values("bf16", nil, 0.2001953125),
				vector("f32", 256*256+1), values("bf16", nil, 1<<63+1<<56), values("f32", nil, 1<<63+1<<55)}
		}
		equal(t, got, 0, want...)
	}
	if a.Values[0] != 0.1 || v.Values[0] != 256.7 {
		t.Error("the arguments are changed")
	}
}
