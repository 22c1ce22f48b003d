package xla_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
)

// zooData returns small data for a model of the zoo.
func zooData(name string) model.Data {
	picture := model.Data{Input: model.Features{Type: model.U8, Shape: []int{8, 8, 3}}, Classes: 10}
	switch name {
	case "mnist-cnn":
		picture.Input.Shape = []int{12, 12}
	case "cifar-cnn":
		picture.Input.Shape = []int{16, 16, 3}
	case "linear":
		return model.Data{Input: picture.Input, Target: model.Features{Type: model.F32, Shape: []int{2}}}
	case "transformer":
		text := model.Features{Type: model.U8, Shape: []int{12}}
		return model.Data{Input: text, Classes: 64, Target: text}
	}
	return picture
}

// Each model of the zoo has the sums, results and predictions of the CPU engine, and its
// parameters after 20 updates.
func TestModels(t *testing.T) {
	for _, name := range zoo.Names() {
		t.Run(name, func(t *testing.T) {
			m, err := zoo.Model(name, zooData(name))
			if err != nil {
				t.Fatal(err)
			}
			if raceEnabled && testing.Short() && (name == "resnet18" || name == "transformer") {
				t.Skip("the interpreter computes these as it does resnet20, for a minute")
			}
			updates, jitter, rate, most := 20, float32(0.01), float32(0.001), 1e-5
			switch name {
			case "resnet18": // 11 million parameters, and moments of few numbers
				updates, jitter, most = 1, 0, 5e-5
			case "resnet20":
				rate = 0.0002 // training is stable: roundings do not grow
			case "transformer":
				updates = 6 // it has 0.8 million parameters
			}
			const micro = 8
			if raceEnabled || testing.Short() {
				updates = min(updates, 2)
			}
			p := newPair(t, m, jitter, engine.Options{MicroBatch: micro, Deterministic: true})
			recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: rate}
			p.compare(micro, xlatest.Batch(m, 99, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1), 1e-3)
			p.train(updates, micro, recipe, most)
		})
	}
}

