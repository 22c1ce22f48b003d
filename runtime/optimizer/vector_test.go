package optimizer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sizes are lengths around those of the loops, and one of a layer.
var sizes = []int{0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 1003}

// random has values of very different sizes, both zeros and denormal numbers.
func random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		switch v[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(40)-20)); r.IntN(20) {
		case 0:
			v[i] = 0
		case 1:
			v[i] = float32(math.Copysign(0, -1))
		case 2:
			v[i] = math.Float32frombits(uint32(r.IntN(1 << 23)))
		}
	}
	return v
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// What a machine's own loops make of a vector has the bits that Go's loops make of
// it element by element: a span of one element is too short for the former.
func TestLoopsRoundAsGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range sizes {
		for _, decay := range []float32{0, 0.01} {
			for _, recipe := range []Recipe{
				{LearningRate: 0.1}, {LearningRate: 0.3, Momentum: 0.9}, {LearningRate: 0.3, Momentum: 0.9, Nesterov: true},
			} {
				w, slot, s := random(r, n), random(r, n), random(r, n)
				one, oneSlot := slices.Clone(w), slices.Clone(slot)
				if recipe.Momentum == 0 {
					recipe.updateSGD(w, w, s, 1./3, decay)
				} else {
					recipe.updateMomentum(w, w, slot, s, 1./3, decay)
				}
				for i := range n {
					if recipe.Momentum == 0 {
						recipe.updateSGD(one[i:i+1], one[i:i+1], s[i:i+1], 1./3, decay)
					} else {
						recipe.updateMomentum(one[i:i+1], one[i:i+1], oneSlot[i:i+1], s[i:i+1], 1./3, decay)
					}
				}
				if !sameBits(w, one) || !sameBits(slot, oneSlot) {
					t.Errorf("%d elements of %+v with decay %v: other bits than one by one", n, recipe, decay)
				}
			}
		}
	}
}

// Vectors are added as Go adds their elements, also in the place of one of them.
func TestAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, n := range sizes {
		left, right := random(r, n), random(r, n)
		want, into := make([]float32, n), make([]float32, n)
		for i := range want {
			want[i] = left[i] + right[i]
		}
		Add(into, left, right)
		if Add(left, left, right); !sameBits(into, want) || !sameBits(left, want) {
			t.Errorf("%d elements: other bits than one by one", n)
		}
	}
}

// The momentum of weights without gradients ends at 0, in each element's place.
func TestMomentumEnds(t *testing.T) {
	for _, nesterov := range []bool{false, true} {
		recipe := Recipe{LearningRate: 0.1, Momentum: 0.5, Nesterov: nesterov}
		w, slot, s := make([]float32, 19), make([]float32, 19), make([]float32, 19)
		for i := range slot {
			w[i], slot[i] = 1, float32(math.Copysign(0x1p-125, float64(i%2)-0.5))
		}
		slot[3], slot[18] = float32(math.NaN()), float32(math.NaN())
		for range 2 {
			recipe.updateMomentum(w, w, slot, s, 1, 0)
		}
		for i, m := range slot {
			if want := i == 3 || i == 18; math.IsNaN(float64(m)) != want || !want && (m != 0 || w[i] != 1) {
				t.Errorf("momentum %v and weight %v of element %d", m, w[i], i)
			}
		}
	}
}

func TestSquaresInRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range sizes {
		v := random(r, n)
		var rows [16]float64
		for i, x := range v {
			rows[i%16] += float64(x) * float64(x)
		}
		for _, half := range []int{8, 4, 2, 1} {
			for i := range half {
				rows[i] += rows[i+half]
			}
		}
		if got := squares(v); got != rows[0] {
			t.Errorf("squares of %d elements: %v, want %v", n, got, rows[0])
		}
	}
}

func TestFiniteFindsEachElement(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range sizes {
		v := random(r, n)
		if !Finite(v) {
			t.Errorf("%d finite elements are not finite", n)
		}
		for i := range v {
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				before := v[i]
				if v[i] = float32(x); Finite(v) {
					t.Errorf("element %d of %d is %v, and the vector finite", i, n, x)
				}
				v[i] = before
			}
		}
	}
}

func BenchmarkLoops(b *testing.B) {
	const n = 101770 // the quickstart's MLP
	v := random(rand.New(rand.NewPCG(7, 8)), n)
	b.Run("squares", func(b *testing.B) {
		for b.Loop() {
			squares(v)
		}
	})
	b.Run("finite", func(b *testing.B) {
		for b.Loop() {
			Finite(v)
		}
	})
}
