package cpu_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
)

// Only the last micro-batch of a pass reports, and what it reports is the
// whole pass's; for evaluations as for steps.
func TestOnlyTheLastOfAPassReports(t *testing.T) {
	r := build(t, everything(), engine.Options{Threads: 2, MicroBatch: 4, Seed: 1})
	jitter(t, r)
	batches := []engine.Staged{
		stage(t, r, floats([]int{8, 8}, 1, 1, 1, 1)), stage(t, r, floats([]int{8, 8}, 1, 1)), stage(t, r, floats([]int{8, 8}, 1, 1, 1)),
	}
	var want engine.Result
	for i, s := range batches {
		one, err := evaluate(r, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = one
			continue
		}
		want.Weight += one.Weight
		want.Loss += one.Loss
		want.Metrics[0] += one.Metrics[0]
	}
	for i, s := range batches {
		got, err := r.Evaluate(context.Background(), s, engine.Pass{First: i == 0, Last: i == 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		expected := engine.Result{}
		if i == 2 {
			expected = want
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("micro-batch %d: %s", i, diff)
		}
	}
	if _, result := step(t, r, batches...); result.Weight != want.Weight { // step checks the others
		t.Errorf("a pass over %v records reports %+v", want.Weight, result)
	}
}

// A pass is void after another one has begun, and after an error.
func TestPassesDoNotMix(t *testing.T) {
	r := build(t, everything(), engine.Options{Threads: 1, MicroBatch: 2, Seed: 1})
	s := stage(t, r, floats([]int{8, 8}, 1, 1))
	first := engine.Pass{First: true}
	last := engine.Pass{Last: true}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, interrupt := range map[string]func(){
		"an evaluation":        func() { evaluate(r, s, nil) },
		"a step that failed":   func() { r.Step(cancelled, s, engine.Pass{}) },
		"a batch of elsewhere": func() { r.Step(context.Background(), other{}, engine.Pass{}) },
	} {
		if _, err := r.Step(context.Background(), s, first); err != nil {
			t.Fatal(err)
		}
		interrupt()
		if _, err := r.Step(context.Background(), s, last); err == nil || !strings.Contains(err.Error(), "First") {
			t.Errorf("after %s a pass went on: %v", name, err)
		}
	}
}

type other struct{}

func (other) Release() {}

// A released batch gives its memory to the next one and cannot be used.
func TestRelease(t *testing.T) {
	r := build(t, everything(), engine.Options{Threads: 1, MicroBatch: 16})
	weights := slices.Repeat([]float32{1}, 16)
	b := floats([]int{8, 8}, weights...)
	s := stage(t, r, b)
	s.Release()
	s.Release()
	if _, err := evaluate(r, s, nil); err == nil || !strings.Contains(err.Error(), "released") {
		t.Errorf("a released batch was evaluated: %v", err)
	}
	a, c := stage(t, r, b), stage(t, r, b)
	one, err := evaluate(r, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := evaluate(r, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("two batches share the memory of a released one: %s", diff)
	}
	features := 16 * 8 * 8 * 4.0 // bytes
	bytes := testing.Benchmark(func(b *testing.B) {
		batch := floats([]int{8, 8}, weights...)
		b.ReportAllocs()
		for range b.N {
			stage(b, r, batch).Release()
		}
	}).AllocedBytesPerOp()
	if float64(bytes) > features/2 {
		t.Errorf("staging %v bytes of features allocates %d bytes though the last batch was released", features, bytes)
	}
}

// An Updater updates as a server does, slots included, and refuses without
// changing anything.
func TestUpdater(t *testing.T) {
	for _, recipe := range []optimizer.Recipe{
		{LearningRate: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 0.01, ClipNorm: 0.5},
		{Name: optimizer.Adam, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 1, WeightDecay: 0.01, ClipNorm: 0.5},
	} {
		t.Run("optimizer "+recipe.Name, func(t *testing.T) { testUpdater(t, recipe) })
	}
}

func testUpdater(t *testing.T, recipe optimizer.Recipe) {
	r := build(t, everything(), engine.Options{Threads: 1, MicroBatch: 2, Seed: 3})
	u, ok := r.(engine.Updater)
	if !ok {
		t.Fatal("the cpu engine's replica is no Updater")
	}
	vars, _ := r.Layout()
	vector, slots := values(t, r), make([][]float32, recipe.Slots())
	for i := range slots {
		slots[i] = make([]float32, model.Length(vars))
	}
	s := stage(t, r, floats([]int{8, 8}, 1, 1))
	for range 3 {
		sums, result := step(t, r, s)
		optimizer.Update(vector, slots, sums, result.Weight, vars, recipe)
		if err := u.Update(sums, result.Weight, recipe); err != nil {
			t.Fatal(err)
		}
	}
	same := func() {
		t.Helper()
		got := make([]float32, len(vector))
		if diff := cmp.Diff(vector, values(t, r)); diff != "" {
			t.Error("parameters:", diff)
		}
		for i, slot := range slots {
			if err := r.Get(1+i, 0, got); err != nil || !slices.Equal(got, slot) {
				t.Errorf("slot %d: %v, want %v (%v)", i, got, slot, err)
			}
		}
	}
	same()
	for name, err := range map[string]error{
		"a vector too short":   u.Update(vector[1:], 2, recipe),
		"a learning rate of 0": u.Update(vector, 2, optimizer.Recipe{}),
		"a weight below 0":     u.Update(vector, -1, recipe),
		"a third slot":         r.Put(3, 0, vector),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	same()
	before, _ := step(t, r, s)
	if err := r.Put(0, 0, vector); err != nil {
		t.Fatal(err)
	}
	if after, _ := step(t, r, s); !slices.Equal(before, after) {
		t.Error("the layers did not hear of the update")
	}
}
