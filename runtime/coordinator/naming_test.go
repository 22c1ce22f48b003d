package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// The members are asked to commit an update while its last unit is being computed:
// that unit waits for the request here. Beside it an update costs a lease, a report and
// an answer of each member, and a push and the sums of a share to each other one: of two
// members a push only.
func TestMembersAreAskedBeforeTheyReport(t *testing.T) {
	t.Run("two", func(t *testing.T) { countMessages(t, 2, 0) })
	t.Run("three", func(t *testing.T) { countMessages(t, 3, 100*3*2) })
}

// countMessages makes 100 updates with so many members, which send each other so many
// messages with sums in all.
func countMessages(t *testing.T, workers int, sums int64) {
	s, k := reduceSpec(workers, 1000), int64(workers)
	s.BatchSize, s.MicroBatch, s.MaxSteps = 10*workers, 10, 100 // which divides the 600 records
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	members, coordinator := newTap(), newTap()
	var steps atomic.Int64
	late := time.Now().Add(time.Minute)
	b := unserved(t, s, linear{size: 1000, fails: func([]int64) error {
		n := steps.Add(1)
		for asked := int64(0); n%k == 0 && asked < n-k+1; { // a request of each member for each update
			if time.Now().After(late) {
				t.Error("the members are asked for reports first")
				break
			}
			time.Sleep(100 * time.Microsecond)
			members.mu.Lock()
			asked = members.received[wire.TypePrepare].frames
			members.mu.Unlock()
		}
		return nil
	}})
	b.tapped, b.options.SeriesTime = members, time.Nanosecond // each update by itself
	b.options.Workers = &tapped{b.options.Workers, coordinator}
	st := b.run()
	if st.Phase != spec.Succeeded || st.Step != 100 || steps.Load() != 100*k {
		t.Fatalf("status %+v after %d steps", st, steps.Load())
	}
	for _, tapped := range []*tap{members, coordinator} {
		tapped.mu.Lock()
		defer tapped.mu.Unlock()
	}
	pulls := min(sums, k*(k-1))
	for _, c := range []struct {
		what        string
		got         int64
		least, most int64
	}{
		{"leases", coordinator.sent[wire.TypeLease].frames, 100 * k, 101 * k},
		{"reports", coordinator.received[wire.TypeReport].frames, 100 * k, 101 * k},
		{"requests to commit", members.received[wire.TypePrepare].frames, 100 * k, 100 * k},
		{"answers", members.sent[wire.TypeAnswer].frames, 100 * k, 110 * k},
		{"pushes", members.received[wire.TypePush].frames, 100 * k * (k - 1), 100 * k * (k - 1)},
		{"requests for sums", members.received[wire.TypePull].frames, pulls, 5 * pulls},
		{"sums", members.sent[wire.TypeValues].frames, sums, sums + sums/20},
		{"values", members.sent[wire.TypeValues].values + members.received[wire.TypePush].values, 200 * (k - 1) * 1006, 205 * (k - 1) * 1006},
	} {
		if c.got < c.least || c.got > c.most {
			t.Errorf("%s: %d, want %d to %d", c.what, c.got, c.least, c.most)
		}
	}
}

// Updates with a loss that is not finite are skipped by all members alike, whether
// they were named or not, and as parameter servers skip them.
func TestMembersSkipTheSameUpdates(t *testing.T) {
	spoil := func(records []int64) bool {
		return slices.ContainsFunc(records, func(r int64) bool { return r%97 == 5 })
	}
	train := func(s spec.Spec) (string, int) {
		t.Helper()
		b := newBench(t, s, linear{size: 5000, spoil: spoil})
		if st := b.run(); st.Phase != spec.Succeeded {
			t.Fatalf("status %+v", st)
		}
		skipped := 0
		for _, e := range b.lines() {
			if e.Type == spec.EventUpdate && e.Skipped {
				skipped++
			}
		}
		return hashed(b.parameters(), 0), skipped
	}
	served := reduceSpec(2, 10)
	served.Strategy, served.ParameterServer.Replicas = spec.StrategyParameterServer, 1
	want, skips := train(served)
	if skips == 0 {
		t.Fatal("nothing is skipped")
	}
	for workers := 1; workers <= 3; workers++ {
		if got, n := train(reduceSpec(workers, 10)); got != want || n != skips {
			t.Errorf("%d members skip %d updates and end with %s, servers %d and %s", workers, n, got, skips, want)
		}
	}
}

// A run that is stopped ends with a whole update, though the members were asked to
// make it before.
func TestNamedUpdateIsMadeBeforeTheEnd(t *testing.T) {
	s := reduceSpec(2, 100000)
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	b := unserved(t, s, linear{size: 1000, fails: func([]int64) error { time.Sleep(time.Millisecond); return nil }})
	stop := make(chan struct{})
	b.options.Stop = stop
	go func() {
		b.until("some updates", func() bool { return b.seen("update") >= 5 })
		close(stop)
	}()
	st := b.run()
	if st.Phase != spec.Stopped || st.Step < 5 {
		t.Fatalf("status %+v", st)
	}
	if updates := b.seen("update"); int64(updates) != st.Step {
		t.Errorf("%d updates in the history of %d steps", updates, st.Step)
	}
}

