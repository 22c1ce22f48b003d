package cpu_test

import (
	"context"
	"encoding/binary"
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
	Rate      float32   `json:"rate"` // of SGD
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

// The models of the zoo have PyTorch's losses, gradients and values after updates by
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
	if len(all) != len(zoo.Names()) {
		t.Errorf("%d models of %d", len(all), len(zoo.Names()))
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
	if name == "resnet18" {
		limit = 5e-5
	}
	in := digits
	if name == "cifar-cnn" || name == "resnet20" || name == "resnet18" {
		in.Shape = []int{32, 32, 3}
	}
	m, err := zoo.Model(name, in, 10)
	if err != nil {
		t.Fatal(err)
	}
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
		s := stage(t, r, patterns(in.Shape, update, batch))
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
func patterns(shape []int, update, batch int) *engine.Batch {
	size := 1
	for _, d := range shape {
		size *= d
	}
	b := &engine.Batch{}
	var pixels, labels []byte
	for r := update * batch; r < (update+1)*batch; r++ {
		for i := range size {
			pixels = append(pixels, byte(uint64(r*size+i)*2654435761>>16))
		}
		labels = binary.LittleEndian.AppendUint32(labels, uint32(r*7%10))
		b.Weights, b.Records = append(b.Weights, 1), append(b.Records, int64(r))
	}
	b.Inputs = []engine.Input{{Type: model.U8, Data: pixels}, {Type: model.I32, Data: labels}}
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
