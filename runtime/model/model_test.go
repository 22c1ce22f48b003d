package model

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is a valid network with every operation.
func small() *Model {
	return &Model{
		Name: "small", Classes: 3, Loss: SoftmaxCrossEntropy, Metrics: []string{Accuracy},
		Input: Features{Type: U8, Shape: []int{9, 8}},
		Layers: []Layer{
			{Name: "conv", Op: Conv2D, Filters: 4, Kernel: 3, Stride: 2, Padding: Same},
			{Name: "relu", Op: ReLU},
			{Name: "norm", Op: BatchNorm},
			{Name: "pool", Op: MaxPool, Kernel: 2},
			{Name: "drop", Op: Dropout, Rate: 0.5},
			{Name: "flat", Op: Flatten},
			{Name: "out", Op: Dense, Units: 3},
		},
	}
}

func TestLayout(t *testing.T) {
	shapes, err := small().Shapes()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{5, 4, 4}, {5, 4, 4}, {5, 4, 4}, {2, 2, 4}, {2, 2, 4}, {16}, {3}}, shapes); diff != "" {
		t.Error(diff)
	}
	vars, tables, err := small().Layout()
	if err != nil || len(tables) != 0 {
		t.Fatal(tables, err)
	}
	uniform := func(fans float64) Init { return Init{Uniform, math.Sqrt(6 / fans)} }
	ones := Init{Distribution: Ones}
	want := []Var{
		{Name: "conv/weight", Shape: []int{3, 3, 1, 4}, Offset: 0, Len: 36, Decay: true, Init: uniform(9)},
		{Name: "conv/bias", Shape: []int{4}, Offset: 36, Len: 4},
		{Name: "norm/gamma", Shape: []int{4}, Offset: 40, Len: 4, Init: ones},
		{Name: "norm/beta", Shape: []int{4}, Offset: 44, Len: 4},
		{Name: "out/weight", Shape: []int{16, 3}, Offset: 48, Len: 48, Decay: true, Init: uniform(19)},
		{Name: "out/bias", Shape: []int{3}, Offset: 96, Len: 3},
		{Name: "norm/mean", Shape: []int{4}, Offset: 99, Len: 4, Kind: Moment, Momentum: 0.9},
		{Name: "norm/variance", Shape: []int{4}, Offset: 103, Len: 4, Kind: Moment, Momentum: 0.9, Init: ones},
	}
	if diff := cmp.Diff(want, vars); diff != "" {
		t.Error(diff)
	}
	cut := Slice(vars, 38, 50)
	want = []Var{
		{Name: "conv/bias", Shape: []int{2}, Offset: 0, Len: 2},
		{Name: "norm/gamma", Shape: []int{4}, Offset: 2, Len: 4, Init: ones},
		{Name: "norm/beta", Shape: []int{4}, Offset: 6, Len: 4},
		{Name: "out/weight", Shape: []int{2}, Offset: 10, Len: 2, Decay: true, Init: uniform(19)},
	}
	if diff := cmp.Diff(want, cut); diff != "" {
		t.Error(diff)
	}
}

