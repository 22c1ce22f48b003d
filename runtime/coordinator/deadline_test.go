package coordinator

import (
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// A deadline bounds the time that a run runs, and leaves what can go on.
func TestDeadlineCountsRunningTime(t *testing.T) {
	s := pointsSpec()
	s.Deadline = spec.Duration(50 * time.Hour)
	b := newBench(t, s, linear{})
	b.setStatus(func(s *spec.Status) { s.Ran = 3600 }) // the rest of 100 hours the machine was off
	st := b.run()
	if st.Phase != spec.Succeeded || st.Ran < 3600 {
		t.Fatalf("status %+v", st)
	}

	b = newBench(t, s, linear{})
	b.setStatus(func(s *spec.Status) { s.Ran = 51 * 3600 })
	st = b.run()
	if st.Phase != spec.Stopped || st.Cause != spec.CauseDeadline {
		t.Fatalf("status %+v", st)
	}
	again := b.again()
	again.options.Spec.Deadline = spec.Duration(80 * time.Hour)
	if st := again.run(); st.Phase != spec.Succeeded || st.Records != 1800 || st.Ran < 51*3600 {
		t.Errorf("with a later deadline: %+v", st)
	}
}

// A deadline passes only while there are enough workers, and not while pods wait
// for a place.
func TestDeadlineWaitsForWorkers(t *testing.T) {
	s := pointsSpec()
	s.Deadline = spec.Duration(time.Nanosecond)
	s.Worker.Replicas, s.Worker.MinReplicas = 2, 2
	b := newBench(t, s, linear{})
	done := b.begin()
	client := api.New("http://"+b.options.API.Addr().String(), token, nil)
	defer client.Close()
	waits := func(workers int) {
		t.Helper()
		var times []time.Time
		b.until("the coordinator has looked at the time again and again", func() bool {
			st, err := client.Status(b.ctx)
			if err == nil && (st.Phase != spec.Running || st.Ran != 0) {
				t.Fatalf("with %d workers: %+v", workers, st)
			}
			if err == nil && st.Workers == workers && (len(times) == 0 || !st.Updated.Equal(times[len(times)-1])) {
				times = append(times, st.Updated)
			}
			return len(times) > 3
		})
	}
	waits(0)
	go b.work(b.ctx, 0)
	waits(1)
	go b.work(b.ctx, 1)
	if st := <-done; st.Phase != spec.Stopped || st.Cause != spec.CauseDeadline || st.Ran == 0 {
		t.Errorf("with two workers: %+v", st)
	}
}

// A deadline that is over already is not put off by servers that do not come.
func TestSpentDeadlineStopsAWaitingRun(t *testing.T) {
	s := pointsSpec()
	s.Deadline = spec.Duration(time.Hour)
	b := newBench(t, s, linear{})
	b.setStatus(func(s *spec.Status) { s.Ran = 3601 })
	gone := listen(t)
	b.options.Servers = []string{gone.Addr().String()}
	gone.Close()
	if st := <-b.begin(); st.Phase != spec.Stopped || st.Cause != spec.CauseDeadline {
		t.Errorf("status %+v", st)
	}
}