// An error within a named update costs its worker, and nothing else.
func TestErrorInNamedUpdate(t *testing.T) {
	train := func(e linear) string {
		t.Helper()
		b := newBench(t, reduceSpec(3, 10), e)
		if st := b.run(); st.Phase != spec.Succeeded || st.Records != 600*10 {
			t.Fatalf("status %+v", st)
		}
		return hashed(b.parameters(), 0)
	}
	var steps atomic.Int64
	want := train(linear{size: 5000})
	if got := train(linear{size: 5000, fails: func([]int64) error {
		if steps.Add(1) == 40 {
			return errors.New("out of order")
		}
		return nil
	}}); got != want {
		t.Errorf("the parameters are %s, without the error %s", got, want)
	}
}

// partly is a source that cannot read one record for so many times.
type partly struct {
	dataset.Source
	errs, tried *atomic.Int64
}

func (p partly) Read(ctx context.Context, records []int64, features, labels []byte) error {
	if slices.Contains(records, 7) && p.tried.Add(1) <= p.errs.Load() {
		return errors.New("input/output error")
	}
	return p.Source.Read(ctx, records, features, labels)
}

// Errors of the same records add up over the terms that they end: only the first one ends
// a term, and the run stops or fails by as much evidence as without named updates.
func TestErrorsInNamedUpdatesAddUp(t *testing.T) {
	shapes := map[string]spec.Spec{"resident": residentSpec(1, 2)}
	for n := 1; n <= 2; n++ {
		shapes[fmt.Sprintf("%d members", n)] = reduceSpec(n, 2)
	}
	for name, s := range shapes {
		s.BatchSize, s.MicroBatch = 50, 4
		bench := func(t *testing.T, errs int64, e linear) (*bench, partly) {
			b := unserved(t, s, e)
			if !s.Deterministic {
				layered(b)
			}
			b.serve()
			away := partly{b.options.Workload.Train, new(atomic.Int64), new(atomic.Int64)}
			away.errs.Store(errs)
			b.options.Workload.Train = away
			return b, away
		}
		t.Run(name+", data come back", func(t *testing.T) {
			t.Parallel()
			b, away := bench(t, 3, linear{size: 1000})
			b.options.PlacePatience = time.Hour
			if st := b.kept(); st.Phase != spec.Succeeded || st.Records != 1200 || away.tried.Load() < 4 {
				t.Errorf("%d reads, status %+v", away.tried.Load(), st)
			}
			if all := b.restored(); len(all) > 2 {
				t.Errorf("terms begin by %q", all)
			}
		})
		t.Run(name+", data do not come back", func(t *testing.T) {
			t.Parallel()
			b, away := bench(t, 1<<60, linear{size: 1000})
			b.options.PlacePatience = time.Second
			if st := b.kept(); st.Phase != spec.Stopped || st.Cause != spec.CauseData || away.tried.Load() < 3 {
				t.Errorf("%d reads, status %+v", away.tried.Load(), st)
			}
		})
		if !s.Deterministic {
			continue
		}
		t.Run(name+", engines fail", func(t *testing.T) {
			t.Parallel()
			b, _ := bench(t, 0, linear{size: 1000, fails: func(records []int64) error {
				if slices.Contains(records, 7) {
					return errors.New("singular matrix")
				}
				return nil
			}})
			if st := b.kept(); st.Phase != spec.Failed || st.Reason != spec.ReasonEngine {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// Setbacks are those of the records, however an update is cut, until it is committed, and
// not more than so many.
func TestSetbacksAreOfRecords(t *testing.T) {
	e := newEvidence(time.Hour)
	u := func(epoch int, start, end int64) *unit {
		return &unit{update: new(update), Contribution: spec.Contribution{Epoch: epoch, Start: start, End: end}}
	}
	if err := e.crashed(u(1, 10, 20), "a", "why"); err != nil {
		t.Fatal(err)
	}
	for _, other := range []*unit{u(0, 10, 20), u(1, 0, 10), u(1, 20, 30), {Contribution: u(1, 10, 20).Contribution}} {
		if e.setbacks.findSetback(other).tried != nil {
			t.Errorf("%+v has the setback of others", other.Contribution)
		}
	}
	if e.crashed(u(1, 15, 40), "b", "why") == nil {
		t.Error("two processes prove nothing")
	}
	if e.setbacks.forget(u(1, 0, 30).Contribution); len(e.setbacks) != 0 {
		t.Errorf("committed records have setbacks %v", e.setbacks)
	}
	for i := range int64(mostSetbacks + 10) {
		if err := e.crashed(u(0, i, i+1), "a", "why"); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.setbacks) != mostSetbacks {
		t.Errorf("%d setbacks", len(e.setbacks))
	}
}
