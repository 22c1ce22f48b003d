//go:build darwin || linux

package gpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/pjrt"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// twins are one model behind the binding and on the interpreter as it is. All that they
// return is equal, bit by bit.
type twins struct {
	t        testing.TB
	model    *model.Model
	device   *double
	replicas [2]engine.Replica
}

func newTwins(t testing.TB, d *double, m *model.Model, o engine.Options) *twins {
	t.Helper()
	w := &twins{t: t, model: m, device: d}
	direct := &xlatest.Device{Round: true}
	for i, e := range []engine.Engine{xla.New(direct), xla.New(d)} {
		r, err := e.Build(m, o)
		if err != nil {
			t.Fatal(err)
		}
		w.replicas[i] = r
	}
	v := w.vector(0)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] += 0.02 * random.Float32()
	}
	w.put(0, v)
	t.Cleanup(func() {
		w.each(func(r engine.Replica) (any, error) { return nil, r.Close() })
		if err := direct.Fault(); err != nil || direct.Counts().Live != 0 {
			t.Errorf("%d buffers are left, %v", direct.Counts().Live, err)
		}
	})
	return w
}

// each calls a function for both replicas and compares the results.
func (w *twins) each(f func(engine.Replica) (any, error)) any {
	w.t.Helper()
	var results [2]any
	for i, r := range w.replicas {
		var err error
		if results[i], err = f(r); err != nil {
			w.t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(results[0], results[1]) {
		w.t.Fatalf("the replicas differ: %.300v… and %.300v…", results[0], results[1])
	}
	return results[0]
}

func (w *twins) put(at int, v []float32) {
	w.t.Helper()
	w.each(func(r engine.Replica) (any, error) { return nil, r.Put(at, 0, v) })
}

// vector returns the parameters or a slot.
func (w *twins) vector(at int) []float32 {
	w.t.Helper()
	return w.each(func(r engine.Replica) (any, error) {
		vars, _ := r.Layout()
		v := make([]float32, model.Length(vars))
		err := r.Get(at, 0, v)
		return v, err
	}).([]float32)
}

// sums are what a pass of Steps gives.
type sums struct {
	vector []float32
	result engine.Result
}

// stepOne makes a pass of one replica.
func (w *twins) stepOne(r engine.Replica, batches ...*engine.Batch) (sums, error) {
	vars, _ := r.Layout()
	all := sums{vector: make([]float32, model.Length(vars))}
	for i, b := range batches {
		s, err := r.Stage(w.t.Context(), b, nil)
		if err != nil {
			return sums{}, err
		}
		pass := engine.Pass{First: i == 0, Last: i == len(batches)-1,
			Ready: func(offset int, span []float32) { copy(all.vector[offset:], span) }}
		all.result, err = r.Step(w.t.Context(), s, pass)
		s.Release()
		if err != nil {
			return sums{}, err
		}
	}
	return all, nil
}

func (w *twins) step(batches ...*engine.Batch) sums {
	w.t.Helper()
	return w.each(func(r engine.Replica) (any, error) { return w.stepOne(r, batches...) }).(sums)
}

func (w *twins) update(s sums, recipe optimizer.Recipe) {
	w.t.Helper()
	w.each(func(r engine.Replica) (any, error) {
		return nil, r.(engine.Updater).Update(s.vector, s.result.Weight, recipe)
	})
}

// evaluate compares predictions of a batch of micro-batches with so many records.
func (w *twins) evaluate(micro int, b *engine.Batch) {
	w.t.Helper()
	_, elements := w.model.Answer()
	records := (len(b.Weights) + micro - 1) / micro * micro
	w.each(func(r engine.Replica) (any, error) {
		s, err := r.Stage(w.t.Context(), b, nil)
		if err != nil {
			return nil, err
		}
		defer s.Release()
		out := make([]float32, records*elements*max(1, w.model.Classes))
		result, err := r.Evaluate(w.t.Context(), s, engine.Pass{First: true, Last: true}, out)
		return []any{result, out}, err
	})
}

// network is a small network with moments and dropout.
func network() *model.Model {
	layers := []model.Layer{{Op: model.Conv2D, Filters: 3, Kernel: 2}, {Op: model.BatchNorm}, {Op: model.ReLU},
		{Op: model.Dropout, Rate: 0.25}, {Op: model.Flatten}, {Op: model.Dense, Units: 3}}
	for i := range layers {
		layers[i].Name = fmt.Sprint("layer", i)
	}
	return &model.Model{Name: "network", Classes: 3, Layers: layers, Input: model.Features{Type: model.F32, Shape: []int{4, 4, 2}},
		Loss: model.SoftmaxCrossEntropy, Metrics: []string{model.Accuracy}}
}

func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

var recipes = []optimizer.Recipe{
	{Name: optimizer.SGD, LearningRate: 0.05, WeightDecay: 0.1},
	{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9, ClipNorm: 0.1},
	{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.8, Nesterov: true},
	{Name: optimizer.Adagrad, LearningRate: 0.01, Epsilon: 1e-5, WeightDecay: 0.01},
	{Name: optimizer.Adam, LearningRate: 0.003, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-6},
	{Name: optimizer.AdamW, LearningRate: 0.003, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-6, WeightDecay: 0.1},
}

// Models of the zoo train, evaluate and fork behind the binding as on the interpreter.
func TestModels(t *testing.T) {
	d := openDouble(t, 0)
	text := model.Features{Type: model.U8, Shape: []int{8}}
	for at, name := range []string{"mlp", "mnist-cnn", "resnet20", "transformer"} {
		t.Run(name, func(t *testing.T) {
			data := model.Data{Input: model.Features{Type: model.U8, Shape: []int{8, 8, 3}}, Classes: 10}
			switch name {
			case "mnist-cnn":
				data.Input.Shape = []int{12, 12}
			case "transformer":
				data = model.Data{Input: text, Classes: 64, Target: text}
			}
			m, err := zoo.Model(name, data)
			if err != nil {
				t.Fatal(err)
			}
			const micro = 2
			w := newTwins(t, d, m, engine.Options{MicroBatch: micro, Seed: 3})
			large := name == "resnet20" || name == "transformer"
			if large && raceEnabled {
				t.Skip("too slow under the race detector")
			}
			for i := range 2 {
				recipe := recipes[len(recipes)-1-at]
				recipe.Step = int64(i + 1)
				s := w.step(xlatest.Batch(m, uint64(i), 1, 1, 0.5, 0, 1), xlatest.Batch(m, uint64(i+10), 1, 1))
				w.update(s, recipe)
			}
			for slot := range 3 {
				w.vector(slot)
			}
			w.evaluate(micro, xlatest.Batch(m, 30, 1, 0, 1, 1, 1))
			forks := &twins{t: t, model: m, device: d}
			for i, r := range w.replicas {
				if forks.replicas[i], err = r.Fork(); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(forks.vector(0), w.vector(0)) {
				t.Error("a fork has other parameters")
			}
			if !large {
				forks.step(xlatest.Batch(m, 40, 1, 1))
			}
			forks.each(func(r engine.Replica) (any, error) { return nil, r.Close() })
		})
	}
}

// Each optimizer updates behind the binding as on the interpreter.
func TestOptimizers(t *testing.T) {
	w := newTwins(t, openDouble(t, 0), network(), engine.Options{MicroBatch: 2})
	for _, recipe := range recipes {
		for i := range 3 {
			recipe.Step = int64(i + 1)
			w.update(w.step(xlatest.Batch(w.model, uint64(i), 1, 1, 2)), recipe)
		}
		for slot := range 3 {
			if v := w.vector(slot); slot > 0 && slot <= recipe.Slots() && slices.Max(v) == 0 {
				t.Errorf("%s: slot %d is empty", recipe.Name, slot)
			}
		}
		for slot := range 2 {
			w.put(slot+1, make([]float32, len(w.vector(0))))
		}
	}
}

// A goroutine stages batches beside the steps, while the collector never rests. The pool
// of pinned memory has what is under way at once, and no more.
func TestStagingBesideSteps(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	steps := 200
	if raceEnabled {
		steps = 40
	}
	w := newTwins(t, openDouble(t, 0), network(), engine.Options{MicroBatch: 2})
	r := w.replicas[1]
	const ahead = 2
	staged, failed := make(chan engine.Staged, ahead), make(chan error, 1)
	go func() {
		defer close(staged)
		for i := range steps {
			s, err := r.Stage(t.Context(), xlatest.Batch(w.model, uint64(i), ones(4)...), nil)
			if err != nil {
				failed <- err
				return
			}
			staged <- s
		}
	}()
	recipe := recipes[1]
	n := 0
	for s := range staged {
		all := make([]float32, len(w.vector(0)))
		pass := engine.Pass{First: true, Last: true, Ready: func(offset int, span []float32) { copy(all[offset:], span) }}
		result, err := r.Step(t.Context(), s, pass)
		go s.Release()
		if err != nil {
			t.Fatal(err)
		}
		same, err := w.stepOne(w.replicas[0], xlatest.Batch(w.model, uint64(n), ones(4)...))
		if err != nil || !slices.Equal(all, same.vector) || !reflect.DeepEqual(result, same.result) {
			t.Fatalf("step %d: %+v, want %+v (%v)", n, result, same.result, err)
		}
		w.update(same, recipe)
		n++
	}
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	// Features, labels, weights and keys of the batches in the channel, of the one before it
	// and of the one that is being staged; 8 other sizes, twice.
	if most := int64(4*(ahead+2) + 16); n != steps || w.device.regions() > most {
		t.Errorf("%d regions were pinned in %d steps, want %d at most", w.device.regions(), n, most)
	}
}

// ballast takes memory of the device, so that so many bytes are free.
func (d *double) ballast(t *testing.T, free int) xla.Buffer {
	t.Helper()
	used, limit, err := d.Memory()
	if err != nil {
		t.Fatal(err)
	}
	n := int(limit-used) - free
	b, err := d.Upload(stablehlo.U8, []int{n}, make([]byte, n), func() {})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(); err != nil {
		t.Fatal(err)
	}
	return b
}

// Wherever memory ends, the error names a smaller micro-batch, parameters stay as they
// were, and with more memory the replica goes on.
func TestOutOfMemory(t *testing.T) {
	d := openDouble(t, 1.0/256)
	d.temporary = 8000
	const micro = 8
	w := newTwins(t, d, network(), engine.Options{MicroBatch: micro})
	b := xlatest.Batch(w.model, 1, ones(micro)...)
	vector := 4 * len(w.vector(0))
	s := w.step(b)
	before := w.vector(0)
	r := w.replicas[1]
	step := func() error { _, err := w.stepOne(r, b); return err }
	update := func(r engine.Replica, recipe optimizer.Recipe) error {
		return r.(engine.Updater).Update(s.vector, s.result.Weight, recipe)
	}
	for _, c := range []struct {
		name string
		free int // bytes
		do   func() error
		fits bool // whether a number is known
	}{
		{"staging", 10, step, false},
		{"half of staging", 1030, step, false},
		{"a step", 3*vector + 4000, step, true},
		{"parameters apart", vector + vector/2 + 1200, func() error {
			err := r.Put(0, 0, before)
			return errors.Join(err, step())
		}, true},
		{"parameters of an update apart", vector + vector/2, func() error {
			err := r.Put(0, 0, before)
			return errors.Join(err, update(r, recipes[0]))
		}, false},
		{"slots apart", vector + vector/2, func() error { return update(r, recipes[1]) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			full := d.ballast(t, c.free)
			err := c.do()
			var small *xla.MemoryError
			if !errors.As(err, &small) || !errors.Is(err, xla.ErrMemory) || !pjrt.IsExhausted(err) || small.Batch != micro {
				t.Errorf("%v", err)
			} else if c.fits && (small.Fits < 1 || small.Fits >= micro) {
				t.Errorf("%d records would fit", small.Fits)
			}
			if err := full.Close(); err != nil {
				t.Fatal(err)
			}
			if got := w.step(b); !reflect.DeepEqual(got, s) || !slices.Equal(w.vector(0), before) {
				t.Error("the error changed the replica")
			}
		})
	}
	// An update whose slots are on the device takes the memory of one vector.
	w.update(s, recipes[1])
	before = w.vector(0)
	full := d.ballast(t, vector+vector/2)
	w.update(s, recipes[1])
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(w.vector(0), before) {
		t.Error("the update changed nothing")
	}
}

// A run that fails on the device is reported by the call that waits for it, and what
// depends on it fails with it.
func TestFailedRuns(t *testing.T) {
	d := openDouble(t, 0)
	w := newTwins(t, d, network(), engine.Options{MicroBatch: 2})
	b := xlatest.Batch(w.model, 1, ones(5)...)
	want := w.step(b)
	for _, name := range []string{"_split", "_begin", "_step", "_steps", "_join"} {
		w.put(0, w.vector(0))
		d.breaks(name)
		if _, err := w.stepOne(w.replicas[1], b, b); err == nil || !strings.Contains(err.Error(), "on fire") {
			t.Errorf("%s fails: %v", name, err)
		}
		d.breaks("")
		if got := w.step(b); !reflect.DeepEqual(got, want) {
			t.Errorf("after %s has failed a step differs", name)
		}
	}
	d.breaks("_update_momentum_clipped")
	r := w.replicas[1]
	if err := r.(engine.Updater).Update(want.vector, want.result.Weight, recipes[1]); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Get": r.Get(0, 0, want.vector), "Put": r.Put(0, 0, want.vector)} {
		if err == nil || !strings.Contains(err.Error(), "on fire") {
			t.Errorf("%s after an update that failed late: %v", name, err)
		}
	}
}

// The plugin refuses what a program does not take, and nothing is lost by that.
func TestRefusedRuns(t *testing.T) {
	d := openDouble(t, 0)
	if _, err := d.Compile("module @broken {", nil); err == nil || !strings.Contains(err.Error(), pjrt.Unknown.String()) {
		t.Errorf("a text that is no program: %v", err)
	}
	f := stablehlo.New(stablehlo.Highest)
	a, b := f.Argument(stablehlo.F32, 2), f.Argument(stablehlo.F32, 2)
	f.Donate(0, 0)
	f.Donate(1, 1)
	p, err := d.Compile(f.Text("sum", a.Add(b), a.Subtract(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	upload := func(of stablehlo.Type, dims ...int) xla.Buffer {
		n := of.Size()
		for _, d := range dims {
			n *= d
		}
		b, err := d.Upload(of, dims, make([]byte, n), func() {})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	x, y := upload(stablehlo.F32, 2), upload(stablehlo.F32, 2)
	long, flat, number := upload(stablehlo.F32, 3), upload(stablehlo.F32, 2, 1), upload(stablehlo.I32, 2)
	for name, in := range map[string][]xla.Buffer{
		"one argument": {x}, "three arguments": {x, y, y}, "an argument twice": {x, x}, "another length": {x, long},
		"another shape": {flat, x}, "another type": {x, number},
	} {
		if _, err := p.Run(in...); err == nil || !strings.Contains(err.Error(), pjrt.InvalidArgument.String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, err := p.Run(x, y)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(x, y); !errors.Is(err, pjrt.ErrClosed) {
		t.Errorf("donated arguments again: %v", err)
	}
	for _, b := range append(out, long, flat, number) {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.Upload(stablehlo.F32, []int{2}, make([]byte, 4), func() { x = nil }); err == nil || x != nil {
		t.Errorf("data that are too short: %v, given back: %v", err, x == nil)
	}
}
