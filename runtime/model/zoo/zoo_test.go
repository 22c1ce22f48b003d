package zoo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
)

var (
	digits = model.Data{Input: model.Features{Type: model.U8, Shape: []int{28, 28}}, Classes: 10}
	rows   = model.Data{Input: model.Features{Type: model.F32, Shape: []int{4}}, Classes: 3}
	text   = model.Data{Input: sequence, Classes: 256, Target: sequence}
	points = model.Data{Input: rows.Input, Target: model.Features{Type: model.F32, Shape: []int{2}}}

	sequence = model.Features{Type: model.U8, Shape: []int{64}}
)

func TestModels(t *testing.T) {
	// Numbers of parameters as they are known from elsewhere; moments apart.
	want := map[string]int{
		"softmax": 7850, "mlp": 101_770, "mnist-cnn": 320 + 18_496 + 128 + 92_170,
		"cifar-cnn": 1_250_858, "resnet20": 272_474, "resnet18": 11_173_962, "linear": 10, "transformer": 867_328,
	}
	if len(want) != len(zoo.Names()) || !slices.IsSorted(zoo.Names()) {
		t.Errorf("names %v", zoo.Names())
	}
	for _, name := range zoo.Names() {
		d := digits
		switch {
		case name == "cifar-cnn" || strings.HasPrefix(name, "resnet"):
			d.Input.Shape = []int{32, 32, 3}
		case name == "linear":
			d = points
		case name == "transformer":
			d = text
		}
		m, err := zoo.Model(name, d)
		if err != nil {
			t.Fatal(err)
		}
		vars, _, err := m.Layout()
		if err != nil {
			t.Fatal(err)
		}
		trained := 0
		for _, v := range vars {
			if v.Kind == model.Trained {
				trained += v.Len
			}
		}
		if trained != want[name] {
			t.Errorf("%s has %d parameters, want %d", name, trained, want[name])
		}
	}
	if m, err := zoo.Model("mlp", rows, 64, 32); err != nil || len(m.Layers) != 5 {
		t.Errorf("mlp of rows: %+v, %v", m, err)
	}
	if m, err := zoo.Model("mlp", points); err != nil || m.Loss != model.MeanSquaredError || m.Layers[2].Units != 2 {
		t.Errorf("mlp for numbers: %+v, %v", m, err)
	}
}

func TestModelRefusals(t *testing.T) {
	none := model.Data{Input: digits.Input}
	for want, call := range map[string]func() (*model.Model, error){
		`did you mean "mnist-cnn"`:     func() (*model.Model, error) { return zoo.Model("MNIST_cnn", digits) },
		`did you mean "mlp"`:           func() (*model.Model, error) { return zoo.Model("mpl", digits) },
		`want one of cifar-cnn, `:      func() (*model.Model, error) { return zoo.Model("diffusion", digits) },
		`needs height`:                 func() (*model.Model, error) { return zoo.Model("mnist-cnn", rows) },
		`no hidden layers`:             func() (*model.Model, error) { return zoo.Model("softmax", digits, 5) },
		`dimension -5`:                 func() (*model.Model, error) { return zoo.Model("mlp", digits, -5) },
		`classes`:                      func() (*model.Model, error) { return zoo.Model("mlp", none) },
		`for classes choose "softmax"`: func() (*model.Model, error) { return zoo.Model("linear", digits) },
		`for numbers choose "linear"`:  func() (*model.Model, error) { return zoo.Model("softmax", points) },
		`the shape [28 28], its`:       func() (*model.Model, error) { return zoo.Model("transformer", digits) },
		`"transformer" is for sequenc`: func() (*model.Model, error) { return zoo.Model("transformer", points) },
		`the target has 64 positions`:  func() (*model.Model, error) { return zoo.Model("softmax", text) },
	} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A change of these means that every experiment of the model is another one:
// it must be meant.
func TestLayersOfTheModels(t *testing.T) {
	for name, want := range map[string]string{
		"cifar-cnn":   "sha256:e999441ad9778e45bff415355cea0fd0697d7c3d9b387834fabc69924a556516",
		"resnet18":    "sha256:b6fcd8ffdb6b028e8f72eab81739253feceb8d18787fe29ba8a63fc34e692464",
		"resnet20":    "sha256:bcd86b481cecfea158ca7550e6c9fc78ba8632db60cb9c9a1779abeeba2e8a11",
		"mlp":         "sha256:907e3fc8a9967bf473bddbdbfc49ea74bcda2c3a7ed5e2df9b0dc29c175170c3",
		"mnist-cnn":   "sha256:78ac67f4b2921285ac12afdf4c84e930319ee6a33fd7fa5dec6e94ce265cd0cf",
		"linear":      "sha256:a06d6267296cf39e5a4b64b8ece8834d5cc05ba829f6cff781028abc71654796",
		"softmax":     "sha256:eb26e399c78f27f0d8050a5e2e3d20f2f78b7710f584a62aa8be81897d25400d",
		"transformer": "sha256:44ae70ad0f29fc6750eb596f8a7f9968b030139a7950a7aaeb3868bd3808e5cc",
	} {
		if got, err := zoo.Layers(name); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	if _, err := zoo.Layers("none"); err == nil {
		t.Error("an unknown model has layers")
	}
}
