package cpu_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
)

// reference is what testdata/pytorch.py reports of a model.
type reference struct {
	Rate      float32   `json:"rate"`  // of SGD
	First     int       `json:"first"` // update, which decides about the records
	Losses    []float64 `json:"losses"`
	Gradients []sketch  `json:"gradients"` // of the first update
	Values    []sketch  `json:"values"`    // after the last update
}

// sketch stands for a variable.
type sketch struct {
	Name    string    `json:"name"`
	Norm    float64   `json:"norm"`
	Product float64   `json:"product"` // with a fixed vector
	First   []float64 `json:"first"`
}

// The models of the zoo, and small ones for what these do not have, have PyTorch's losses, gradients and values after updates by
// SGD, whose numbers are of double precision. Dropout is left out.
func TestPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]reference
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range zoo.Names() {
		if all[name].Losses == nil {
			t.Errorf("nothing of %s", name)
		}
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(want.Values) > 10 {
				t.Skip("deep networks take long")
			}
			t.Parallel()
			compareWithPyTorch(t, name, want)
		})
	}
}

func compareWithPyTorch(t *testing.T, name string, want reference) {
	t.Helper()
	const batch = 8
	limit := 1e-5
	if name == "resnet18" || name == "transformer" {
		limit = 5e-5
	}
	m := pyTorchModel(t, name)
	for i := range m.Layers {
		m.Layers[i].Rate = 0
	}
	r := build(t, m, engine.Options{Threads: 2, MicroBatch: batch}).(engine.Updater)
	vars, _ := r.Layout()
	if err := r.Put(0, 0, startValues(vars)); err != nil {
		t.Fatal(err)
	}
	sums := make([]float32, model.Length(vars))
	for update, loss := range want.Losses {
		s := stage(t, r, patterns(m, want.First+update, batch))
		result, err := r.Step(context.Background(), s, engine.Pass{First: true, Last: true, Ready: func(offset int, span []float32) { copy(sums[offset:], span) }})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Loss / batch; math.Abs(got-loss) > limit*loss {
			t.Errorf("the loss of update %d is %v, want %v", update, got, loss)
		}
		if update == 0 {
			compareSketches(t, "gradient", vars, sums, 1.0/batch, want.Gradients, limit)
		}
		if err := r.Update(sums, batch, optimizer.Recipe{LearningRate: want.Rate}); err != nil {
			t.Fatal(err)
		}
		s.Release()
	}
	compareSketches(t, "value", vars, values(t, r), 1, want.Values, limit)
}

// pyTorchModel returns a model of testdata/pytorch.py.
func pyTorchModel(t *testing.T, name string) *model.Model {
	t.Helper()
	d := model.Data{Input: digits, Classes: 10}
	pixels := func(shape ...int) { d.Input.Shape = shape }
	numbers := func(n int) { d.Classes, d.Target = 0, model.Features{Type: model.F32, Shape: []int{n}} }
	base := name
	var layers []model.Layer
	switch name {
	case "cifar-cnn", "resnet20", "resnet18":
		pixels(32, 32, 3)
	case "linear":
		numbers(2)
	case "transformer":
		pixels(16)
		d.Classes, d.Target = 32, d.Input
	case "numbers":
		pixels(6)
		numbers(3)
		base, layers = "mlp", []model.Layer{dense("hidden", 16), op("tanh", model.Tanh), dense("output", 3)}
	case "groups":
		pixels(10, 10, 4)
		base, layers = "softmax", []model.Layer{
			{Name: "groups", Op: model.Conv2D, Filters: 8, Kernel: 3, Pad: 1, Groups: 2}, op("tanh", model.Tanh),
			{Name: "depthwise", Op: model.Conv2D, Filters: 16, Kernel: 3, Stride: 2, Pad: 1, NoBias: true, Groups: 8}, op("gelu", model.GELU),
			flat, dense("output", 10),
		}
	}
	m, err := zoo.Model(base, d)
	if err != nil {
		t.Fatal(err)
	}
	if layers != nil {
		m.Layers = layers
	}
	if name == "groups" {
		m.LabelSmoothing = 0.1
	}
	return m
}

// startValues returns the values that testdata/pytorch.py begins with.
func startValues(vars []model.Var) []float32 {
	all := make([]float32, model.Length(vars))
	for number, v := range vars {
		for i := range v.Len {
			x := math.Sin(0.7*float64(number) + 1.3*float64(i) + 0.001*float64(i)*float64(i))
			switch {
			case v.Kind == model.Moment:
				x = float64(v.Init.Distribution) // zeros or ones
			case v.Init.Distribution == model.Uniform:
				x *= v.Init.Limit
			case v.Init.Distribution == model.Ones:
				x = 1 + 0.1*x
			default:
				x *= 0.1
			}
			all[v.Offset+i] = float32(x)
		}
	}
	return all
}

// patterns returns the records of an update of testdata/pytorch.py.
func patterns(m *model.Model, update, batch int) *engine.Batch {
	size := 1
	for _, d := range m.Input.Shape {
		size *= d
	}
	of, elements := m.Answer()
	b := &engine.Batch{}
	var features, answers []byte
	value := func(at int) byte {
		v := byte(uint64(at) * 2654435761 >> 16)
		if m.Vocabulary() > 0 {
			v %= byte(m.Vocabulary())
		}
		return v
	}
	for r := update * batch; r < (update+1)*batch; r++ {
		for i := range size {
			features = append(features, value(r*size+i))
		}
		for i := range elements {
			switch of {
			case model.F32:
				answers = number(answers, of, float32(math.Sin(0.3*float64(r*elements+i))))
			case model.I32:
				answers = number(answers, of, float32(r*7%10))
			default: // the next character
				answers = append(answers, value(r*size+i+1))
			}
		}
		b.Weights, b.Records = append(b.Weights, 1), append(b.Records, int64(r))
	}
	b.Inputs = []engine.Input{{Type: model.U8, Data: features}, {Type: of, Data: answers}}
	return b
}

// compareSketches compares each trained variable, relative to the norm of all of them.
func compareSketches(t *testing.T, what string, vars []model.Var, vector []float32, scale float64, want []sketch, limit float64) {
	t.Helper()
	norm := 0.0
	for _, w := range want {
		norm = math.Hypot(norm, w.Norm)
	}
	for i, w := range want {
		v := vars[i]
		if v.Name != w.Name {
			t.Fatalf("variable %d is %s, want %s", i, v.Name, w.Name)
		}
		square, product := 0.0, 0.0
		for j, x := range vector[v.Offset : v.Offset+v.Len] {
			square += float64(x) * float64(x) * scale * scale
			product += float64(x) * scale * math.Cos(0.9*float64(j))
		}
		off := max(math.Abs(math.Sqrt(square)-w.Norm), math.Abs(product-w.Product)/math.Sqrt(float64(v.Len)))
		for j, x := range w.First {
			off = max(off, math.Abs(float64(vector[v.Offset+j])*scale-x))
		}
		if !(off <= limit*norm) {
			t.Errorf("%s of %s is off by %.2g of the norm %.3g", what, v.Name, off/norm, norm)
		}
	}
}
