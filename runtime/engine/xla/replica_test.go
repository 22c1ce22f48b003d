package xla_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// everything is a small network with moments and dropout.
func everything() *model.Model {
	return small(pictures(6, 6, 1), model.Layer{Op: model.Conv2D, Filters: 4, Kernel: 3}, model.Layer{Op: model.ReLU},
		model.Layer{Op: model.BatchNorm}, model.Layer{Op: model.MaxPool, Kernel: 2}, model.Layer{Op: model.Dropout, Rate: 0.25},
		model.Layer{Op: model.Flatten}, model.Layer{Op: model.Dense, Units: 3})
}

func stage(t testing.TB, r engine.Replica, b *engine.Batch) engine.Staged {
	t.Helper()
	s, err := r.Stage(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	return s
}

// Several micro-batches of a batch give the bits of one after the other, in runs of a
// power of two.
func TestBatchesOfMicroBatches(t *testing.T) {
	p := newPair(t, everything(), 0.1, engine.Options{MicroBatch: 2})
	p.device.Round = true
	if n := p.xla.MicroBatches(); n != 16 {
		t.Fatalf("%d micro-batches of 2 small pictures in a batch", n)
	}
	b := xlatest.Batch(p.model, 1, 1, 1, 1, 2, 1, 1, 1, 1, 0, 0, 1, 1, 1)
	before := p.device.Counts().Runs
	together, wantResult := p.step(p.xla, 2, b)
	if runs := p.device.Counts().Runs - before; runs != 6 { // split, begin, 4 + 2 + 1 micro-batches, join
		t.Errorf("a batch of 7 micro-batches took %d runs", runs)
	}
	one := single{p.xla}
	apart, result := p.step(one, 2, b)
	if !slices.Equal(together, apart) || !reflect.DeepEqual(wantResult, result) {
		t.Errorf("sums differ by %.2g, results are %+v and %+v", off(together, apart), wantResult, result)
	}
	many := 0
	for _, c := range p.device.Compiled() {
		if c.Name == "small_steps" {
			many++
		}
	}
	if many != 2 {
		t.Errorf("%d programs for several micro-batches", many)
	}
}

// single takes one micro-batch at a time.
type single struct{ engine.Replica }

func (single) MicroBatches() int { return 1 }

// Only the last call of a pass reports. A pass is void after another one has begun, and
// after an error.
func TestPasses(t *testing.T) {
	p := newPair(t, everything(), 0.1, engine.Options{MicroBatch: 2})
	r := p.xla
	s := stage(t, r, xlatest.Batch(p.model, 1, 1, 1))
	step := func(ctx context.Context, s engine.Staged, pass engine.Pass) error {
		result, err := r.Step(ctx, s, pass)
		if err == nil && !pass.Last && !reflect.DeepEqual(result, engine.Result{}) {
			t.Errorf("a call before the last one reports %+v", result)
		}
		return err
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	released := stage(t, r, xlatest.Batch(p.model, 1, 1, 1))
	released.Release()
	for name, interrupt := range map[string]func() error{
		"an evaluation": func() error {
			_, err := r.Evaluate(t.Context(), s, engine.Pass{First: true, Last: true}, nil)
			return err
		},
		"a step that was cancelled": func() error { _ = step(cancelled, s, engine.Pass{}); return nil },
		"a batch of elsewhere":      func() error { _ = step(t.Context(), other{}, engine.Pass{}); return nil },
		"a released batch":          func() error { _ = step(t.Context(), released, engine.Pass{}); return nil },
		"the pass's last call":      func() error { return step(t.Context(), s, engine.Pass{Last: true}) },
	} {
		if err := step(t.Context(), s, engine.Pass{First: true}); err != nil {
			t.Fatal(err)
		}
		if err := interrupt(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := step(t.Context(), s, engine.Pass{Last: true}); err == nil || !strings.Contains(err.Error(), "First") {
			t.Errorf("after %s a pass went on: %v", name, err)
		}
	}
}

type other struct{}

func (other) Release() {}

// The device has the parameters of the last Put or Update, whatever it computed before.
func TestParameters(t *testing.T) {
	p := newPair(t, everything(), 0.1, engine.Options{MicroBatch: 2})
	r := p.xla.(interface {
		engine.Replica
		engine.Updater
	})
	b := xlatest.Batch(p.model, 1, 1, 1)
	first, result := p.step(r, 2, b)
	recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.1, Momentum: 0.9}
	if err := r.Update(first, result.Weight, recipe); err != nil {
		t.Fatal(err)
	}
	changed := p.values(r)
	if second, _ := p.step(r, 2, b); slices.Equal(first, second) {
		t.Error("the update changed no gradient")
	}
	if err := r.Put(0, 0, changed); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(first, 0, recipe); err != nil || !slices.Equal(changed, p.values(r)) {
		t.Errorf("an update of weight 0 changed parameters (%v)", err)
	}
	slot := make([]float32, len(changed))
	if err := r.Get(1, 0, slot); err != nil || slices.Max(slot) == 0 {
		t.Errorf("the slot is lost (%v)", err)
	}
	f, err := r.Fork()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.Put(0, 3, []float32{7}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.values(f), changed) {
		t.Error("the fork has other values")
	}
	if got := p.values(r); got[3] != 7 || got[4] != changed[4] {
		t.Errorf("values %v and %v after a Put of one", got[3], got[4])
	}
	for name, err := range map[string]error{
		"sums too short":        r.Update(first[1:], 2, recipe),
		"a learning rate of 0":  r.Update(first, 2, optimizer.Recipe{}),
		"a weight below 0":      r.Update(first, -1, recipe),
		"a third slot":          r.Put(3, 0, first),
		"values behind the end": r.Put(0, 1, first),
		"a get of too many":     r.Get(0, 1, first),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// What a batch may not have is reported as the CPU engine reports it, and nothing stays
// on the device.
func TestRefusedBatches(t *testing.T) {
	p := newPair(t, everything(), 0, engine.Options{MicroBatch: 2})
	good := func() *engine.Batch { return xlatest.Batch(p.model, 1, 1, 1) }
	short, label, weight, long := good(), good(), good(), xlatest.Batch(p.model, 1, slices.Repeat([]float32{1}, 33)...)
	short.Inputs[0].Data = short.Inputs[0].Data[1:]
	label.Inputs[1].Data[0] = 9
	weight.Weights = []float32{1, float32(math.NaN())}
	before := p.device.Counts().Live
	for name, b := range map[string]*engine.Batch{"a byte less": short, "a label of another class": label, "a weight of NaN": weight, "too many": long} {
		_, err := p.xla.Stage(t.Context(), b, nil)
		_, want := p.cpu.Stage(t.Context(), b, nil)
		if err == nil || want == nil || name != "too many" && err.Error() != want.Error() {
			t.Errorf("%s: %v, the CPU engine says %v", name, err, want)
		}
	}
	if n := p.device.Counts().Live; n != before {
		t.Errorf("%d buffers instead of %d", n, before)
	}
	if err := p.xla.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.xla.Stage(t.Context(), good(), nil); err == nil {
		t.Error("a closed replica stages")
	}
	for _, o := range []engine.Options{{}, {MicroBatch: -1}, {MicroBatch: 4, ComputeType: "f16"}} {
		if _, err := xla.New(p.device).Build(p.model, o); err == nil {
			t.Errorf("built with %+v", o)
		}
	}
}

// Too little memory is reported with the largest micro-batch that would fit, and the
// replica works again with a smaller batch.
func TestOutOfMemory(t *testing.T) {
	p := newPair(t, everything(), 0, engine.Options{MicroBatch: 8})
	b := xlatest.Batch(p.model, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	s := stage(t, p.xla, b)
	used, _, err := p.device.Memory()
	if err != nil {
		t.Fatal(err)
	}
	p.device.Limit, p.device.Temporary = used+100, 200
	_, err = p.xla.Step(t.Context(), s, engine.Pass{First: true, Last: true})
	var small *xla.MemoryError
	if !errors.As(err, &small) || !errors.Is(err, xla.ErrMemory) || small.Batch != 8 || small.Fits < 1 || small.Fits > 4 {
		t.Fatalf("%v: %+v", err, small)
	}
	if !strings.Contains(err.Error(), "set micro_batch") {
		t.Errorf("no advice: %v", err)
	}
	p.device.Limit = 0
	p.compare(8, b, 2e-5)
}

// Where XLA has too little memory to compile a step, a smaller one tells what would fit.
func TestOutOfMemoryWhileCompiling(t *testing.T) {
	m, device := everything(), &xlatest.Device{Limit: 100, Temporary: 60, Refuse: func(text string) bool {
		return strings.Contains(text, "_step {") && !strings.Contains(text, "tensor<4x1xi32>")
	}}
	_, err := xla.New(device).Build(m, engine.Options{MicroBatch: 16})
	var small *xla.MemoryError
	if !errors.As(err, &small) || !errors.Is(err, xla.ErrMemory) || small.Batch != 16 || small.Fits != 4 { // 80/60 of 4 are refused
		t.Fatalf("%v: %+v", err, small)
	}
}

// The compute type decides about activations and products; deterministic runs are f32
// and say so to XLA.
func TestComputeTypes(t *testing.T) {
	m := everything()
	b := xlatest.Batch(m, 1, 1, 1, 1, 1)
	exact := newPair(t, m, 0.1, engine.Options{MicroBatch: 4})
	want, wantResult := exact.step(exact.xla, 4, b)
	for kind, most := range map[string]float64{spec.ComputeF32: 1e-6, spec.ComputeTF32: 1e-6, spec.ComputeBF16: 0.05} {
		d := &xlatest.Device{Round: true}
		r, err := xla.New(d).Build(m, engine.Options{MicroBatch: 4, Seed: 3, ComputeType: kind})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Put(0, 0, exact.values(exact.xla)); err != nil {
			t.Fatal(err)
		}
		got, result := exact.step(r, 4, b)
		if d := off(want, got); d > most || math.Abs(result.Loss-wantResult.Loss) > most*wantResult.Loss {
			t.Errorf("%s: sums are off by %.2g, the loss is %v instead of %v", kind, d, result.Loss, wantResult.Loss)
		}
		if d := off(want, got); kind == spec.ComputeBF16 && d < 1e-4 {
			t.Errorf("bf16 has the precision of f32: %.2g", d)
		}
		_ = r.Close()
	}
	for _, deterministic := range []bool{false, true} {
		d := new(xlatest.Device)
		r, err := xla.New(d).Build(m, engine.Options{MicroBatch: 4, Deterministic: deterministic})
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		for _, c := range d.Compiled() {
			if (c.Flags["xla_gpu_deterministic_ops"] == true) != deterministic {
				t.Errorf("deterministic %v: flags %v", deterministic, c.Flags)
			}
		}
	}
}

// The gradient of an embedding is a scatter, and in a deterministic run a product, with the
// same sums: of rows that occur several times, once, and not at all.
func TestDeterministicEmbedding(t *testing.T) {
	m := small(model.Features{Type: model.U8, Shape: []int{6}}, model.Layer{Op: model.Embedding, Vocabulary: 16, Units: 4},
		model.Layer{Op: model.Flatten}, model.Layer{Op: model.Dense, Units: 3})
	for _, deterministic := range []bool{false, true} {
		p := newPair(t, m, 0.1, engine.Options{MicroBatch: 2, Deterministic: deterministic})
		p.compare(2, xlatest.Batch(m, 1, 1, 2, 0, 1), 2e-5)
		for _, c := range p.device.Compiled() {
			if scatters := strings.Contains(c.Text, "stablehlo.scatter"); scatters != (strings.HasSuffix(c.Name, "_step") && !deterministic) && !strings.HasSuffix(c.Name, "_steps") ||
				scatters && deterministic {
				t.Errorf("deterministic %v: %s has a scatter: %v", deterministic, c.Name, scatters)
			}
		}
	}
}

// A number that is not finite is reported.
func TestNotFinite(t *testing.T) {
	p := newPair(t, everything(), 0, engine.Options{MicroBatch: 2})
	if err := p.xla.Put(0, 0, []float32{float32(math.Inf(1))}); err != nil {
		t.Fatal(err)
	}
	if _, result := p.step(p.xla, 2, xlatest.Batch(p.model, 1, 1, 1)); result.Finite {
		t.Error("an infinite weight was not reported")
	}
}

// A long pass waits for the device now and then: what waits in its queue is bounded.
func TestLongPasses(t *testing.T) {
	p := newPair(t, small(pictures(2), model.Layer{Op: model.Dense, Units: 3}), 0, engine.Options{MicroBatch: 1})
	s := stage(t, p.xla, xlatest.Batch(p.model, 1, 1))
	for name, call := range map[string]call{
		"steps": func(s engine.Staged, pass engine.Pass) (engine.Result, error) {
			return p.xla.Step(t.Context(), s, pass)
		},
		"evaluations": func(s engine.Staged, pass engine.Pass) (engine.Result, error) {
			return p.xla.Evaluate(t.Context(), s, pass, nil)
		},
	} {
		before := p.device.Counts().Waits
		for i := range 300 {
			if _, err := call(s, engine.Pass{First: i == 0, Last: i == 299}); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.device.Counts().Waits - before; n < 4 || n > 8 {
			t.Errorf("300 %s waited %d times", name, n)
		}
	}
}

// The gradient of a wide window's maximum goes to one element in bf16 too.
func TestWideWindows(t *testing.T) {
	m := small(pictures(17, 17, 1), model.Layer{Op: model.Conv2D, Filters: 1, Kernel: 1, NoBias: true},
		model.Layer{Op: model.MaxPool, Kernel: 17}, model.Layer{Op: model.Flatten}, model.Layer{Op: model.Dense, Units: 3})
	b := &engine.Batch{Weights: []float32{1}, Records: []int64{0}, Inputs: []engine.Input{{Type: model.F32}, {Type: model.I32, Data: make([]byte, 4)}}}
	for i := range 17 * 17 {
		v := float32(-1)
		if i == 17*17-1 {
			v = 1
		}
		b.Inputs[0].Data = binary.LittleEndian.AppendUint32(b.Inputs[0].Data, math.Float32bits(v))
	}
	p := newPair(t, m, 0, engine.Options{MicroBatch: 1})
	want, _ := p.step(p.cpu, 1, b)
	r, err := xla.New(&xlatest.Device{Round: true}).Build(m, engine.Options{MicroBatch: 1, ComputeType: spec.ComputeBF16})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Put(0, 0, p.values(p.cpu)); err != nil {
		t.Fatal(err)
	}
	if got, _ := p.step(r, 1, b); off(want, got) > 0.02 {
		t.Errorf("sums %v, want %v", got, want)
	}
}
