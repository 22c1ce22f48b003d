package xlatest

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

//go:embed float64.py
var torchProgram []byte

// Torch is a Python that has PyTorch.
type Torch struct{ python string }

// FindTorch returns the Python of a name, and an error where it has no PyTorch.
func FindTorch(ctx context.Context, python string) (*Torch, error) {
	out, err := exec.CommandContext(ctx, python, "-c", "import torch").CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return nil, fmt.Errorf("%s has no PyTorch: %w: %s", python, err, lines[len(lines)-1])
	}
	return &Torch{python}, nil
}

// Train trains a model from some parameters (of its whole layout) in float64, with an update by SGD
// for each batch, and returns the parameters. All batches have the same number of records, of weight
// 1. The folder gets the files of the computation. The model has no dropout.
func (t *Torch) Train(ctx context.Context, folder string, m *model.Model, start []float32, batches []*engine.Batch, rate float32) ([]float32, error) {
	if err := writeJob(folder, m, start, batches, rate); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, t.python, filepath.Join(folder, "float64.py"), folder).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("train %s by PyTorch: %w: %s", m.Name, err, out)
	}
	data, err := os.ReadFile(filepath.Join(folder, "values.f64"))
	if err != nil {
		return nil, err
	}
	if len(data) != 8*len(start) {
		return nil, fmt.Errorf("train %s by PyTorch: %d bytes of values, want %d", m.Name, len(data), 8*len(start))
	}
	values := make([]float32, len(start))
	for i := range values {
		values[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:])))
	}
	return values, nil
}

// torchVariable is a variable of model.json.
type torchVariable struct {
	Name     string  `json:"name"`
	Shape    []int   `json:"shape"`
	Offset   int     `json:"offset"`
	Length   int     `json:"length"`
	Momentum float32 `json:"momentum"` // 0: trained
}

// torchJob is model.json.
type torchJob struct {
	Layers    []model.Layer   `json:"layers"`
	Variables []torchVariable `json:"variables"`
	Loss      string          `json:"loss"`
	Smoothing float32         `json:"label_smoothing"`
	Features  model.DType     `json:"features"`
	Shape     []int           `json:"shape"` // of a record
	Factor    float64         `json:"factor"`
	Answers   model.DType     `json:"answers"`
	Batch     int             `json:"batch"`
	Rate      float64         `json:"rate"`
}

func writeJob(folder string, m *model.Model, start []float32, batches []*engine.Batch, rate float32) error {
	vars, _, err := m.Layout()
	if err != nil {
		return err
	}
	answer, _ := m.Answer()
	job := torchJob{
		Loss: m.Loss, Smoothing: m.LabelSmoothing, Features: m.Input.Type, Shape: m.InputShape(), Factor: float64(m.InputFactor()),
		Answers: answer, Batch: len(batches[0].Records), Rate: float64(rate),
	}
	for _, v := range vars {
		job.Variables = append(job.Variables, torchVariable{v.Name, v.Shape, v.Offset, v.Len, v.Momentum})
	}
	for _, l := range m.Layers {
		l.Epsilon = l.Eps()
		job.Layers = append(job.Layers, l)
	}
	text, err := json.Marshal(job)
	if err != nil {
		return err
	}
	var values, features, answers []byte
	for _, v := range start {
		values = binary.LittleEndian.AppendUint32(values, math.Float32bits(v))
	}
	for _, b := range batches {
		features = append(features, b.Inputs[0].Data...)
		answers = append(answers, b.Inputs[1].Data...)
	}
	for name, data := range map[string][]byte{
		"float64.py": torchProgram, "model.json": text, "start.f32": values, "features": features, "answers": answers,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
