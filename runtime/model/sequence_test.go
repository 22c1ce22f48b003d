package model

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// sentence is a network for sequences of 6 ids with every operation for them.
func sentence() *Model {
	return &Model{
		Name: "sentence", Classes: 9, Loss: SoftmaxCrossEntropy, Metrics: []string{Accuracy, Top5Accuracy, Perplexity}, LabelSmoothing: 0.1,
		Input: Features{Type: U8, Shape: []int{6}}, Target: Features{Type: I32, Shape: []int{6}},
		Layers: []Layer{
			{Name: "embed", Op: Embedding, Vocabulary: 9, Units: 4},
			{Name: "place", Op: Position},
			{Name: "query", Op: Dense, Units: 4},
			{Name: "mix", Op: Attention, Inputs: []string{"query", "place", "place"}, Heads: 2, Causal: true},
			{Name: "match", Op: MatMul, Inputs: []string{"mix", "place"}, Transpose: true},
			{Name: "back", Op: MatMul, Inputs: []string{"match", "mix"}},
			{Name: "out", Op: Dense, Units: 9},
		},
	}
}

func TestSequence(t *testing.T) {
	m := sentence()
	shapes, err := m.Shapes()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int{{6, 4}, {6, 4}, {6, 4}, {6, 4}, {6, 6}, {6, 4}, {6, 9}} {
		if !slices.Equal(shapes[i], want) {
			t.Errorf("layer %d gives %v, want %v", i+1, shapes[i], want)
		}
	}
	vars, _, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	var names, decays []string
	for _, v := range vars {
		names = append(names, v.Name)
		if v.Decay {
			decays = append(decays, v.Name)
		}
	}
	if want := "embed/weight place/weight query/weight query/bias out/weight out/bias"; strings.Join(names, " ") != want {
		t.Errorf("variables %v", names)
	}
	if want := "embed/weight query/weight out/weight"; strings.Join(decays, " ") != want {
		t.Errorf("decay of %v", decays)
	}
	if !slices.Equal(vars[0].Shape, []int{9, 4}) || !slices.Equal(vars[1].Shape, []int{6, 4}) || !slices.Equal(vars[2].Shape, []int{4, 4}) {
		t.Errorf("shapes %v, %v, %v", vars[0].Shape, vars[1].Shape, vars[2].Shape)
	}
	if of, n := m.Answer(); of != I32 || n != 6 || m.InputFactor() != 1 || m.Vocabulary() != 9 {
		t.Errorf("answers of %d %s, factor %v, vocabulary %d", n, of, m.InputFactor(), m.Vocabulary())
	}
	if of, n := residual().Answer(); of != I32 || n != 1 || residual().InputFactor() != 1.0/255 {
		t.Errorf("answers of %d %s, factor %v", n, of, residual().InputFactor())
	}
	text, err := json.Marshal(residual())
	if err != nil || strings.Contains(string(text), "target") || strings.Contains(string(text), "smoothing") {
		t.Errorf("a model of before is written as %s, %v", text, err)
	}
}

