package coordinator

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// reduceSpec is a deterministic run of so many workers by all-reduce.
func reduceSpec(workers, epochs int) spec.Spec {
	s := pointsSpec()
	s.Strategy, s.ParameterServer.Replicas = spec.StrategyAllReduce, 0
	s.Deterministic, s.Optimizer.Momentum, s.LearningRate, s.ClipNorm = true, 0.5, 0.5, 1
	s.Worker.Replicas, s.Epochs = workers, epochs
	return s
}

// crew is the workers of a run, which come and go.
type crew struct {
	*bench
	mu   sync.Mutex
	ends map[int]context.CancelFunc
	gone sync.WaitGroup
}

// start starts a worker, which ends when stop is called or its run is over.
func (c *crew) start(index int) {
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	c.ends[index] = cancel
	c.mu.Unlock()
	c.gone.Go(func() { c.work(ctx, index) }) //nolint:errcheck // it is stopped, or its run ends
}

func (c *crew) stop(index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[index]()
	delete(c.ends, index)
}

// disturb runs a bench whose workers are stopped and started so many times, and
// returns the status.
func disturb(t *testing.T, b *bench, times int) spec.Status {
	t.Helper()
	c := &crew{bench: b, ends: make(map[int]context.CancelFunc)}
	n := b.options.Spec.Worker.Replicas
	for i := range n {
		c.start(i)
	}
	over := make(chan struct{})
	var disturbing sync.WaitGroup
	random := rand.New(rand.NewPCG(7, 11))
	disturbing.Go(func() {
		for range times {
			for from := b.seen("update"); b.seen("update") < from+max(2, b.spaced); { // the run goes on after each
				select {
				case <-over:
					return
				case <-time.After(time.Duration(1+random.IntN(10)) * time.Millisecond):
				}
			}
			i := random.IntN(n)
			c.mu.Lock()
			runs, left := c.ends[i] != nil, len(c.ends)
			c.mu.Unlock()
			switch {
			case !runs:
				c.start(i)
			case left > 1:
				c.stop(i)
			}
		}
		for i := range n {
			c.mu.Lock()
			runs := c.ends[i] != nil
			c.mu.Unlock()
			if !runs {
				c.start(i)
			}
		}
	})
	st, err := Run(b.ctx, b.options)
	if err != nil {
		t.Fatal(err)
	}
	close(over)
	disturbing.Wait()
	for i := range n {
		c.mu.Lock()
		if c.ends[i] != nil {
			c.ends[i]()
		}
		c.mu.Unlock()
	}
	c.gone.Wait()
	return st
}

// Members that come and go change nothing: as long as one is left, the run goes on
// from the newest update, without a checkpoint, and ends with the same bits.
func TestMembersComeAndGo(t *testing.T) {
	undisturbed := newBench(t, reduceSpec(2, 40), linear{size: 5000})
	if st := undisturbed.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	want := hashed(undisturbed.parameters(), 0)

	s := reduceSpec(4, 40)
	b := newBench(t, s, linear{size: 5000, fails: func([]int64) error { time.Sleep(time.Millisecond); return nil }})
	st := disturb(t, b, 20)
	if st.Phase != spec.Succeeded || st.Records != 600*40 || st.Step != 12*40 {
		t.Fatalf("status %+v", st)
	}
	if got := hashed(b.parameters(), 0); got != want {
		t.Errorf("the parameters are %s, undisturbed %s", got, want)
	}
	events := b.lines()
	formed := slices.DeleteFunc(slices.Clone(events), func(e spec.Event) bool { return e.Type != spec.EventRestore })
	if len(formed) < 6 {
		t.Errorf("%d groups were formed: members did not come and go", len(formed))
	}
	for _, e := range formed[1:] {
		if !strings.HasPrefix(e.Message, "attached to ") {
			t.Errorf("the run went back: %+v", e)
		}
	}
}

// A run goes on with another strategy from where it was stopped: parameters, slots
// and ledger stay.
func TestStrategyChanges(t *testing.T) {
	undisturbed := newBench(t, reduceSpec(2, 20), linear{size: 5000})
	if st := undisturbed.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	want := hashed(undisturbed.parameters(), 0)
	strategies := map[string]int{spec.StrategyParameterServer: 1, spec.StrategyAllReduce: 0}
	for from, servers := range strategies {
		t.Run("from "+from, func(t *testing.T) {
			s := reduceSpec(2, 20)
			s.Strategy, s.ParameterServer.Replicas = from, servers
			asked := make(chan struct{}) // the run does not end before
			var b *bench
			b = newBench(t, s, linear{size: 5000, fails: func([]int64) error {
				select {
				case <-asked:
				default:
					if b.seen("update") >= 30 {
						<-asked
					}
				}
				return nil
			}})
			var workers sync.WaitGroup
			for i := range 2 {
				workers.Go(func() { b.work(b.ctx, i) }) //nolint:errcheck // it is told to leave
			}
			stop, ended := b.beginUntilStopped()
			b.until("the run gets on", func() bool { return b.seen("update") >= 30 })
			stop()
			close(asked)
			st := <-ended
			workers.Wait()
			if st.Phase != spec.Stopped || st.Step < 30 || st.Step >= 240 {
				t.Fatalf("status %+v", st)
			}
			step := st.Step
			b.options.Stop = nil
			for to, servers := range strategies {
				if to != from {
					b.options.Spec.Strategy, b.options.Spec.ParameterServer.Replicas = to, servers
				}
			}
			next := b.again()
			if st = next.run(); st.Phase != spec.Succeeded || st.Records != 600*20 || st.Step != 240 {
				t.Fatalf("status %+v", st)
			}
			if got := hashed(next.parameters(), 0); got != want {
				t.Errorf("the parameters are %s, undisturbed %s", got, want)
			}
			if all := next.lines(); !slices.ContainsFunc(all, func(e spec.Event) bool { return e.Type == spec.EventRestore && e.Step == step }) {
				t.Errorf("the run did not go on from step %d", step)
			}
		})
	}
}

// A worker that comes first after a loss has nothing: the run waits for the others,
// which have the newest parameters.
func TestNewestParametersAreWaitedFor(t *testing.T) {
	b := newBench(t, reduceSpec(2, 20), linear{size: 5000})
	a := newAllReduce(b.options)
	began := time.Now()
	a.lacks = began.Add(200*time.Millisecond - lackTime) // it has waited for most of the time
	if !a.awaitMore(t.Context(), 1) {
		t.Error("with none of its workers present, the run does not wait")
	}
	if waited := time.Since(began); waited < 200*time.Millisecond {
		t.Errorf("waited for %v", waited)
	}
	if a.awaitMore(t.Context(), 1) {
		t.Error("after that time, the run still waits")
	}
	if a.awaitMore(t.Context(), 0) {
		t.Error("with all workers present, the run waits")
	}
	n := model.Length(b.options.Workload.Vars)
	decided := &wire.Apply{}
	held := []wire.Holding{
		{Term: 1, Version: 7, To: n, Decision: decided}, {Term: 2, Version: 7, To: n}, {Term: 2, Version: 6, To: n}, {}, {Term: 3, Version: 9, To: n},
	}
	at, ok := a.attachable(held, []int64{1, 2}, 7)
	if want := []int64{0, 2, 0, 0, 0}; !ok || at.version != 7 || at.source != 1 || !slices.Equal(at.terms, want) {
		t.Errorf("attachment %+v, %v, want the terms %v", at, ok, want)
	}
	if _, ok := a.attachable(held[2:4], []int64{1, 2}, 7); ok {
		t.Error("the run goes on from parameters that lack an update of the ledger")
	}
}
