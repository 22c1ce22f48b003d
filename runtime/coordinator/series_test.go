package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// Where updates are short, an update costs the coordinator less than one message: each
// worker gets the leases of 16 updates in one message, and reports on them in one; the
// members are asked for these updates in one request.
func TestMessagesOfASeries(t *testing.T) {
	const workers, steps = 2, 1000
	s := reduceSpec(workers, 1000)
	s.BatchSize, s.MicroBatch, s.MaxSteps = 24, 12, steps
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	members, coordinator := newTap(), newTap()
	b := unserved(t, s, linear{size: 1000})
	b.tapped, b.options.SeriesTime = members, time.Hour
	b.options.Workers = &tapped{b.options.Workers, coordinator}
	b.serve()
	if st := b.run(); st.Phase != spec.Succeeded || st.Step != steps {
		t.Fatalf("status %+v", st)
	}
	for _, tapped := range []*tap{members, coordinator} {
		tapped.mu.Lock()
		defer tapped.mu.Unlock()
	}
	// The first updates of a term are single ones; the series grow to 16 by doubling.
	single := int64(2*wire.MostAhead + 8)
	most := workers * (single + (steps-single)/wire.MostAhead + 4)
	for what, got := range map[string]int64{
		"leases":             coordinator.sent[wire.TypeLease].frames,
		"requests to commit": members.received[wire.TypePrepare].frames,
	} {
		if got == 0 || got > most {
			t.Errorf("%d messages with %s for %d updates, want %d at most", got, what, steps, most)
		}
	}
	// A worker reports once a second as well, and members answer workers' requests.
	for what, got := range map[string]int64{
		"reports": coordinator.received[wire.TypeReport].frames,
		"answers": members.sent[wire.TypeAnswer].frames,
	} {
		if got == 0 || got > steps {
			t.Errorf("%d messages with %s for %d updates, want less than half of %d", got, what, steps, workers*steps)
		}
	}
}

// A series of any length gives the same bits with any number of members, also where some
// of them have no lease of an update, and where updates are skipped, whose numbers in
// Adam's recipe differ.
func TestSeriesHaveTheSameBits(t *testing.T) {
	spoil := func(records []int64) bool {
		return slices.ContainsFunc(records, func(r int64) bool { return r%300 == 5 })
	}
	for _, optimizer := range []string{spec.OptimizerSGD, spec.OptimizerAdam} {
		want := ""
		for _, members := range []int{1, 2, 3, 6} {
			for _, series := range []time.Duration{time.Nanosecond, time.Hour} {
				s := reduceSpec(members, 20)
				if s.Optimizer.Name = optimizer; optimizer == spec.OptimizerAdam {
					s.Optimizer.Momentum, s.LearningRate = 0, 0.01
				}
				b := newBench(t, s, linear{size: 1000, spoil: spoil})
				b.options.SeriesTime = series
				if st := b.run(); st.Phase != spec.Succeeded || st.Records != 600*20 || st.Skipped == 0 {
					t.Fatalf("status %+v", st)
				}
				got := hashed(b.parameters(), 0)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s, %d members, series of %v: %s, want %s", optimizer, members, series, got, want)
				}
			}
		}
	}
}

// Members that come and go within series change nothing: no record is lost or counted
// twice, no checkpoint is used, and the bits stay.
func TestMembersComeAndGoWithinSeries(t *testing.T) {
	undisturbed := newBench(t, reduceSpec(2, 200), linear{size: 1000})
	if st := undisturbed.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	want := hashed(undisturbed.parameters(), 0)
	b := newBench(t, reduceSpec(4, 200), linear{size: 1000})
	b.options.SeriesTime = time.Hour
	b.spaced = 3*wire.MostAhead + 5 // so that series have begun
	st := disturb(t, b, 12)
	if st.Phase != spec.Succeeded || st.Records != 600*200 || st.Step != 12*200 {
		t.Fatalf("status %+v", st)
	}
	if got := hashed(b.parameters(), 0); got != want {
		t.Errorf("the parameters are %s, undisturbed %s", got, want)
	}
	formed := 0
	for _, e := range b.lines() {
		if e.Type != spec.EventRestore {
			continue
		}
		if formed++; formed > 1 && !strings.HasPrefix(e.Message, "attached to ") {
			t.Errorf("the run went back: %+v", e)
		}
	}
	if formed < 4 {
		t.Errorf("%d groups were formed", formed)
	}
}

// A run that is stopped within a series ends with a whole update and its checkpoint.
func TestStopWithinASeries(t *testing.T) {
	s := reduceSpec(2, 100000)
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	b := newBench(t, s, linear{size: 1000})
	stop := make(chan struct{})
	b.options.Stop, b.options.SeriesTime = stop, time.Hour
	go func() {
		b.until("some updates", func() bool { return b.seen("update") >= 100 })
		close(stop)
	}()
	st := b.run()
	if st.Phase != spec.Stopped || st.Step < 100 || st.Saved != st.Step {
		t.Fatalf("status %+v", st)
	}
	if updates := b.seen("update"); int64(updates) != st.Step {
		t.Errorf("%d updates in the history of %d steps", updates, st.Step)
	}
}

