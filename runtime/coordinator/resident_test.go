package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// residentSpec is a run by all-reduce whose updates may stay on a device.
func residentSpec(workers, epochs int) spec.Spec {
	s := reduceSpec(workers, epochs)
	s.Deterministic, s.LearningRate = false, 0.1
	return s
}

// counted is an engine that counts the calls of its replicas.
type counted struct {
	engine.Engine
	resident, puts, gets *atomic.Int64 // updates without sums, calls of Put and Get
	fails                func() error  // of an update; nil: none fails
	lossReason           func() error  // of Get; nil: none fails
}

func count(e engine.Engine) counted {
	return counted{Engine: e, resident: new(atomic.Int64), puts: new(atomic.Int64), gets: new(atomic.Int64)}
}

func (c counted) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := c.Engine.Build(m, o)
	if err != nil {
		return nil, err
	}
	return countedReplica{r.(engine.Updater), c}, nil
}

type countedReplica struct {
	engine.Updater
	c counted
}

func (r countedReplica) Put(vector, offset int, v []float32) error {
	r.c.puts.Add(1)
	return r.Updater.Put(vector, offset, v)
}

func (r countedReplica) Get(vector, offset int, v []float32) error {
	r.c.gets.Add(1)
	if r.c.lossReason != nil {
		if err := r.c.lossReason(); err != nil {
			return err
		}
	}
	return r.Updater.Get(vector, offset, v)
}

func (r countedReplica) Update(sums []float32, weight float64, recipe optimizer.Recipe) error {
	if r.c.fails != nil {
		if err := r.c.fails(); err != nil {
			return err
		}
	}
	if sums == nil {
		r.c.resident.Add(1)
	}
	return r.Updater.Update(sums, weight, recipe)
}

// near compares parameters and slots.
func near(t *testing.T, what string, want, got []float32, most float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	worst := 0.0
	for i, v := range want {
		worst = max(worst, math.Abs(float64(v-got[i])))
	}
	if !(worst <= most) {
		t.Errorf("%s: the parameters are off by %.2g", what, worst)
	}
}

// ordinary returns parameters and slots of a run whose updates are made by the member.
func ordinary(t *testing.T, s spec.Spec) []float32 {
	t.Helper()
	s.Deterministic = true
	b := unserved(t, s, linear{size: 4})
	layered(b)
	c := count(cpu.New())
	b.engine = c
	b.serve()
	if st := b.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	if n := c.resident.Load(); n != 0 {
		t.Errorf("%d updates of a deterministic run stayed on the device", n)
	}
	return b.parameters()
}

