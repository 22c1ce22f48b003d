//go:build e2e

package workload_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

const (
	curveBatch   = 64
	curveUpdates = 300
	curveSeed    = 11
)

// curve is a training whose losses are compared: the same initial values and records for
// stoke and PyTorch, without dropout.
type curve struct {
	model   *model.Model
	vector  []float32
	records []byte // of all updates, in their order
	labels  []byte
}

// The first losses of a training are PyTorch's, and so is what follows, as far as
// PyTorch agrees with itself on another number of threads.
func TestLearningCurves(t *testing.T) {
	data := os.Getenv("STOKE_TEST_DATA")
	if data == "" {
		t.Skip("STOKE_TEST_DATA names no folder with mnist and cifar10")
	}
	python := programtest.Torch(t)
	for _, tt := range []struct {
		model  string
		from   spec.Origin
		stable float64 // rate at which the rounding of an update does not decide about the next one
		rate   float64
	}{
		{"mnist-cnn", spec.Origin{Format: spec.FormatIDX, Path: filepath.Join(data, "mnist")}, 1e-3, 0.01},
		{"resnet20", spec.Origin{Format: spec.FormatImages, Path: filepath.Join(data, "cifar10")}, 1e-3, 0.01},
	} {
		t.Run(tt.model, func(t *testing.T) {
			tt.from.Train, tt.from.Test = curveBatch*curveUpdates, 1
			c := newCurve(t, tt.model, tt.from)
			ours, theirs := c.train(t, 20, tt.stable), c.trainWithPyTorch(t, python, 20, tt.stable, 1)
			for i := range ours {
				if difference := math.Abs(ours[i]-theirs[i]) / theirs[i]; difference > 1e-4 {
					t.Errorf("loss %d is %v, PyTorch's %v: apart by %.2g", i, ours[i], theirs[i], difference)
				}
			}
			ours, theirs = c.train(t, curveUpdates, tt.rate), c.trainWithPyTorch(t, python, curveUpdates, tt.rate, 1)
			spread := c.trainWithPyTorch(t, python, curveUpdates, tt.rate, 2)
			for at := 0; at < curveUpdates; at += 50 {
				a, b, other := mean(ours[at:at+50]), mean(theirs[at:at+50]), mean(spread[at:at+50])
				allowed := max(0.02*b, 0.01, math.Abs(b-other))
				t.Logf("updates %d to %d: mean loss %.5f, PyTorch's %.5f and %.5f", at, at+50, a, b, other)
				if math.Abs(a-b) > allowed {
					t.Errorf("updates %d to %d: mean loss %v, PyTorch's %v: want at most %v between them", at, at+50, a, b, allowed)
				}
			}
		})
	}
}

func mean(losses []float64) float64 {
	sum := 0.0
	for _, v := range losses {
		sum += v
	}
	return sum / float64(len(losses))
}

func newCurve(t *testing.T, name string, from spec.Origin) *curve {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := dataset.Prepare(t.Context(), from, dir, nil); err != nil {
		t.Fatal(err)
	}
	source, err := dataset.Open(dir, dataset.Train)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	info := source.Info()
	c := new(curve)
	if c.model, err = zoo.Model(name, model.Data{Input: model.Features{Type: info.Type, Shape: info.Shape}, Classes: info.Classes}); err != nil {
		t.Fatal(err)
	}
	c.model.Layers = slices.DeleteFunc(c.model.Layers, func(l model.Layer) bool { return l.Op == model.Dropout })
	order := ledger.NewOrder(curveSeed, 0, info.Records, 0)
	numbers := make([]int64, curveBatch*curveUpdates)
	for i := range numbers {
		numbers[i] = order.RecordAt(int64(i))
	}
	c.records, c.labels = make([]byte, len(numbers)*info.FeatureBytes()), make([]byte, 4*len(numbers))
	if err := source.Read(t.Context(), numbers, c.records, c.labels); err != nil {
		t.Fatal(err)
	}
	vars, _, err := c.model.Layout()
	if err != nil {
		t.Fatal(err)
	}
	c.vector = make([]float32, model.Length(vars))
	if err := c.model.Init(curveSeed, c.vector); err != nil {
		t.Fatal(err)
	}
	return c
}

// train returns the losses of the engine with plain SGD.
func (c *curve) train(t *testing.T, updates int, rate float64) (losses []float64) {
	t.Helper()
	r, err := cpu.New().Build(c.model, engine.Options{MicroBatch: curveBatch, Threads: 1, Seed: curveSeed})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sums := make([]float32, len(c.vector))
	keep := func(offset int, s []float32) { copy(sums[offset:], s) }
	recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: float32(rate)}
	size := len(c.records) / curveUpdates
	for i := range updates {
		batch := &engine.Batch{
			Inputs: []engine.Input{
				{Type: c.model.Input.Type, Shape: append([]int{curveBatch}, c.model.Input.Shape...), Data: c.records[i*size : (i+1)*size]},
				{Type: model.I32, Shape: []int{curveBatch}, Data: c.labels[4*i*curveBatch : 4*(i+1)*curveBatch]},
			},
			Records: make([]int64, curveBatch), Weights: slices.Repeat([]float32{1}, curveBatch),
		}
		staged, err := r.Stage(t.Context(), batch, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Step(t.Context(), staged, engine.Pass{First: true, Last: true, Ready: keep})
		if err == nil {
			err = r.(engine.Updater).Update(sums, got.Weight, recipe)
		}
		staged.Release()
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, got.Loss/got.Weight)
	}
	return losses
}

// trainWithPyTorch returns the losses of PyTorch.
func (c *curve) trainWithPyTorch(t *testing.T, python string, updates int, rate float64, threads int) (losses []float64) {
	t.Helper()
	var vector bytes.Buffer
	if err := binary.Write(&vector, binary.LittleEndian, c.vector); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{"testdata/curves.py", c.model.Name}
	for file, content := range map[string][]byte{"vector": vector.Bytes(), "records": c.records, "labels": c.labels} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"vector", "records", "labels"} {
		args = append(args, filepath.Join(dir, file))
	}
	cmd := exec.CommandContext(t.Context(), python, append(args, fmt.Sprint(updates), fmt.Sprint(rate), fmt.Sprint(threads))...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &losses)
	}
	if err != nil || len(losses) != updates {
		t.Fatalf("%d losses, %v", len(losses), err)
	}
	return losses
}
