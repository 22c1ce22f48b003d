package zoo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/stokehq/stoke/runtime/model"
)

// Names lists the models, sorted.
func Names() []string {
	return []string{"cifar-cnn", "linear", "mlp", "mnist-cnn", "resnet18", "resnet20", "softmax", "transformer"}
}

// outputs is how many values the last layer gives, of a sequence at each position.
func outputs(d model.Data) int {
	if d.IsNumbers() {
		return d.Target.Shape[0]
	}
	return d.Classes
}

// Model makes the named model for the data. hidden is the widths of "mlp"'s hidden
// layers (default 128); the other models take none. Where the target is numbers, the loss
// is their mean squared error: "linear" is for numbers only, "softmax" and "transformer"
// for classes only, the others for both.
func Model(name string, d model.Data, hidden ...int) (*model.Model, error) {
	m := &model.Model{
		Name:    name,
		Input:   d.Input,
		Classes: d.Classes,
		Loss:    model.SoftmaxCrossEntropy,
		Metrics: []string{model.Accuracy},
		Target:  d.Target,
	}
	if d.IsNumbers() {
		m.Loss, m.Metrics = model.MeanSquaredError, []string{model.MeanAbsoluteError}
	}
	m.Input.Shape, m.Target.Shape = slices.Clone(d.Input.Shape), slices.Clone(d.Target.Shape)
	if len(hidden) > 0 && name != "mlp" && slices.Contains(Names(), name) {
		return nil, fmt.Errorf("model %q has no hidden layers to size: only \"mlp\" has", name)
	}
	if err := fits(name, d); err != nil {
		return nil, err
	}
	width := outputs(d)
	switch name {
	case "softmax", "linear":
		m.Layers = flat(d.Input, dense("output", width))
	case "mlp":
		m.Layers = flat(d.Input, perceptron(hidden, width)...)
	case "mnist-cnn":
		m.Layers = convolutional(width)
	case "cifar-cnn":
		m.Layers = deepConvolutional(width)
	case "resnet20":
		m.Layers = residual([]int{16, 32, 64}, 3, width)
	case "resnet18":
		m.Layers = residual([]int{64, 128, 256, 512}, 2, width)
	case "transformer":
		m.Layers, m.Metrics = transformer(d.Classes), []string{model.Accuracy, model.Perplexity}
	default:
		return nil, unknown(name)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// fits reports data that a model is not for.
func fits(name string, d model.Data) error {
	in, target := d.Input.Shape, d.Target.Shape
	switch {
	case name == "linear" && !d.IsNumbers():
		return errors.New("model \"linear\" is for numbers: for classes choose \"softmax\", of two classes a logistic regression")
	case name == "softmax" && d.IsNumbers():
		return errors.New("model \"softmax\" is for classes: for numbers choose \"linear\"")
	case name == "transformer" && (d.IsNumbers() || len(in) != 1 || !slices.Equal(target, in)):
		return fmt.Errorf("model %q is for sequences, with a class for each position: its input has the shape %v, its target %v",
			name, in, target)
	}
	return nil
}

// samples returns the data of the models that Layers hashes. The number of classes is any
// number: another one changes only the last layer.
func samples(name string) []model.Data {
	digits := model.Data{Input: model.Features{Type: model.U8, Shape: []int{28, 28}}, Classes: 10}
	rows := model.Data{Input: model.Features{Type: model.U8, Shape: []int{4}}, Classes: 10}
	number := model.Features{Type: model.F32, Shape: []int{1}}
	text := model.Features{Type: model.U8, Shape: []int{64}}
	switch name {
	case "softmax", "mlp":
		return []model.Data{digits, rows}
	case "linear":
		return []model.Data{{Input: digits.Input, Target: number}, {Input: rows.Input, Target: number}}
	case "transformer":
		return []model.Data{{Input: text, Classes: 256, Target: text}}
	}
	return []model.Data{digits} // it takes only pictures
}

// Layers is a hash that changes when the named model's layers do.
func Layers(name string) (string, error) {
	h := sha256.New()
	for _, d := range samples(name) {
		m, err := Model(name, d)
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
