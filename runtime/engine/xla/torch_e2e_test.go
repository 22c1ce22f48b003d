//go:build e2e

package xla_test

import (
	"math"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// PyTorch in float64 computes the parameters that the interpreter of the engine's programs
// computes: what gpu-check compares large models with.
func TestTorchTrainsTheSame(t *testing.T) {
	torch, err := xlatest.FindTorch(t.Context(), programtest.Torch(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range zoo.Names() {
		t.Run(name, func(t *testing.T) {
			d := model.Data{Input: model.Features{Type: model.U8, Shape: []int{8, 8, 3}}, Classes: 10}
			updates := 4
			switch name {
			case "cifar-cnn":
				d.Input.Shape = []int{16, 16, 3}
			case "mnist-cnn":
				d.Input.Shape = []int{12, 12}
			case "linear":
				d = model.Data{Input: d.Input, Target: model.Features{Type: model.F32, Shape: []int{2}}}
			case "transformer":
				d.Input.Shape = []int{12}
				d.Classes, d.Target = 64, d.Input
			case "resnet18":
				updates = 1
			}
			m, err := zoo.Model(name, d)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m.Layers {
				m.Layers[i].Rate = 0
			}
			const batch, rate = 4, 0.01
			r, err := xla.New(new(xlatest.Device)).Build(m, engine.Options{MicroBatch: batch, ComputeType: spec.ComputeF32, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() //nolint:errcheck // the process ends
			vars, _ := r.Layout()
			start, got := make([]float32, model.Length(vars)), make([]float32, model.Length(vars))
			if err := r.Get(0, 0, start); err != nil {
				t.Fatal(err)
			}
			var batches []*engine.Batch
			for i := range updates {
				batches = append(batches, xlatest.Batch(m, uint64(i), 1, 1, 1, 1))
				s, err := r.Stage(t.Context(), batches[i], nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.Step(t.Context(), s, engine.Pass{First: true}); err != nil {
					t.Fatal(err)
				}
				if err := r.(engine.Updater).Update(nil, batch, optimizer.Recipe{Name: optimizer.SGD, LearningRate: rate}); err != nil {
					t.Fatal(err)
				}
				s.Release()
			}
			if err := r.Get(0, 0, got); err != nil {
				t.Fatal(err)
			}
			want, err := torch.Train(t.Context(), t.TempDir(), m, start, batches, rate)
			if err != nil {
				t.Fatal(err)
			}
			difference, change := 0.0, 0.0
			for i := range want {
				difference += math.Pow(float64(got[i])-float64(want[i]), 2)
				change += math.Pow(float64(want[i])-float64(start[i]), 2)
			}
			if off := math.Sqrt(difference / change); !(off <= 1e-4) { // of what training has changed
				t.Errorf("the parameters are off by %.2g of their change", off)
			}
		})
	}
}
