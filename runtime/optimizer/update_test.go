package optimizer

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/model"
)

func near(t *testing.T, name string, got []float32, want ...float64) {
	t.Helper()
	for i, w := range want {
		if math.Abs(float64(got[i])-w) > 1e-6 {
			t.Errorf("%s is %v, want %v", name, got, want)
			return
		}
	}
}

func TestUpdate(t *testing.T) {
	vars := []model.Var{
		{Name: "w", Offset: 0, Len: 2, Decay: true},
		{Name: "b", Offset: 2, Len: 1},
		{Name: "m", Offset: 3, Len: 1, Kind: model.Moment, Momentum: 0.9},
	}
	sums := []float32{8, -4, 2, 40} // of weight 4: means 2, -1, 0.5, 10
	for name, c := range map[string]struct {
		recipe        Recipe
		vector, slots []float64 // after two updates
	}{
		"plain":    {Recipe{LearningRate: 0.1}, []float64{0.6, 1.2, 0.9}, nil},
		"momentum": {Recipe{LearningRate: 0.1, Momentum: 0.5}, []float64{1 - 0.2 - 0.3, 1 + 0.1 + 0.15, 1 - 0.05 - 0.075}, []float64{3, -1.5, 0.75}},
		"nesterov": {Recipe{LearningRate: 0.1, Momentum: 0.5, Nesterov: true}, []float64{1 - 0.3 - 0.35, 1 + 0.15 + 0.175, 1 - 0.075 - 0.0875}, []float64{3, -1.5, 0.75}},
		"decay":    {Recipe{LearningRate: 0.1, WeightDecay: 0.5}, []float64{(1-0.25)*0.95 - 0.2, 1.05*0.95 + 0.1, 0.9}, nil},
		// The gradient's norm is √5.25; moments are not clipped.
		"clip": {Recipe{LearningRate: 0.1, ClipNorm: 1}, []float64{1 - 0.4/math.Sqrt(5.25), 1 + 0.2/math.Sqrt(5.25), 1 - 0.1/math.Sqrt(5.25)}, nil},
	} {
		vector := []float32{1, 1, 1, 1}
		slots := make([][]float32, c.recipe.Slots())
		for i := range slots {
			slots[i] = make([]float32, 4)
		}
		for range 2 {
			Update(vector, slots, sums, 4, vars, c.recipe)
		}
		near(t, name, vector, c.vector[:3]...)
		near(t, name+" moment", vector[3:], 0.9*(0.9*1+0.1*10)+0.1*10)
		if len(slots) > 0 {
			near(t, name+" slots", slots[0], c.slots...)
		}
		before := vector[0]
		Update(vector, slots, sums, 0, vars, c.recipe)
		near(t, name+" after an update of weight 0", vector, float64(before))
	}
}

// Servers that hold parts of the vector get what one server would.
func TestUpdateInParts(t *testing.T) {
	small := &model.Model{
		Name: "small", Classes: 3, Loss: model.SoftmaxCrossEntropy, Input: model.Features{Type: model.U8, Shape: []int{9, 8}},
		Layers: []model.Layer{
			{Name: "conv", Op: model.Conv2D, Filters: 4, Kernel: 3, Stride: 2, Padding: model.Same},
			{Name: "norm", Op: model.BatchNorm},
			{Name: "flat", Op: model.Flatten},
			{Name: "out", Op: model.Dense, Units: 3},
		},
	}
	vars, _, err := small.Layout()
	if err != nil {
		t.Fatal(err)
	}
	n := model.Length(vars)
	cuts := []int{0, 17, 41, 100, n}
	for _, recipe := range []Recipe{
		{LearningRate: 0.1, WeightDecay: 0.01, ClipNorm: 0.5},
		{LearningRate: 0.1, Momentum: 0.9, WeightDecay: 0.01, ClipNorm: 0.5},
		{LearningRate: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 0.01, ClipNorm: 0.5},
		{Name: Adagrad, LearningRate: 0.1, Epsilon: 1e-10, WeightDecay: 0.01, ClipNorm: 0.5},
		{Name: Adam, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 7, WeightDecay: 0.01, ClipNorm: 0.5},
		{Name: AdamW, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 7, WeightDecay: 0.01, ClipNorm: 0.5},
	} {
		// The parameters, then the slots.
		begin := func() (vectors [][]float32, g []float32) {
			vectors, g = make([][]float32, 1+recipe.Slots()), make([]float32, n)
			for k := range vectors {
				vectors[k] = make([]float32, n)
				for i := range g {
					vectors[k][i], g[i] = float32((i+k)%7), float32(i%5)-2
				}
			}
			return vectors, g
		}
		whole, sums := begin()
		Update(whole[0], whole[1:], sums, 3, vars, recipe)
		parts, _ := begin()
		norm := 0.0
		for i := range cuts[1:] {
			from, to := cuts[i], cuts[i+1]
			norm += SquaredNorm(sums[from:to], 3, model.Slice(vars, from, to))
		}
		scale := recipe.ClipScale(norm)
		if scale >= 1 {
			t.Fatal("nothing is clipped")
		}
		for i := range cuts[1:] {
			from, to := cuts[i], cuts[i+1]
			var part [][]float32
			for _, v := range parts {
				part = append(part, v[from:to])
			}
			UpdateScaled(part[0], part[0], part[1:], sums[from:to], 3, model.Slice(vars, from, to), recipe, scale)
		}
		before, _ := begin()
		for k := range whole {
			if slices.Equal(whole[k], before[k]) {
				t.Errorf("%+v: vector %d is as before", recipe, k)
			}
			for i := range whole[k] {
				if math.Abs(float64(whole[k][i]-parts[k][i])) > 1e-6 {
					t.Fatalf("%+v: element %d of vector %d: %v whole, %v in parts", recipe, i, k, whole[k][i], parts[k][i])
				}
			}
		}
	}
}