// With one worker, updates stay on the device: parameters come to the host for checkpoints
// only, and are those of updates on the host. Each update has one lease, or several blocks
// of several leases.
func TestUpdatesStayOnTheDevice(t *testing.T) {
	for _, batch := range []int{50, 256} {
		for name, slots := range map[string]int{optimizer.SGD: 1, optimizer.Adam: 2} {
			for _, device := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, batch %d, xla %v", name, batch, device), func(t *testing.T) {
					s := residentSpec(1, 2)
					s.BatchSize, s.MicroBatch, s.Checkpoint.EverySteps = batch, 4, 2
					if s.Optimizer.Name = name; name == optimizer.Adam {
						s.Optimizer.Momentum = 0
					}
					want := ordinary(t, s)
					b := unserved(t, s, linear{size: 4})
					layered(b)
					interpreter := new(xlatest.Device)
					c := count(b.engine)
					if device {
						c = count(xla.New(interpreter))
					}
					b.engine = c
					b.serve()
					st := b.run()
					if st.Phase != spec.Succeeded || st.Records != 1200 {
						t.Fatalf("status %+v", st)
					}
					near(t, "the final model", want, b.parameters(), 1e-5)
					checkpoints := int64(b.seen("checkpoint"))
					if c.resident.Load() != st.Step || checkpoints < 2 {
						t.Errorf("%d of %d updates on the device, %d checkpoints", c.resident.Load(), st.Step, checkpoints)
					}
					vectors := int64(1 + slots)
					if gets, puts := c.gets.Load(), c.puts.Load(); gets > checkpoints*vectors || puts != vectors {
						t.Errorf("%d vectors came from the device and %d went there, in %d checkpoints", gets, puts, checkpoints)
					}
					if !device {
						return
					}
					bytes := 4 * int64(model.Length(b.options.Workload.Vars))
					perUpdate := int64(5 * 4) // loss, accuracy, squares, moments, whether all are finite
					evaluations := int64(b.seen("evaluation")+1) * 2 * 4
					if down := interpreter.Counts().Down; down > checkpoints*vectors*bytes+2*st.Step*perUpdate+evaluations {
						t.Errorf("%d bytes came from the device in %d updates and %d checkpoints", down, st.Step, checkpoints)
					}
					if err := interpreter.Fault(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// Workers come and go, and the only one that is left updates on its device: the holder
// gets parameters and slots first, so that the run never goes back.
func TestResidentMembersComeAndGo(t *testing.T) {
	s := residentSpec(2, 40)
	want := ordinary(t, s)
	b := unserved(t, s, linear{size: 4})
	layered(b)
	c := count(b.engine)
	b.engine = slowed{c, func() { time.Sleep(time.Millisecond) }}
	b.serve()
	st := disturb(t, b, 20)
	if st.Phase != spec.Succeeded || st.Records != 600*40 || st.Step != 12*40 {
		t.Fatalf("status %+v", st)
	}
	near(t, "the final model", want, b.parameters(), 1e-3)
	if n := c.resident.Load(); n == 0 || n >= st.Step {
		t.Errorf("%d of %d updates on the device", n, st.Step)
	}
	formed := slices.DeleteFunc(b.lines(), func(e spec.Event) bool { return e.Type != spec.EventRestore })
	if len(formed) < 6 {
		t.Errorf("%d groups were formed: members did not come and go", len(formed))
	}
	for _, e := range formed[1:] {
		if !strings.HasPrefix(e.Message, "attached to ") {
			t.Errorf("the run went back: %+v", e)
		}
	}
}

// slowed is an engine whose steps take a while.
type slowed struct {
	engine.Engine
	pause func()
}

func (s slowed) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := s.Engine.Build(m, o)
	return slowedReplica{r.(engine.Updater), s.pause}, err
}

type slowedReplica struct {
	engine.Updater
	pause func()
}

func (r slowedReplica) Stage(ctx context.Context, b *engine.Batch, rows []model.Rows) (engine.Staged, error) {
	r.pause()
	return r.Updater.Stage(ctx, b, rows)
}

// An update of a series whose sums are not finite: the device makes neither that one nor a
// later one, and the run goes on from the update before it, without a checkpoint. Where the sums
// stay so, that update only is skipped.
func TestSeriesOnTheDeviceIsNotFinite(t *testing.T) {
	s := residentSpec(1, 12)
	for name, times := range map[string]int{"once": 1, "always": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			b := unserved(t, s, linear{size: 4})
			layered(b)
			device := new(xlatest.Device)
			ill := &poisoned{Engine: xla.New(device), epoch: 8, times: times}
			b.engine = ill
			b.serve()
			st := b.run()
			if st.Phase != spec.Succeeded || st.Records != 600*12 {
				t.Fatalf("status %+v", st)
			}
			if ill.ahead == 0 || ill.found < 2 {
				t.Errorf("%d results came later, and the update was computed %d times", ill.ahead, ill.found)
			}
			skipped, restored := 0, 0
			for _, e := range b.lines() {
				if e.Skipped {
					skipped++
				}
				if e.Type == spec.EventRestore && e.Step > 0 {
					if restored++; !strings.HasPrefix(e.Message, "attached to ") || e.Step < 8*12 || e.Step >= 9*12 {
						t.Errorf("the run went back: %+v", e)
					}
				}
			}
			if skipped != min(1, times-1) || restored != 1 {
				t.Errorf("%d updates skipped, %d groups formed again", skipped, restored)
			}
			if times == 1 {
				near(t, "the final model", ordinary(t, s), b.parameters(), 1e-5)
			}
			if err := device.Fault(); err != nil {
				t.Error(err)
			}
		})
	}
}

// poisoned is an engine that computes sums that are not finite of a batch of one epoch.
type poisoned struct {
	engine.Engine
	epoch uint64 // the batch with the first record
	times int    // the batch is healthy afterwards
	found int    // how often it was staged
	ahead int    // results that came later
}

func (p *poisoned) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := p.Engine.Build(m, o)
	if err != nil {
		return nil, err
	}
	return &poisonedReplica{Updater: r.(engine.Updater), p: p}, nil
}

type poisonedReplica struct {
	engine.Updater
	p      *poisoned
	weight float64 // of the records of the pass
}

// weighed is a batch with the weight of its records.
type weighed struct {
	engine.Staged
	weight float64
}