// train makes updates on both engines and compares the parameters.
func (p *pair) train(updates, micro int, recipe optimizer.Recipe, most float64) {
	p.t.Helper()
	for i := range updates {
		b := xlatest.Batch(p.model, uint64(i), 1, 1, 1, 1, 2, 1, 0, 1)
		recipe.Step = int64(i + 1)
		for _, r := range []engine.Replica{p.cpu, p.xla} {
			sums, result := p.step(r, micro, b)
			if err := r.(engine.Updater).Update(sums, result.Weight, recipe); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	if d := off(p.values(p.cpu), p.values(p.xla)); d > most {
		p.t.Errorf("%s: the parameters are off by %.2g after %d updates", recipe.Name, d, updates)
	}
	for slot := 1; slot <= recipe.Slots(); slot++ {
		want, got := make([]float32, len(p.values(p.cpu))), make([]float32, len(p.values(p.cpu)))
		for r, v := range map[engine.Replica][]float32{p.cpu: want, p.xla: got} {
			if err := r.Get(slot, 0, v); err != nil {
				p.t.Fatal(err)
			}
		}
		if d := off(want, got); d > 20*most {
			p.t.Errorf("%s: slot %d is off by %.2g", recipe.Name, slot, d)
		}
	}
}

// Updates within a pass, whose sums never travel, make the parameters of updates with
// sums; the losses add up over the pass. Both engines do so.
func TestResidentUpdates(t *testing.T) {
	m := everything()
	for _, recipe := range []optimizer.Recipe{
		{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9, ClipNorm: 0.3},
		{Name: optimizer.AdamW, LearningRate: 0.003, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-6, WeightDecay: 0.1},
	} {
		p := newPair(t, m, 0.1, engine.Options{MicroBatch: 2})
		q := newPair(t, m, 0.1, engine.Options{MicroBatch: 2})
		for i, r := range []engine.Replica{q.cpu, q.xla} {
			u, loss := r.(engine.Updater), 0.0
			if err := u.Update(nil, 1, recipe); err == nil {
				t.Error("an update without a pass and without sums was made")
			}
			other := []engine.Replica{p.cpu, p.xla}[i]
			for k := range 4 {
				b := xlatest.Batch(m, uint64(k), 1, 1)
				recipe.Step = int64(k + 1)
				sums, result := p.step(other, 2, b)
				loss += result.Loss
				if err := other.(engine.Updater).Update(sums, 2, recipe); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Step(t.Context(), stage(t, r, b), engine.Pass{First: k == 0}); err != nil {
					t.Fatal(err)
				}
				if err := u.Update(nil, 2, recipe); err != nil {
					t.Fatal(err)
				}
			}
			last := xlatest.Batch(m, 9, 0, 0)
			result, err := r.Step(t.Context(), stage(t, r, last), engine.Pass{Last: true})
			if err != nil || math.Abs(result.Loss-loss) > 1e-4*loss || result.Weight != 8 {
				t.Errorf("%s: %+v, the losses sum to %v (%v)", recipe.Name, result, loss, err)
			}
			if d := off(p.values(other), q.values(r)); d > 1e-6 {
				t.Errorf("%s: the parameters are off by %.2g", recipe.Name, d)
			}
		}
	}
}

// Sums that are kept are reported by their squares, and results begin at zero after each;
// the update is made of all of them. Both engines do so.
func TestKeptSums(t *testing.T) {
	m := everything()
	recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9, ClipNorm: 0.3}
	p := newPair(t, m, 0.1, engine.Options{MicroBatch: 2})
	q := newPair(t, m, 0.1, engine.Options{MicroBatch: 2, Threads: 2})
	for i, r := range []engine.Replica{q.cpu, q.xla} {
		other := []engine.Replica{p.cpu, p.xla}[i]
		for update := range 3 {
			var total []float32
			weight := 0.0
			for part := range 2 {
				b := xlatest.Batch(m, uint64(2*update+part), 1, 2)
				sums, want := p.step(other, 2, b)
				if total == nil {
					total = make([]float32, len(sums))
				}
				for k, v := range sums {
					total[k] += v
				}
				pass := engine.Pass{First: update == 0 && part == 0, Last: true, Keep: true, Ready: func(int, []float32) { t.Error("kept sums travelled") }}
				got, err := r.Step(t.Context(), stage(t, r, b), pass)
				if err != nil {
					t.Fatal(err)
				}
				vars, _ := r.Layout()
				squares := optimizer.SquaredNorm(total, 1, vars)
				if math.Abs(got.Squares-squares) > 1e-5*squares || math.Abs(got.Loss-want.Loss) > 1e-5*want.Loss ||
					got.Weight != 3 || got.Metrics[0] != want.Metrics[0] || !got.Finite {
					t.Errorf("%d: %+v, want %+v and squares of %v", i, got, want, squares)
				}
				weight += got.Weight
			}
			for of, sums := range map[engine.Replica][]float32{r: nil, other: total} {
				if err := of.(engine.Updater).Update(sums, weight, recipe); err != nil {
					t.Fatal(err)
				}
			}
		}
		if d := off(p.values(other), q.values(r)); d > 1e-6 {
			t.Errorf("the parameters are off by %.2g", d)
		}
	}
	huge := make([]float32, len(q.values(q.xla)))
	for i := range huge {
		huge[i] = 1e38
	}
	for _, r := range []engine.Replica{q.cpu, q.xla} {
		if err := r.Put(0, 0, huge); err != nil {
			t.Fatal(err)
		}
		pass := engine.Pass{First: true, Last: true, Keep: true}
		if got, err := r.Step(t.Context(), stage(t, r, xlatest.Batch(m, 9, 1, 1)), pass); err != nil || got.Finite {
			t.Errorf("sums that are not finite: %+v, %v", got, err)
		}
	}
}

// With Ahead a step returns before its numbers are there, and they are those of a step
// without. After sums that are not finite, no update changes anything before a First, and no
// result is finite.
func TestNumbersThatComeLater(t *testing.T) {
	m := everything()
	recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9}
	p := newPair(t, m, 0.1, engine.Options{MicroBatch: 2})
	q := newPair(t, m, 0.1, engine.Options{MicroBatch: 2})
	train := func(r engine.Replica, pass engine.Pass, batches ...*engine.Batch) (all []engine.Result) {
		t.Helper()
		for i, b := range batches {
			pass.First, pass.Last, pass.Keep = i == 0, true, true
			result, err := r.Step(t.Context(), stage(t, r, b), pass)
			if err != nil {
				t.Fatal(err)
			}
			if pass.Ahead != (result.Later != nil) {
				t.Fatalf("ahead %v: %+v", pass.Ahead, result)
			}
			all = append(all, result)
			if err := r.(engine.Updater).Update(nil, 2, recipe); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range all {
			if r.Later == nil {
				continue
			}
			whole, err := r.Later()
			again, _ := r.Later()
			if err != nil || whole.Weight != r.Weight || fmt.Sprint(whole) != fmt.Sprint(again) {
				t.Errorf("%+v, then %+v and %+v (%v)", r, whole, again, err)
			}
			all[i] = whole
		}
		return all
	}
	var batches []*engine.Batch
	for i := range 4 {
		batches = append(batches, xlatest.Batch(m, uint64(i), 1, 1))
	}
	want := train(p.xla, engine.Pass{}, batches...)
	before := q.device.Counts().Runs
	got := train(q.xla, engine.Pass{Ahead: true}, batches...)
	// The first update: split of parameters and slot, begin, step, tally, update; then a run for each.
	if runs := q.device.Counts().Runs - before; runs != 6+3 {
		t.Errorf("%d runs of 4 updates", runs)
	}
	if !cmp.Equal(want, got) || !slices.Equal(p.values(p.xla), q.values(q.xla)) {
		t.Errorf("ahead: %+v, want %+v; the parameters are off by %.2g", got, want, off(p.values(p.xla), q.values(q.xla)))
	}
	after := append(append([]*engine.Batch{batches[0]}, xlatest.Batch(m, 1, 3e38, 3e38)), batches...)
	train(p.xla, engine.Pass{}, batches[0])
	for i, r := range train(q.xla, engine.Pass{Ahead: true}, after...) {
		if r.Finite != (i == 0) {
			t.Errorf("update %d: %+v", i, r)
		}
	}
	for slot := range 2 {
		if d := off(p.vector(p.xla, slot), q.vector(q.xla, slot)); d != 0 {
			t.Errorf("vector %d is off by %.2g after sums that are not finite", slot, d)
		}
	}
	want, got = train(p.xla, engine.Pass{}, batches...), train(q.xla, engine.Pass{Ahead: true}, batches...)
	if !cmp.Equal(want, got) || !slices.Equal(p.values(p.xla), q.values(q.xla)) {
		t.Errorf("after a First: %+v, want %+v", got, want)
	}
}

// An error of the device that comes after an update is in the results of that step and of all
// later ones.
func TestLateErrorOfAStep(t *testing.T) {
	m := everything()
	recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9}
	p := newPair(t, m, 0.1, engine.Options{MicroBatch: 2})
	var later []func() (engine.Result, error)
	const all, fails = 40, 10
	for i := range all {
		pass := engine.Pass{First: i == 0, Last: true, Keep: true, Ahead: true}
		result, err := p.xla.Step(t.Context(), stage(t, p.xla, xlatest.Batch(m, uint64(i), 1, 1)), pass)
		if err != nil {
			t.Fatal(err)
		}
		later = append(later, result.Later)
		if i == fails {
			p.device.Limit = 1
		}
		err = p.xla.(engine.Updater).Update(nil, 2, recipe)
		if p.device.Limit = 0; err != nil {
			t.Fatal(err)
		}
	}
	for i, wait := range later {
		if _, err := wait(); (err != nil) != (i >= fails) {
			t.Errorf("step %d: %v", i, err)
		}
	}
}