func TestRecipeRefusals(t *testing.T) {
	nan := float32(math.NaN())
	for _, r := range []Recipe{
		{}, {LearningRate: -1}, {LearningRate: nan}, {LearningRate: float32(math.Inf(1))},
		{LearningRate: 1, Momentum: 1}, {LearningRate: 1, Momentum: nan}, {LearningRate: 1, Nesterov: true},
		{LearningRate: 1, WeightDecay: -1}, {LearningRate: 1, ClipNorm: -1},
		{LearningRate: 1, Name: "lamb"}, {LearningRate: 1, Beta1: 0.9}, {LearningRate: 1, Epsilon: 1},
		{LearningRate: 1, Name: Adagrad}, {LearningRate: 1, Name: Adagrad, Epsilon: 1, Momentum: 0.9},
		{LearningRate: 1, Name: Adagrad, Epsilon: 1, Beta2: 0.9}, {LearningRate: 1, Name: Adagrad, Epsilon: 1e-60},
		{LearningRate: 1, Name: Adam, Epsilon: 1}, {LearningRate: 1, Name: Adam, Epsilon: 1, Step: 1, Beta1: 1},
		{LearningRate: 1, Name: Adam, Epsilon: 1, Step: 1, Beta2: 0.99999999}, {LearningRate: 1, Name: AdamW, Step: 1},
		{LearningRate: 1, Name: AdamW, Epsilon: math.NaN(), Step: 1}, {LearningRate: 1, Name: AdamW, Epsilon: 1, Step: 1, Momentum: 0.9},
	} {
		if r.Validate() == nil {
			t.Errorf("%+v passes", r)
		}
	}
	for _, r := range []Recipe{
		{LearningRate: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 1e-4, ClipNorm: 1},
		{LearningRate: 0.1, Name: Adagrad, Epsilon: 1e-10},
		{LearningRate: 0.1, Name: Adam, Beta2: 0.999, Epsilon: 1e-8, Step: 1},
		{LearningRate: 0.1, Name: AdamW, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 1 << 40, WeightDecay: 0.01},
	} {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// Checkpoints and messages of SGD are the bytes that they were.
func TestRecipeOfSGDAsText(t *testing.T) {
	text, err := json.Marshal(Recipe{LearningRate: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 0.5, ClipNorm: 1})
	const want = `{"learning_rate":0.1,"momentum":0.9,"nesterov":true,"weight_decay":0.5,"clip_norm":1}`
	if err != nil || string(text) != want {
		t.Errorf("%s, want %s (%v)", text, want, err)
	}
}

func TestFinite(t *testing.T) {
	for n := range 11 {
		v := make([]float32, n)
		for i := range v {
			v[i] = []float32{1, -2, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32}[i%5]
		}
		if !Finite(v) {
			t.Errorf("%v is finite", v)
		}
		for i, was := range v {
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				v[i] = float32(x)
				if Finite(v) {
					t.Errorf("%v is not finite", v)
				}
			}
			v[i] = was
		}
	}
}

func BenchmarkFinite(b *testing.B) {
	v := make([]float32, 110_000)
	b.SetBytes(int64(4 * len(v)))
	for b.Loop() {
		if !Finite(v) {
			b.Fatal("zeros are finite")
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	const n = 110_000
	vars, vector, sums := []model.Var{{Len: n, Decay: true}}, make([]float32, n), make([]float32, n)
	slots := [][]float32{make([]float32, n), make([]float32, n)}
	for i := range sums {
		sums[i] = float32(i%100) - 50
	}
	for name, r := range map[string]Recipe{
		"sgd": {}, "momentum": {Momentum: 0.9}, "nesterov": {Momentum: 0.9, Nesterov: true}, Adagrad: {Name: Adagrad, Epsilon: 1e-10},
		Adam: {Name: Adam, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 5},
	} {
		b.Run(name, func(b *testing.B) {
			r.LearningRate, r.WeightDecay = 0.1, 0.01
			b.SetBytes(4 * n)
			for b.Loop() {
				Update(vector, slots, sums, 4, vars, r)
			}
		})
	}
}

// An update into another vector has the bits of one in place, and leaves the vector as it is.
func TestUpdateIntoAnotherVector(t *testing.T) {
	vars := []model.Var{{Name: "a", Len: 19, Decay: true}, {Name: "b", Offset: 19, Len: 5}, {Name: "m", Offset: 24, Len: 3, Kind: model.Moment, Momentum: 0.9}}
	const n = 27
	r := rand.New(rand.NewPCG(3, 4))
	for _, recipe := range []Recipe{
		{LearningRate: 0.1}, {LearningRate: 0.1, Momentum: 0.9}, {LearningRate: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 0.01},
		{Name: Adagrad, LearningRate: 0.1, Epsilon: 1e-10},
		{Name: AdamW, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 7, WeightDecay: 0.01},
	} {
		for _, weight := range []float64{0, 3} {
			vector, sums, into := random(r, n), random(r, n), random(r, n)
			inPlace, before := slices.Clone(vector), slices.Clone(vector)
			var slots, others [][]float32
			for range recipe.Slots() {
				slots = append(slots, make([]float32, n))
				others = append(others, make([]float32, n))
			}
			UpdateScaled(inPlace, inPlace, slots, sums, weight, vars, recipe, 0.5)
			UpdateScaled(into, vector, others, sums, weight, vars, recipe, 0.5)
			if !sameBits(into, inPlace) || !sameBits(vector, before) || !slices.EqualFunc(slots, others, sameBits) {
				t.Errorf("%+v, weight %v: other bits than in place, or the vector has changed", recipe, weight)
			}
		}
	}
}
