package model

import (
	"slices"
	"strings"
	"testing"
)

// residual is a network with two ways to its sum.
func residual() *Model {
	return &Model{
		Name: "residual", Classes: 3, Loss: SoftmaxCrossEntropy, Metrics: []string{Accuracy}, Input: Features{Type: U8, Shape: []int{8, 8, 3}},
		Layers: []Layer{
			{Name: "stem", Op: Conv2D, Filters: 4, Kernel: 3, Pad: 1, NoBias: true},
			{Name: "conv", Op: Conv2D, Filters: 4, Kernel: 3, Pad: 1, NoBias: true},
			{Name: "norm", Op: BatchNorm},
			{Name: "sum", Op: Add, Inputs: []string{"norm", "stem"}},
			{Name: "relu", Op: ReLU},
			{Name: "mean", Op: GlobalAvg},
			{Name: "out", Op: Dense, Units: 3},
		},
	}
}

func TestGraph(t *testing.T) {
	m := residual()
	sources, err := m.Sources()
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 0}; !slices.Equal(sources[3], want) || !slices.Equal(sources[0], []int{-1}) {
		t.Errorf("sources %v", sources)
	}
	shapes, err := m.Shapes()
	if err != nil || !slices.Equal(shapes[3], []int{8, 8, 4}) || !slices.Equal(shapes[5], []int{4}) {
		t.Errorf("shapes %v, %v", shapes, err)
	}
	vars, _, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range vars {
		names = append(names, v.Name)
	}
	if want := "stem/weight conv/weight norm/gamma norm/beta out/weight out/bias norm/mean norm/variance"; strings.Join(names, " ") != want {
		t.Errorf("variables %v", names)
	}
	if he := (Init{Uniform, vars[1].Init.Limit}); vars[1].Init != he || vars[1].Init.Limit*vars[1].Init.Limit*36 < 5.99 {
		t.Errorf("a ReLU follows the sum, and the convolution begins with %+v", vars[1].Init)
	}
}

// Each broken graph is one error that names the layer.
func TestBrokenGraphs(t *testing.T) {
	for want, spoil := range map[string]func(m *Model){
		`layer 2 (conv2d "conv"): its input "sum" is a later layer`:                func(m *Model) { m.Layers[1].Inputs = []string{"sum"} },
		`layer 2 (conv2d "conv"): its input "conv" is a later layer`:               func(m *Model) { m.Layers[1].Inputs = []string{"conv"} },
		`layer 4 (add "sum"): its input "nrom" is not a layer`:                     func(m *Model) { m.Layers[3].Inputs[0] = "nrom" },
		`layer 4 (add "sum"): joins 1 input`:                                       func(m *Model) { m.Layers[3].Inputs = []string{"norm"} },
		`layer 4 (add "sum"): joins 0 input`:                                       func(m *Model) { m.Layers[3].Inputs = []string{} },
		`layer 5 (relu "relu"): has 2 inputs`:                                      func(m *Model) { m.Layers[4].Inputs = []string{"sum", "stem"} },
		`layer 4 (add "sum"): its inputs 2 and 1 have the shapes [8 8 3]`:          func(m *Model) { m.Layers[3].Inputs[1] = Source },
		`layer 3 (batch_norm "norm"): no later layer reads it`:                     func(m *Model) { m.Layers[3].Inputs = []string{"conv", "stem"} },
		`layer 5 (relu "relu"): has no units: it has only inputs`:                  func(m *Model) { m.Layers[4].Units = 3 },
		`layer 7 (dense "out"): has no kernel: it has units, no_bias`:              func(m *Model) { m.Layers[6].Kernel = 3 },
		`layer 3 (batch_norm "norm"): has no rate`:                                 func(m *Model) { m.Layers[2].Rate = 0.5 },
		`layer 1 (conv2d "input"): the model's input has the name`:                 func(m *Model) { m.Layers[0].Name = Source },
		`layer 1 (conv2d "stem"): pad 3`:                                           func(m *Model) { m.Layers[0].Pad = 3 },
		`layer 1 (conv2d "stem"): has pad and padding`:                             func(m *Model) { m.Layers[0].Padding = Same },
		`layer 6 (global_avg_pool "mean"): needs height, width and channels`:       func(m *Model) { m.Layers[4].Op = Flatten },
		`layer 5 (softmax "relu"): unknown operation "softmax": want one of add, `: func(m *Model) { m.Layers[4].Op = "softmax" },
		`layer 4 (concat "sum"): its inputs 2 and 1 have the shapes [4 4 4]`: func(m *Model) {
			m.Layers[3].Op, m.Layers[0].Stride, m.Layers[1].Inputs = Concat, 2, []string{Source}
		},
	} {
		m := residual()
		spoil(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