// Where the program of step and update does not compile, they stay apart.
func TestStepsStayApart(t *testing.T) {
	m := everything()
	recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9}
	p := newPair(t, m, 0.1, engine.Options{MicroBatch: 2})
	p.device.Refuse = func(text string) bool { return strings.Contains(text, "_train_") }
	for i := range 4 {
		pass := engine.Pass{First: i == 0, Last: true, Keep: true, Ahead: true}
		result, err := p.xla.Step(t.Context(), stage(t, p.xla, xlatest.Batch(m, uint64(i), 1, 1)), pass)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.xla.(engine.Updater).Update(nil, 2, recipe); err != nil {
			t.Fatal(err)
		}
		if whole, err := result.Later(); err != nil || !whole.Finite {
			t.Errorf("step %d: %+v, %v", i, whole, err)
		}
	}
}

// Each optimizer with each of its options updates as package optimizer does.
func TestOptimizers(t *testing.T) {
	// A bias before a normalisation would have no gradient except roundings, which Adam and
	// Adagrad scale up.
	m := small(pictures(5, 4, 2), model.Layer{Op: model.Conv2D, Filters: 3, Kernel: 2, NoBias: true}, model.Layer{Op: model.BatchNorm},
		model.Layer{Op: model.Tanh}, model.Layer{Op: model.Flatten}, model.Layer{Op: model.Dense, Units: 3})
	for i, recipe := range []optimizer.Recipe{
		{Name: optimizer.SGD, LearningRate: 0.05},
		{Name: optimizer.SGD, LearningRate: 0.05, WeightDecay: 0.1},
		{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9},
		{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.8, Nesterov: true, WeightDecay: 0.1},
		{Name: optimizer.SGD, LearningRate: 0.05, Momentum: 0.9, ClipNorm: 0.1},
		{Name: optimizer.Adagrad, LearningRate: 0.01, Epsilon: 1e-5, WeightDecay: 0.01},
		{Name: optimizer.Adam, LearningRate: 0.003, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-6, WeightDecay: 0.1},
		{Name: optimizer.AdamW, LearningRate: 0.003, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-6, WeightDecay: 0.1, ClipNorm: 0.5},
	} {
		t.Run(fmt.Sprintf("%d %s", i, recipe.Name), func(t *testing.T) {
			newPair(t, m, 0.1, engine.Options{MicroBatch: 4}).train(20, 4, recipe, 1e-5)
		})
	}
}
