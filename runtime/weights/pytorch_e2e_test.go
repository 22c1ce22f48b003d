//go:build e2e

package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/spec"
)

const batch = 6

// every is a network with what the zoo's do not have.
func every() *model.Model {
	return &model.Model{
		Name: "every", Input: model.Features{Type: model.F32, Shape: []int{11, 7, 2}, Scale: 0.5}, Classes: 5,
		Loss: model.SoftmaxCrossEntropy, Metrics: []string{model.Accuracy},
		Layers: []model.Layer{
			{Name: "same", Op: model.Conv2D, Filters: 4, Kernel: 4, Stride: 2, Padding: model.Same, Groups: 2},
			{Name: "gelu", Op: model.GELU},
			{Name: "a", Op: model.Conv2D, Filters: 3, Kernel: 3, Pad: 1, NoBias: true},
			{Name: "tanh", Op: model.Tanh},
			{Name: "b", Op: model.AvgPool, Kernel: 3, Stride: 1, Inputs: []string{"gelu"}},
			{Name: "c", Op: model.MaxPool, Kernel: 3, Stride: 1, Inputs: []string{"tanh"}},
			{Name: "side", Op: model.Concat, Inputs: []string{"c", "b"}},
			{Name: "norm", Op: model.LayerNorm},
			{Name: "flat", Op: model.Flatten},
			{Name: "dropped", Op: model.Dropout, Rate: 0.5},
			{Name: "left", Op: model.Dense, Units: 9},
			{Name: "right", Op: model.Dense, Units: 9, NoBias: true, Inputs: []string{"flat"}},
			{Name: "sigmoid", Op: model.Sigmoid, Inputs: []string{"left"}},
			{Name: "sum", Op: model.Add, Inputs: []string{"sigmoid", "right"}},
			{Name: "out", Op: model.Dense, Units: 5},
		},
	}
}

// PyTorch predicts with an exported model what the engine does, by the script of the
// examples.
func TestPyTorchPredictsTheSame(t *testing.T) {
	python := programtest.Torch(t)
	models := map[string]*model.Model{"every": every()}
	for _, name := range zoo.Names() {
		of := model.Data{Input: model.Features{Type: model.U8, Shape: []int{28, 28}}, Classes: 10}
		switch name {
		case "cifar-cnn", "resnet20", "resnet18":
			of.Input.Shape = []int{32, 32, 3}
		case "linear":
			of.Classes, of.Target = 0, model.Features{Type: model.F32, Shape: []int{3}}
		case "transformer":
			of.Input.Shape = []int{16}
			of.Classes, of.Target = 256, of.Input
		}
		var err error
		if models[name], err = zoo.Model(name, of); err != nil {
			t.Fatal(err)
		}
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			vars, _, err := m.Layout()
			if err != nil {
				t.Fatal(err)
			}
			v := random(t, r, m, vars)
			records := make([]byte, batch*m.Input.Type.Size()*lengthOf(m.Input.Shape))
			for i := range records {
				records[i] = byte(r.Uint32())
			}
			if m.Input.Type == model.F32 {
				for i := 0; i < len(records); i += 4 {
					binary.LittleEndian.PutUint32(records[i:], math.Float32bits(float32(r.NormFloat64())))
				}
			}
			f := folder(t)
			save(t, f, spec.FinalName(1), 1, m, vars, v)
			dir := t.TempDir()
			exported, data := filepath.Join(dir, "m.safetensors"), filepath.Join(dir, "records")
			var out bytes.Buffer
			_, err = Export(t.Context(), f, Latest, &out)
			if err = errors.Join(err, os.WriteFile(exported, out.Bytes(), 0o600), os.WriteFile(data, records, 0o600)); err != nil {
				t.Fatal(err)
			}
			compare(t, predict(t, python, exported, data), evaluate(t, m, v, records))
		})
	}
}

// random returns values of the size that training gives them.
func random(t *testing.T, r *rand.Rand, m *model.Model, vars []model.Var) []float32 {
	t.Helper()
	v := make([]float32, model.Length(vars))
	if err := m.Init(7, v); err != nil {
		t.Fatal(err)
	}
	for _, of := range vars {
		for i := range of.Len {
			x := &v[of.Offset+i]
			switch {
			case of.Kind == model.Moment:
				*x = 0.5*(*x) + float32(0.3*r.Float64())
			case of.Init.Distribution != model.Uniform:
				*x += float32(0.2 * r.NormFloat64())
			}
		}
	}
	return v
}

// predict returns the logits of the script.
func predict(t *testing.T, python, exported, data string) (all []float32) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("..", "..", "examples", "export", "predict.py"), exported, data)
	cmd.Env, cmd.Stderr = append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var logits any
		if err := lines.Decode(&logits); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = appendNumbers(all, logits)
	}
}

// appendNumbers appends the numbers of lists of any depth.
func appendNumbers(all []float32, v any) []float32 {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			all = appendNumbers(all, e)
		}
		return all
	}
	return append(all, float32(v.(float64)))
}

// evaluate returns the logits of the engine.
func evaluate(t *testing.T, m *model.Model, v []float32, records []byte) []float32 {
	t.Helper()
	replica, err := cpu.New().Build(m, engine.Options{Threads: 1, MicroBatch: batch})
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close()
	answer, size := m.Answer()
	targets := make([]byte, batch*size*answer.Size())
	b := &engine.Batch{Inputs: []engine.Input{{Type: m.Input.Type, Data: records}, {Type: answer, Data: targets}}}
	for i := range int64(batch) {
		b.Records, b.Weights = append(b.Records, i), append(b.Weights, 1)
	}
	if err := replica.Put(0, 0, v); err != nil {
		t.Fatal(err)
	}
	staged, err := replica.Stage(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Release()
	shapes, err := m.Shapes()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, batch*lengthOf(shapes[len(shapes)-1]))
	if _, err := replica.Evaluate(t.Context(), staged, engine.Pass{First: true, Last: true}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func compare(t *testing.T, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d logits, want %d", len(got), len(want))
	}
	largest, apart := 1.0, 0.0
	for i := range want {
		largest = max(largest, math.Abs(float64(want[i])))
		apart = max(apart, math.Abs(float64(want[i])-float64(got[i])))
	}
	t.Logf("%g apart, of at most %g", apart, largest)
	if apart > 1e-5*largest {
		t.Errorf("logits are %g apart, of at most %g:\n%v\n%v", apart, largest, got, want)
	}
}