func (r *poisonedReplica) Stage(ctx context.Context, b *engine.Batch, rows []model.Rows) (engine.Staged, error) {
	weight := 0.0
	for _, w := range b.Weights {
		weight += float64(w)
	}
	given := *b
	if b.Epoch == r.p.epoch && slices.Contains(b.Records, 0) {
		if r.p.found++; r.p.found <= r.p.times {
			given.Weights = slices.Repeat([]float32{math.MaxFloat32}, len(b.Weights)) // the losses add up to infinity
		}
	}
	s, err := r.Updater.Stage(ctx, &given, rows)
	return weighed{s, weight}, err
}

func (r *poisonedReplica) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	r.weight += s.(weighed).weight
	result, err := r.Updater.Step(ctx, s.(weighed).Staged, p)
	if !p.Last {
		return result, err
	}
	weight := r.weight
	r.weight, result.Weight = 0, weight
	if later := result.Later; later != nil {
		r.p.ahead++
		result.Later = func() (engine.Result, error) {
			whole, err := later()
			whole.Weight = weight
			return whole, err
		}
	}
	return result, err
}

func (r *poisonedReplica) Evaluate(ctx context.Context, s engine.Staged, p engine.Pass, out []float32) (engine.Result, error) {
	return r.Updater.Evaluate(ctx, s.(weighed).Staged, p, out)
}

// A device that makes no updates leaves them to the member, and the run goes on.
func TestDeviceWithoutUpdates(t *testing.T) {
	s := residentSpec(1, 2)
	want := ordinary(t, s)
	for name, good := range map[string]int64{"from the first update": 0, "after seven": 7} {
		t.Run(name, func(t *testing.T) {
			b := unserved(t, s, linear{size: 4})
			layered(b)
			c := count(b.engine)
			c.fails = func() error {
				if c.resident.Load() >= good {
					return errors.New("no memory for the slots")
				}
				return nil
			}
			b.engine = c
			b.serve()
			st := b.run()
			if st.Phase != spec.Succeeded || st.Records != 1200 || c.resident.Load() != good {
				t.Fatalf("%d updates on the device, status %+v", c.resident.Load(), st)
			}
			near(t, "the final model", want, b.parameters(), 1e-5)
		})
	}
}

// A device that has lost the parameters takes the run back to its newest checkpoint.
func TestDeviceLosesParameters(t *testing.T) {
	s := residentSpec(1, 4)
	s.Checkpoint.EverySteps = 6
	want := ordinary(t, s)
	b := unserved(t, s, linear{size: 4})
	layered(b)
	c := count(b.engine)
	var lost atomic.Bool
	c.lossReason = func() error {
		if b.seen("checkpoint") > 0 && !lost.Swap(true) {
			return errors.New("the device is gone")
		}
		return nil
	}
	b.engine = c
	b.serve()
	st := b.run()
	if st.Phase != spec.Succeeded || st.Records != 2400 || !lost.Load() {
		t.Fatalf("lost %v, status %+v", lost.Load(), st)
	}
	near(t, "the final model", want, b.parameters(), 1e-5)
	again := slices.DeleteFunc(b.lines(), func(e spec.Event) bool { return e.Type != spec.EventRestore })
	if len(again) != 2 || again[1].Step < 6 || strings.HasPrefix(again[1].Message, "attached") {
		t.Errorf("restored %+v", again)
	}
}

// A live change of the number of workers, while one of them trains on its device.
func TestSecondWorkerJoinsResident(t *testing.T) {
	s := residentSpec(2, 30)
	want := ordinary(t, s)
	b := unserved(t, s, linear{size: 4})
	layered(b)
	c := count(b.engine)
	joined := sync.OnceFunc(func() { b.until("the second worker joins", func() bool { return b.seen("worker") >= 2 }) })
	b.engine = slowed{c, func() {
		if c.resident.Load() >= 5 { // the run does not end before
			joined()
		}
	}}
	b.serve()
	var workers sync.WaitGroup
	workers.Go(func() { b.work(b.ctx, 0) }) //nolint:errcheck // its run ends
	workers.Go(func() {
		b.until("updates were made on the device", func() bool { return c.resident.Load() >= 5 })
		b.work(b.ctx, 1) //nolint:errcheck // its run ends
	})
	st, err := Run(b.ctx, b.options)
	workers.Wait()
	if err != nil || st.Phase != spec.Succeeded || st.Records != 600*30 {
		t.Fatalf("status %+v, %v", st, err)
	}
	if n := c.resident.Load(); n < 5 || n >= st.Step {
		t.Errorf("%d of %d updates on the device", n, st.Step)
	}
	near(t, "the final model", want, b.parameters(), 1e-3)
}