// Each broken model of sequences is one error that names the layer.
func TestBrokenSequences(t *testing.T) {
	for want, spoil := range map[string]func(m *Model){
		`layer 1 (embedding "embed"): vocabulary 0`:                                          func(m *Model) { m.Layers[0].Vocabulary = 0 },
		`layer 1 (embedding "embed"): output [6 0]`:                                          func(m *Model) { m.Layers[0].Units = 0 },
		`layer 1 (embedding "embed"): has no heads: it has vocabulary`:                       func(m *Model) { m.Layers[0].Heads = 2 },
		`layer 1 (embedding "embed"): needs ids of the shape [positions]`:                    func(m *Model) { m.Input.Shape = []int{6, 2} },
		`layer 3 (embedding "query"): needs ids`:                                             func(m *Model) { m.Layers[2].Op = Embedding },
		`its input is of f32, but an embedding reads ids`:                                    func(m *Model) { m.Input.Type = F32 },
		`its input has a scale, but an embedding reads ids`:                                  func(m *Model) { m.Input.Scale = 2 },
		`layer 2 (position "place"): has no units: it has only inputs`:                       func(m *Model) { m.Layers[1].Units = 4 },
		`layer 3 (dense "query"): has no vocabulary: it has units`:                           func(m *Model) { m.Layers[2].Vocabulary = 9 },
		`layer 4 (attention "mix"): heads 0: want a divisor of the width`:                    func(m *Model) { m.Layers[3].Heads = 0 },
		`layer 4 (attention "mix"): heads 3: want a divisor of the width`:                    func(m *Model) { m.Layers[3].Heads = 3 },
		`layer 4 (attention "mix"): has no transpose: it has heads`:                          func(m *Model) { m.Layers[3].Transpose = true },
		`layer 4 (attention "mix"): has 2 inputs: give inputs with three`:                    func(m *Model) { m.Layers[3].Inputs = []string{"query", "place"} },
		`layer 4 (attention "mix"): its inputs 2 and 1 have the shapes`:                      func(m *Model) { m.Layers[2].Units = 6 },
		`layer 5 (matmul "match"): its inputs of the shapes [6 4] and [6 4] have no product`: func(m *Model) { m.Layers[4].Transpose = false },
		`layer 5 (matmul "match"): has 3 inputs`:                                             func(m *Model) { m.Layers[4].Inputs = []string{"mix", "mix", "mix"} },
		`layer 5 (matmul "match"): has no causal: it has transpose`:                          func(m *Model) { m.Layers[4].Causal = true },
		`weights of 12000 × 12000 positions and 2 heads: more than`: func(m *Model) {
			m.Input.Shape[0], m.Target.Shape[0] = 12000, 12000
		},
		`layer 2 (position "place"): needs sequences of the shape [positions, width], got shape [6]`: func(m *Model) {
			m.Layers = []Layer{{Name: "raw", Op: Tanh}, m.Layers[1]}
		},
		`layer 5 (add "match"): reads the model's input, whose values are ids`: func(m *Model) {
			m.Layers[4] = Layer{Name: "match", Op: Add, Inputs: []string{Source, Source}}
			m.Layers = append(m.Layers[:5], Layer{Name: "flat", Op: Flatten, Inputs: []string{"mix"}}, Layer{Name: "out", Op: Concat, Inputs: []string{"flat", "match"}})
		},
		`layer 3 (embedding "out"): reads layer "flat": an embedding reads the model's input, "input"`: func(m *Model) {
			m.Layers = []Layer{m.Layers[0], {Name: "flat", Op: Flatten}, {Name: "out", Op: Embedding, Vocabulary: 9, Units: 9}}
		},
		`the last layer gives [6 8] values per record, but the target has 6 positions of 9 classes: want [6 9]`: func(m *Model) { m.Layers[6].Units = 8 },
		`the last layer gives [6 9] values per record, but the target has 5 positions of 9 classes`:             func(m *Model) { m.Target.Shape = []int{5} },
		`the last layer gives [6 9] values per record, but there are 9 classes`:                                 func(m *Model) { m.Target = Features{} },
		`its target is of f32: classes are u8 or i32`:                                                           func(m *Model) { m.Target.Type = F32 },
		`its target is of i64`:                               func(m *Model) { m.Target.Type = I64 },
		`its target has the shape []: want one dimension`:    func(m *Model) { m.Target.Shape = nil },
		`its target has the shape [6 1]: want one dimension`: func(m *Model) { m.Target.Shape = []int{6, 1} },
		`target shape [0]: dimension 0`:                      func(m *Model) { m.Target.Shape = []int{0} },
		`its target has a scale`:                             func(m *Model) { m.Target.Scale = 1 },
		`label smoothing 1: want at least 0 and below 1`:     func(m *Model) { m.LabelSmoothing = 1 },
		`label smoothing NaN`:                                func(m *Model) { m.LabelSmoothing = float32(math.NaN()) },
		`unknown metric "mean_absolute_error": with loss softmax_cross_entropy want one of accuracy, perplexity, top5_accuracy`: func(m *Model) {
			m.Metrics = []string{MeanAbsoluteError}
		},
		`unknown loss "hinge": want one of mean_squared_error, softmax_cross_entropy`: func(m *Model) { m.Loss = "hinge" },
		`loss mean_squared_error is for numbers: want 0 classes and a target of f32`: func(m *Model) {
			m.Loss, m.LabelSmoothing, m.Metrics = MeanSquaredError, 0, nil
		},
	} {
		m := sentence()
		spoil(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	numbers := func() *Model {
		return &Model{
			Name: "numbers", Loss: MeanSquaredError, Metrics: []string{MeanAbsoluteError}, Input: Features{Type: F32, Shape: []int{5}},
			Target: Features{Type: F32, Shape: []int{2}}, Layers: []Layer{{Name: "out", Op: Dense, Units: 2}},
		}
	}
	m := numbers()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if of, n := m.Answer(); of != F32 || n != 2 {
		t.Errorf("answers of %d %s", n, of)
	}
	for want, spoil := range map[string]func(m *Model){
		`the last layer gives [3] values per record, but the target has 2 numbers`: func(m *Model) { m.Layers[0].Units = 3 },
		`got 3 classes`:                  func(m *Model) { m.Classes = 3 },
		`a target of i32 with shape [2]`: func(m *Model) { m.Target.Type = I32 },
		`a target of u8 with shape []`:   func(m *Model) { m.Target = Features{} },
		`unknown metric "perplexity"`:    func(m *Model) { m.Metrics = []string{Perplexity} },
		`label smoothing 0.1`:            func(m *Model) { m.LabelSmoothing = 0.1 },
	} {
		m := numbers()
		spoil(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A convolution of groups has so many times fewer weights.
func TestGroups(t *testing.T) {
	grouped := func() *Model {
		m := residual()
		m.Layers[0].Filters, m.Layers[1].Filters, m.Layers[1].Groups = 6, 6, 3
		return m
	}
	vars, _, err := grouped().Layout()
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{3, 3, 2, 6}; !slices.Equal(vars[1].Shape, want) {
		t.Errorf("weights %v, want %v", vars[1].Shape, want)
	}
	for want, spoil := range map[string]func(m *Model){
		`layer 2 (conv2d "conv"): 4 groups: want a divisor of its 6 channels and its 6 filters`: func(m *Model) { m.Layers[1].Groups = 4 },
		`layer 2 (conv2d "conv"): -1 groups`:                                                    func(m *Model) { m.Layers[1].Groups = -1 },
		`want a divisor of its 6 channels and its 7`:                                            func(m *Model) { m.Layers[1].Filters = 7 },
		`layer 5 (relu "relu"): has no groups`:                                                  func(m *Model) { m.Layers[4].Groups = 2 },
	} {
		m := grouped()
		spoil(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestMetricValue(t *testing.T) {
	for name, want := range map[string]float64{Accuracy: 0.75, Top5Accuracy: 0.75, MeanAbsoluteError: 0.75, Perplexity: math.Exp(0.75)} {
		if got := MetricValue(name, 3, 4); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
