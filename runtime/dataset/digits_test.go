package dataset_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

func inspect(t testing.TB, train, test int64, seed uint64) dataset.Manifest {
	t.Helper()
	m, err := dataset.Inspect(context.Background(), spec.Origin{Format: "synthetic-digits", Train: train, Test: test, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The same digits on every machine, at any number of processors: who changes
// the drawing changes people's plans, and this hash.
func TestDigitsArePinned(t *testing.T) {
	const want = "sha256:354bc480c8db8cd4e112f0bf011d282ecf13238802b644abbb2fd3cfe54661ef"
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(processors)
		if m := inspect(t, 500, 100, 42); m.Hash != want {
			t.Errorf("%d processors: hash %s, want %s", processors, m.Hash, want)
		}
	}
	if m := inspect(t, 100, 100, 42); m.Train.Hash == m.Test.Hash {
		t.Error("training and test digits are the same")
	}
}

// source prepares digits and reads batches of them.
type source struct{ dataset.Source }

func (s source) batch(t testing.TB, r engine.Replica, records []int64) engine.Staged {
	t.Helper()
	f, l := make([]byte, len(records)*s.Info().FeatureBytes()), make([]byte, len(records)*4)
	if err := s.Read(context.Background(), records, f, l); err != nil {
		t.Fatal(err)
	}
	b := &engine.Batch{Records: records, Weights: make([]float32, len(records))}
	for i := range b.Weights {
		b.Weights[i] = 1
	}
	b.Inputs = []engine.Input{{Type: s.Info().Type, Data: f}, {Type: model.I32, Data: l}}
	staged, err := r.Stage(context.Background(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return staged
}

// heldOut trains a model of the zoo and returns its accuracy on the test
// digits.
func heldOut(t testing.TB, dir, name string, epochs int, recipe optimizer.Recipe) float64 {
	t.Helper()
	const batch = 64
	var splits [2]source
	for i, split := range []dataset.Split{dataset.Train, dataset.Test} {
		s, err := dataset.Open(dir, split)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		splits[i] = source{Source: s}
	}
	train, test := splits[0], splits[1]
	info := train.Info()
	m, err := zoo.Model(name, model.Data{Input: model.Features{Type: info.Type, Shape: info.Shape}, Classes: info.Classes})
	if err != nil {
		t.Fatal(err)
	}
	r, err := cpu.New().Build(m, engine.Options{MicroBatch: batch, Deterministic: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	vars, _ := r.Layout()
	vector := make([]float32, model.Length(vars))
	slots, sums := [][]float32{make([]float32, len(vector))}, make([]float32, len(vector))
	if err := r.Get(0, 0, vector); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	records := make([]int64, train.Info().Records)
	for i := range records {
		records[i] = int64(i)
	}
	for range epochs {
		random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		for i := 0; i+batch <= len(records); i += batch {
			staged := train.batch(t, r, records[i:i+batch])
			res, err := r.Step(context.Background(), staged, engine.Pass{
				First: true, Last: true,
				Ready: func(offset int, span []float32) { copy(sums[offset:], span) },
			})
			staged.Release()
			if err != nil || !res.Finite {
				t.Fatal(res, err)
			}
			optimizer.Update(vector, slots, sums, res.Weight, vars, recipe)
			if err := r.Put(0, 0, vector); err != nil {
				t.Fatal(err)
			}
		}
	}
	return evaluate(t, r, test)
}

// evaluate returns the accuracy over a whole split.
func evaluate(t testing.TB, r engine.Replica, test source) float64 {
	t.Helper()
	const batch = 64
	var result engine.Result
	for i := int64(0); i < test.Info().Records; i += batch {
		var numbers []int64
		for n := i; n < min(i+batch, test.Info().Records); n++ {
			numbers = append(numbers, n)
		}
		staged := test.batch(t, r, numbers)
		var err error
		result, err = r.Evaluate(context.Background(), staged, engine.Pass{First: i == 0, Last: i+batch >= test.Info().Records}, nil)
		staged.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	return result.Metrics[0] / result.Weight
}

// The digits are a task: a linear classifier stays well below nine in ten, a
// small network does not.
func TestDigitsAreNoGiveaway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "digits")
	if _, err := dataset.Prepare(context.Background(), spec.Origin{Format: "synthetic-digits", Train: 20_000, Test: 2_000, Seed: 1}, dir, nil); err != nil {
		t.Fatal(err)
	}
	recipe := optimizer.Recipe{LearningRate: 0.05, Momentum: 0.9}
	if a := heldOut(t, dir, "softmax", 2, recipe); a >= 0.90 || a < 0.5 {
		t.Errorf("softmax reaches %.4f, want it to learn, but to stay below 0.90", a)
	}
	if testing.Short() || underRace {
		t.Skip("the network's part takes a few seconds, and minutes under the race detector")
	}
	if a := heldOut(t, dir, "mlp", 6, recipe); a < 0.96 {
		t.Errorf("mlp reaches %.4f, want at least 0.96", a)
	}
}

func BenchmarkDigits(b *testing.B) {
	for b.Loop() {
		inspect(b, 10_000, 1, 1)
	}
	b.ReportMetric(10_000*float64(b.N)/b.Elapsed().Seconds(), "images/s")
}
