package zoo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/stokehq/stoke/runtime/model"
)

// Names lists the models, sorted.
func Names() []string {
	return []string{"cifar-cnn", "mlp", "mnist-cnn", "resnet18", "resnet20", "softmax"}
}

// Model makes the named model for records of the given features and number of
// classes. hidden is the widths of "mlp"'s hidden layers (default 128); the
// other models take none.
func Model(name string, in model.Features, classes int, hidden ...int) (*model.Model, error) {
	m := &model.Model{
		Name:    name,
		Input:   in,
		Classes: classes,
		Loss:    model.SoftmaxCrossEntropy,
		Metrics: []string{model.Accuracy},
	}
	m.Input.Shape = slices.Clone(in.Shape)
	if len(hidden) > 0 && name != "mlp" && slices.Contains(Names(), name) {
		return nil, fmt.Errorf("model %q has no hidden layers to size: only \"mlp\" has", name)
	}
	switch name {
	case "softmax":
		m.Layers = flat(in, dense("output", classes))
	case "mlp":
		m.Layers = flat(in, perceptron(hidden, classes)...)
	case "mnist-cnn":
		m.Layers = convolutional(classes)
	case "cifar-cnn":
		m.Layers = deepConvolutional(classes)
	case "resnet20":
		m.Layers = residual([]int{16, 32, 64}, 3, classes)
	case "resnet18":
		m.Layers = residual([]int{64, 128, 256, 512}, 2, classes)
	default:
		return nil, unknown(name)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// Layers is a hash that changes when the named model's layers do: they are
// made for pictures and for plain rows, of any number of classes.
func Layers(name string) (string, error) {
	h := sha256.New()
	for _, shape := range [][]int{{28, 28}, {4}} {
		if len(shape) == 1 && name != "softmax" && name != "mlp" {
			continue // it takes only pictures
		}
		m, err := Model(name, model.Features{Type: model.U8, Shape: shape}, 10)
		if err != nil {
			return "", err
		}
		if err := json.NewEncoder(h).Encode(m); err != nil {
			return "", err
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func dense(name string, units int) model.Layer {
	return model.Layer{Name: name, Op: model.Dense, Units: units}
}

// flat puts a flatten before the layers unless records are rows already.
func flat(in model.Features, layers ...model.Layer) []model.Layer {
	if len(in.Shape) == 1 {
		return layers
	}
	return append([]model.Layer{{Name: "flatten", Op: model.Flatten}}, layers...)
}

func perceptron(hidden []int, classes int) []model.Layer {
	if len(hidden) == 0 {
		hidden = []int{128}
	}
	var layers []model.Layer
	for i, units := range hidden {
		n := fmt.Sprint(i + 1)
		layers = append(layers, dense("hidden"+n, units), model.Layer{Name: "relu" + n, Op: model.ReLU})
	}
	return append(layers, dense("output", classes))
}

// convolutional is the MNIST network of ElasticDL's model zoo.
func convolutional(classes int) []model.Layer {
	return []model.Layer{
		{Name: "conv1", Op: model.Conv2D, Filters: 32, Kernel: 3},
		{Name: "relu1", Op: model.ReLU},
		{Name: "conv2", Op: model.Conv2D, Filters: 64, Kernel: 3},
		{Name: "relu2", Op: model.ReLU},
		{Name: "norm", Op: model.BatchNorm},
		{Name: "pool", Op: model.MaxPool, Kernel: 2},
		{Name: "dropout", Op: model.Dropout, Rate: 0.25},
		{Name: "flatten", Op: model.Flatten},
		dense("output", classes),
	}
}

func unknown(name string) error {
	best, distance := "", 4
	for _, n := range Names() {
		if d := levenshtein.Distance(strings.ToLower(name), n, nil); d < distance {
			best, distance = n, d
		}
	}
	if best != "" {
		return fmt.Errorf("unknown model %q: did you mean %q?", name, best)
	}
	return fmt.Errorf("unknown model %q: want one of %s", name, strings.Join(Names(), ", "))
}
