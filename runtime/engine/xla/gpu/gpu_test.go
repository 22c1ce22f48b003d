//go:build gpu

package gpu_test

import (
	"encoding/binary"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/cuda"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/gpu"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// open starts XLA on the first GPU; a machine without one skips the test.
func open(t *testing.T) engine.Engine {
	t.Helper()
	files, err := cuda.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if err := cuda.Problem(files); err != nil {
		t.Skip(err)
	}
	d, err := gpu.Open(t.Context(), files, 0, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(d.Class())
	return xla.New(d)
}

// TestOnGPU compares the parameters of models after 20 updates on a GPU with an
// interpreter of the same programs in float64, for each compute type.
func TestOnGPU(t *testing.T) {
	onGPU := open(t)
	inFloat64 := xla.New(new(xlatest.Device))
	for _, c := range []struct {
		name  string
		shape []int
		most  map[string]float64
	}{
		{"mlp", []int{28, 28}, map[string]float64{spec.ComputeF32: 1e-5, spec.ComputeTF32: 1e-3, spec.ComputeBF16: 1e-2}},
		{"mnist-cnn", []int{28, 28}, map[string]float64{spec.ComputeF32: 1e-5, spec.ComputeTF32: 1e-2, spec.ComputeBF16: 5e-2}},
		{"resnet20", []int{32, 32, 3}, map[string]float64{spec.ComputeF32: 1e-5, spec.ComputeTF32: 1e-2, spec.ComputeBF16: 5e-2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := zoo.Model(c.name, model.Data{Input: model.Features{Type: model.U8, Shape: c.shape}, Classes: 10})
			if err != nil {
				t.Fatal(err)
			}
			want := train(t, inFloat64, m, engine.Options{MicroBatch: 64, ComputeType: spec.ComputeF32, Seed: 1})
			for kind, most := range c.most {
				o := engine.Options{MicroBatch: 64, ComputeType: kind, Seed: 1}
				got := train(t, onGPU, m, o)
				d := distance(want, got)
				t.Logf("%s %s: parameters are off by %.2g after 20 updates", c.name, kind, d)
				if !(d <= most) {
					t.Errorf("%s %s: want at most %.2g", c.name, kind, most)
				}
			}
			o := engine.Options{MicroBatch: 64, ComputeType: spec.ComputeF32, Seed: 1, Deterministic: true}
			if a, b := train(t, onGPU, m, o), train(t, onGPU, m, o); !slices.Equal(a, b) {
				t.Errorf("%s: two deterministic runs differ by %.2g", c.name, distance(a, b))
			}
		})
	}
}

// train makes 20 updates and returns the parameters.
func train(t *testing.T, e engine.Engine, m *model.Model, o engine.Options) []float32 {
	t.Helper()
	r, err := e.Build(m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		b := &engine.Batch{Weights: slices.Repeat([]float32{1}, o.MicroBatch), Seed: 1, Epoch: uint64(i)}
		features := make([]byte, o.MicroBatch*engine.FeatureBytes(m))
		for j := range features {
			features[j] = byte(random.Uint32())
		}
		var labels []byte
		for j := range o.MicroBatch {
			b.Records = append(b.Records, int64(j))
			labels = binary.LittleEndian.AppendUint32(labels, random.Uint32N(uint32(m.Classes)))
		}
		b.Inputs = []engine.Input{{Type: m.Input.Type, Data: features}, {Type: model.I32, Data: labels}}
		s, err := r.Stage(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Step(t.Context(), s, engine.Pass{First: i == 0}); err != nil {
			t.Fatal(err)
		}
		s.Release()
		recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.001}
		if err := r.(engine.Updater).Update(nil, float64(o.MicroBatch), recipe); err != nil {
			t.Fatal(err)
		}
	}
	vars, _ := r.Layout()
	v := make([]float32, model.Length(vars))
	if err := r.Get(0, 0, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// distance is the difference of two vectors as a share of the length of the first.
func distance(a, b []float32) float64 {
	difference, size := 0.0, 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		difference += d * d
		size += float64(a[i]) * float64(a[i])
	}
	return math.Sqrt(difference / size)
}