// Evaluations and checkpoints are of the steps that the specification names.
func TestSeriesEndBeforeEvaluations(t *testing.T) {
	s := reduceSpec(2, 40)
	s.Evaluation.EverySteps, s.Checkpoint.EverySteps = 37, 50
	b := newBench(t, s, linear{size: 1000})
	b.options.SeriesTime = time.Hour
	if st := b.run(); st.Phase != spec.Succeeded || st.Step != 480 {
		t.Fatalf("status %+v", st)
	}
	evaluations := 0
	for _, e := range b.lines() {
		if e.Type == spec.EventEvaluation && e.Step != 480 {
			if evaluations++; e.Step%37 != 0 {
				t.Errorf("evaluation of step %d", e.Step)
			}
		}
	}
	if evaluations != 12 {
		t.Errorf("%d evaluations of 480 steps", evaluations)
	}
}

// The ledger gets all updates that a member remembers, and the run goes back to a
// checkpoint where one is forgotten.
func TestLedgerLacksUpdatesOfASeries(t *testing.T) {
	taken := func(i int64) []spec.Contribution {
		return []spec.Contribution{{Start: 10 * i, End: 10*i + 5}, {Start: 10*i + 5, End: 10*i + 10}}
	}
	h := wire.Holding{Version: 9, Decision: new(wire.Apply), Taken: taken(8)}
	h.Before = []wire.Past{wire.PastOf(false, taken(6)), wire.PastOf(true, taken(7))}
	for end := int64(5); end <= 10; end++ {
		records, ok := findLacking(&h, end)
		if want := end >= 6 && end <= 9; ok != want || ok && int64(len(records)) != 9-end {
			t.Fatalf("the ledger ends at %d: %v, %+v", end, ok, records)
		}
		for i, r := range records {
			if step := end + 1 + int64(i); r.Step != step || r.Start != 10*(step-1) || r.End != 10*step || r.Skipped != (step == 8) {
				t.Errorf("the ledger ends at %d: record %+v", end, r)
			}
		}
	}
	if _, ok := findLacking(&wire.Holding{Version: 9, Before: h.Before}, 8); ok {
		t.Error("a member without a decision knows the newest update")
	}
}

// Series grow by doubling, after the first updates of a term, as long as they are short.
func TestPace(t *testing.T) {
	p := newPace(0)
	p.begin()
	now := time.Unix(0, 0)
	made := func(n int, each time.Duration) int {
		now = now.Add(time.Duration(n) * each)
		p.take(n, now)
		return p.updates
	}
	for i := range 2*wire.MostAhead - 1 {
		if got := made(1, time.Millisecond); got != 1 {
			t.Fatalf("a series of %d after %d updates", got, i+1)
		}
	}
	var got []int
	for _, each := range []time.Duration{1, 1, 1, 1, 1, 5, 30, 100, 1} {
		got = append(got, made(p.updates, each*time.Millisecond))
	}
	if want := []int{2, 4, 8, 16, 16, 10, 1, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("series of %v, want %v", got, want)
	}
	p.pause()
	if got := made(2, time.Hour); got != 2 {
		t.Errorf("the time of an evaluation counts: a series of %d", got)
	}
}

// Workers have as few leases as possible, in as few blocks.
func TestShareOut(t *testing.T) {
	for _, tt := range []struct {
		leases, workers int
		want            string
	}{
		{2, 2, "[1 1] [0 1]"}, {8, 2, "[4 4] [0 1]"}, {5, 2, "[2 1 1 1] [0 1 1 0]"}, {1, 3, "[1] [0]"}, {5, 4, "[2 1 1 1] [0 1 2 3]"}, {8, 3, "[2 2 1 1 1 1] [0 1 2 2 0 1]"},
	} {
		lengths, shares := shareOut(tt.leases, tt.workers)
		if got := fmt.Sprint(lengths, " ", shares); got != tt.want {
			t.Errorf("%d leases for %d workers: %s, want %s", tt.leases, tt.workers, got, tt.want)
		}
	}
}

// A worker that hangs in an update within a series loses its leases, and the others go on.
func TestExpiredLeaseOfASeries(t *testing.T) {
	hangs := make(chan struct{})
	var steps atomic.Int64
	s := reduceSpec(2, 100000)
	s.Worker.MinReplicas, s.MaxSteps = 1, 3000
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	b := newBench(t, s, linear{size: 1000, fails: func([]int64) error {
		if steps.Add(1) == 1001 {
			<-hangs
		}
		return nil
	}})
	b.options.LeaseTimeout, b.options.SeriesTime = 2*time.Second, time.Hour
	go func() {
		b.until("the others go on", func() bool { return b.seen("update") >= 2000 })
		close(hangs)
	}()
	if st := b.run(); st.Phase != spec.Succeeded || st.Step != 3000 {
		t.Errorf("status %+v", st)
	}
	if !strings.Contains(b.logs.String(), "worker makes no progress") {
		t.Error("the lease did not expire")
	}
}

// A run goes on from the member that remembers the updates which the ledger lacks, in any
// order of the members.
func TestAttachToTheBestMemory(t *testing.T) {
	taken := func(i int64) []spec.Contribution { return []spec.Contribution{{Start: 10 * i, End: 10*i + 10}} }
	old := wire.Holding{Term: 3, Version: 9, To: 4, Decision: new(wire.Apply), Taken: taken(8)}
	young := old
	young.Follows = true
	for i := range int64(3) {
		old.Before = append(old.Before, wire.PastOf(false, taken(5+i)))
	}
	a := new(allReduce)
	a.workload = &workload.Workload{Vars: []model.Var{{Name: "w", Len: 4}}}
	for source, held := range [][]wire.Holding{{old, young}, {young, old}} {
		at, ok := a.attachable(held, []int64{3}, 6)
		if !ok || at.source != source || len(at.lacking) != 3 || at.lacking[0].Step != 7 || at.lacking[0].Start != 60 {
			t.Errorf("%v: %+v", ok, at)
		}
	}
}
