package coordinator

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// The members are asked to commit an update while its last unit is being computed:
// that unit waits for the request here. Beside it an update costs a lease, a report and
// an answer of each member, and a push and the sums of a share to each other one.
func TestMembersAreAskedBeforeTheyReport(t *testing.T) {
	s := reduceSpec(2, 1000)
	s.BatchSize, s.MicroBatch, s.MaxSteps = 24, 12, 100
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	members, coordinator := newTap(), newTap()
	var steps atomic.Int64
	late := time.Now().Add(time.Minute)
	b := unserved(t, s, linear{size: 1000, fails: func([]int64) error {
		n := steps.Add(1)
		for asked := int64(0); n%2 == 0 && asked < n-1; { // two requests for each update
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
	b.tapped = members
	b.options.Workers = &tapped{b.options.Workers, coordinator}
	st := b.run()
	if st.Phase != spec.Succeeded || st.Step != 100 || steps.Load() != 200 {
		t.Fatalf("status %+v after %d steps", st, steps.Load())
	}
	for _, tapped := range []*tap{members, coordinator} {
		tapped.mu.Lock()
		defer tapped.mu.Unlock()
	}
	for _, c := range []struct {
		what        string
		got         int64
		least, most int64
	}{
		{"leases", coordinator.sent[wire.TypeLease].frames, 200, 202},
		{"reports", coordinator.received[wire.TypeReport].frames, 200, 202},
		{"requests to commit", members.received[wire.TypePrepare].frames, 200, 200},
		{"answers", members.sent[wire.TypeAnswer].frames, 200, 220},
		{"pushes", members.received[wire.TypePush].frames, 200, 200},
		{"requests for sums", members.received[wire.TypePull].frames, 2, 10},
		{"sums", members.sent[wire.TypeValues].frames, 200, 210},
		{"values", members.sent[wire.TypeValues].values + members.received[wire.TypePush].values, 200 * 1006, 205 * 1006},
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