// A model survives its JSON, which is what is hashed.
func TestModelJSON(t *testing.T) {
	text, err := json.Marshal(small())
	if err != nil {
		t.Fatal(err)
	}
	var back Model
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(small(), &back); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"input":{"type":"u9"}}`), &back); err == nil {
		t.Error("read an unknown element type")
	}
}

func TestValidate(t *testing.T) {
	for want, spoil := range map[string]func(m *Model){
		`layer 1 (conv2d "conv"): kernel 0`:      func(m *Model) { m.Layers[0].Kernel = 0 },
		`window of 30`:                           func(m *Model) { m.Layers[0].Kernel, m.Layers[0].Padding = 30, Valid },
		`stride -1`:                              func(m *Model) { m.Layers[0].Stride = -1 },
		`padding "full"`:                         func(m *Model) { m.Layers[0].Padding = "full" },
		`dimension 0`:                            func(m *Model) { m.Layers[0].Filters = 0 },
		`(max_pool "pool"): padding "same"`:      func(m *Model) { m.Layers[3].Padding = Same },
		`momentum 1`:                             func(m *Model) { m.Layers[2].Momentum = 1 },
		`momentum NaN`:                           func(m *Model) { m.Layers[2].Momentum = float32(math.NaN()) },
		`epsilon -1`:                             func(m *Model) { m.Layers[2].Epsilon = -1 },
		`rate 1`:                                 func(m *Model) { m.Layers[4].Rate = 1 },
		`put a flatten before`:                   func(m *Model) { m.Layers = append(m.Layers[:5], m.Layers[6]) },
		`same name`:                              func(m *Model) { m.Layers[1].Name = "conv" },
		`no slash`:                               func(m *Model) { m.Layers[1].Name = "a/b" },
		`unknown operation "lstm"`:               func(m *Model) { m.Layers[1].Op = "lstm" },
		`gives [3] values per record, but there`: func(m *Model) { m.Classes = 4 },
		`1 classes`:                              func(m *Model) { m.Classes = 1 },
		`unknown loss`:                           func(m *Model) { m.Loss = "mse" },
		`unknown metric`:                         func(m *Model) { m.Metrics = []string{"f1"} },
		`input shape []`:                         func(m *Model) { m.Input.Shape = nil },
		`dimension -1`:                           func(m *Model) { m.Input.Shape = []int{-1, 8} },
		`more than`:                              func(m *Model) { m.Input.Shape = []int{1 << 20, 1 << 20} },
		`input type`:                             func(m *Model) { m.Input.Type = 9 },
		`input scale`:                            func(m *Model) { m.Input.Scale = float32(math.Inf(1)) },
		`0 layers`:                               func(m *Model) { m.Layers = nil },
		`needs height, width and channels`:       func(m *Model) { m.Input.Shape = []int{72} },
		`unfolded input`: func(m *Model) {
			m.Input.Shape, m.Layers[0].Kernel = []int{2000, 2000}, 100
		},
	} {
		m := small()
		spoil(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		if _, _, err := m.Layout(); err == nil {
			t.Errorf("%q: laid out", want)
		}
	}
	if err := small().Validate(); err != nil {
		t.Error(err)
	}
	big := &Model{
		Name: "big", Classes: 1 << 16, Loss: SoftmaxCrossEntropy, Input: Features{Type: F32, Shape: []int{1 << 20}},
		Layers: []Layer{{Name: "out", Op: Dense, Units: 1 << 16}},
	}
	if _, _, err := big.Layout(); err == nil || !strings.Contains(err.Error(), `"out/weight"`) {
		t.Errorf("2³⁶ parameters: %v", err)
	}
	none := &Model{Name: "none", Classes: 3, Loss: SoftmaxCrossEntropy, Input: Features{Type: F32, Shape: []int{3}}, Layers: []Layer{{Name: "relu", Op: ReLU}}}
	if _, _, err := none.Layout(); err == nil {
		t.Error("laid out a model without parameters")
	}
}

func TestInit(t *testing.T) {
	values := func(m *Model, seed uint64) map[string][]float32 {
		t.Helper()
		vars, _, err := m.Layout()
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float32, Length(vars))
		for i := range v {
			v[i] = 77
		}
		if err := m.Init(seed, v); err != nil {
			t.Fatal(err)
		}
		out := map[string][]float32{}
		for _, x := range vars {
			out[x.Name] = v[x.Offset : x.Offset+x.Len]
		}
		return out
	}
	a := values(small(), 1)
	for name, want := range map[string]float32{"conv/bias": 0, "out/bias": 0, "norm/beta": 0, "norm/mean": 0, "norm/gamma": 1, "norm/variance": 1} {
		for _, v := range a[name] {
			if v != want {
				t.Errorf("%s starts at %v, want %v", name, v, want)
			}
		}
	}
	for name, limit := range map[string]float64{"conv/weight": math.Sqrt(6.0 / 9), "out/weight": math.Sqrt(6.0 / 19)} {
		top, sum := 0.0, 0.0
		for _, v := range a[name] {
			top, sum = max(top, math.Abs(float64(v))), sum+float64(v)
		}
		if top > limit || top < 0.8*limit || math.Abs(sum/float64(len(a[name]))) > limit/3 {
			t.Errorf("%s: largest %v, want nearly %v; sum %v", name, top, limit, sum)
		}
	}
	// A function of seed and name only: other layers do not matter.
	other := small()
	other.Layers = append([]Layer{{Name: "before", Op: Conv2D, Filters: 1, Kernel: 1}}, other.Layers...)
	if !cmp.Equal(a["out/weight"], values(other, 1)["out/weight"]) {
		t.Error("values depend on other variables")
	}
	if cmp.Equal(a["out/weight"], values(small(), 2)["out/weight"]) {
		t.Error("values do not depend on the seed")
	}
	if err := small().Init(1, make([]float32, 5)); err == nil {
		t.Error("initialised a vector that is too short")
	}
}
