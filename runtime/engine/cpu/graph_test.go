package cpu_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

func reading(l model.Layer, inputs ...string) model.Layer {
	l.Inputs = inputs
	return l
}

func op(name string, op model.Op) model.Layer { return model.Layer{Name: name, Op: op} }

// padded is a convolution of residual networks: without bias, with zeros around.
func padded(name string, filters, stride int) model.Layer {
	return model.Layer{Name: name, Op: model.Conv2D, Filters: filters, Kernel: 3, Stride: stride, Pad: 1, NoBias: true}
}

// Each way of layers through a network, against differences of the loss.
func TestGraphs(t *testing.T) {
	for name, test := range map[string]struct {
		shape  []int
		layers []model.Layer
	}{
		"residual block": {[]int{5, 5, 2}, []model.Layer{
			padded("conv1", 4, 2), op("norm1", model.BatchNorm), op("relu1", model.ReLU), padded("conv2", 4, 1), op("norm2", model.BatchNorm),
			reading(model.Layer{Name: "project", Op: model.Conv2D, Filters: 4, Kernel: 1, Stride: 2, NoBias: true}, model.Source),
			reading(op("sum", model.Add), "norm2", "project"), op("relu2", model.ReLU),
			padded("conv3", 4, 1), op("norm3", model.BatchNorm),
			reading(op("sum2", model.Add), "norm3", "relu2"), op("relu3", model.ReLU),
			op("mean", model.GlobalAvg), dense("out", classes),
		}},
		"layers in place whose inputs others read": {[]int{6}, []model.Layer{
			dense("a", 5), reading(op("relu", model.ReLU), "a"), reading(model.Layer{Name: "drop", Op: model.Dropout, Rate: 0.3}, "a"),
			reading(op("flat", model.Flatten), "a"), reading(op("sum", model.Add), "relu", "drop", "flat", "a", "a"), dense("out", classes),
		}},
		"branches side by side": {[]int{6, 6}, []model.Layer{
			conv("a", 2), reading(conv("b", 3), model.Source), reading(op("both", model.Concat), "a", "b", "a"),
			{Name: "pool", Op: model.AvgPool, Kernel: 2, Stride: 1}, {Name: "pool2", Op: model.AvgPool, Kernel: 2}, flat, dense("out", classes),
		}},
		"activations": {[]int{7}, []model.Layer{
			dense("a", 6), op("gelu", model.GELU), op("norm", model.LayerNorm), op("tanh", model.Tanh), op("relu", model.ReLU),
			{Name: "b", Op: model.Dense, Units: 5, NoBias: true}, op("sigmoid", model.Sigmoid), {Name: "drop", Op: model.Dropout, Rate: 0.3},
			dense("out", classes),
		}},
		"a branch that does not learn": {[]int{4, 4}, []model.Layer{
			reading(op("half", model.Sigmoid), model.Source), reading(conv("conv", 1), "half"), {Name: "pool", Op: model.MaxPool, Kernel: 2},
			reading(op("own", model.Flatten), "pool"), reading(op("raw", model.Flatten), "half"), reading(op("both", model.Concat), "raw", "own"),
			dense("out", classes),
		}},
		"norm of positions": {[]int{3, 3, 4}, []model.Layer{op("norm", model.LayerNorm), flat, dense("out", classes)}},
	} {
		t.Run(name, func(t *testing.T) { checkGradients(t, network(test.shape, test.layers...), 1, 0.5, 2, 1) })
	}
}

// Deterministic sums of a graph do not depend on threads.
func TestGraphIsDeterministic(t *testing.T) {
	m := network([]int{6, 6}, conv("a", 2), reading(conv("b", 2), model.Source), reading(op("sum", model.Add), "a", "b"), rectify, flat, dense("out", classes))
	b := floats(m.Input.Shape, 1, 1, 1, 1, 1, 1, 1)
	var want []float32
	for _, threads := range []int{1, 3} {
		r := build(t, m, engine.Options{Threads: threads, MicroBatch: 8, Seed: 3, Deterministic: true})
		sums, _ := step(t, r, stage(t, r, b))
		if want == nil {
			want = sums
		} else if !cmp.Equal(want, sums) {
			t.Errorf("%d threads have other sums", threads)
		}
	}
}

// Values of layers that are known by hand.
func TestKnownValues(t *testing.T) {
	for name, test := range map[string]struct {
		layers []model.Layer
		want   []float32
	}{
		"gelu":    {[]model.Layer{op("l", model.GELU)}, []float32{-0.15865525, 0, 1.9544997}},
		"tanh":    {[]model.Layer{op("l", model.Tanh)}, []float32{float32(math.Tanh(-1)), 0, float32(math.Tanh(2))}},
		"sigmoid": {[]model.Layer{op("l", model.Sigmoid)}, []float32{0.26894143, 0.5, 0.8807971}},
		"sum":     {[]model.Layer{reading(op("l", model.Add), model.Source, model.Source)}, []float32{-2, 0, 4}},
	} {
		r := build(t, network([]int{3}, append(test.layers, dense("out", classes))...), engine.Options{Threads: 1, MicroBatch: 1})
		identity(t, r, 0)
		got := predict(t, r, rows(3, -1, 0, 2))
		for i, v := range got {
			if math.Abs(float64(v-test.want[i])) > 1e-6 {
				t.Errorf("%s: %v, want %v", name, got, test.want)
				break
			}
		}
	}
}
