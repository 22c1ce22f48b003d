package history

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
)

// sampled returns an event of usage whose numbers follow from its own.
func sampled(role string, n int) spec.Event {
	return spec.Event{Type: spec.EventUsage, Term: 1, Usage: &spec.Usage{
		Role: role, CPU: float64(n % 13), Memory: int64(n * 7919 % 1009), Processes: n % 5,
		Read: spec.Flow{Bytes: int64(n), PerSecond: float64(n % 11)},
	}}
}

// The samples of each role are bounded, in order and evenly merged. Means, maxima and
// totals are kept, and the newest samples are there in full.
func TestUsageIsThinned(t *testing.T) {
	const n, keep = 3000, 20
	roles := []string{"coordinator", "ps-0", "worker-0", "worker-1"}
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := begun(t, path, nil)
	f.keepUsage = keep
	rewrites, biggest, late := 0, 0, 0
	for i := 1; i <= n; i++ {
		for _, role := range roles {
			if role == "worker-1" && i <= n/2 { // it joins late
				late = i
				continue
			}
			add(t, f, sampled(role, i))
		}
		if i%100 == 0 {
			add(t, f, spec.Event{Type: spec.EventEvaluation, Step: int64(i)})
		}
		if err := f.Thin(func() error { rewrites++; return nil }); err != nil {
			t.Fatal(err)
		}
		biggest = max(biggest, f.samples.lines)
	}
	if limit := 2*keep*len(roles) + len(roles); biggest > limit {
		t.Errorf("up to %d lines of usage, want at most %d", biggest, limit)
	}
	if limit := 1 + n*len(roles)/(len(roles)*keep/2); rewrites > limit || rewrites == 0 {
		t.Errorf("the file was written again %d times, want at most %d", rewrites, limit)
	}
	checkUsage := func(f *File) {
		t.Helper()
		last, evaluations := int64(0), 0
		merged := make(map[string][]spec.Event)
		for _, e := range sent(t, f, 0) {
			if e.Number <= last {
				t.Fatalf("event %d follows %d", e.Number, last)
			}
			last = e.Number
			if e.Type == spec.EventEvaluation {
				evaluations++
				continue
			}
			merged[e.Usage.Role] = append(merged[e.Usage.Role], e)
		}
		if evaluations != n/100 || len(merged) != len(roles) {
			t.Errorf("%d evaluations, %d roles", evaluations, len(merged))
		}
		for role, events := range merged {
			first := 1
			if role == "worker-1" {
				first = late + 1
			}
			checkMerged(t, role, events, first, n, keep)
		}
	}
	checkUsage(f)
	f.Close()
	f = begun(t, path, nil)
	checkUsage(f)
}

// checkMerged checks the events of one role, whose samples are numbered from first to
// last.
func checkMerged(t *testing.T, role string, events []spec.Event, first, last, keep int) {
	t.Helper()
	from, widest := first, int64(0)
	for i, e := range events {
		count := samplesOf(e)
		to := from + int(count) - 1
		if to > last {
			t.Fatalf("%s: samples up to %d", role, to)
		}
		if i >= len(events)-keep && count != 1 {
			t.Errorf("%s: one of the newest %d events is %d samples", role, keep, count)
		}
		widest = max(widest, count)
		want, cpu, rate := spec.Usage{Role: role}, 0.0, 0.0
		for n := from; n <= to; n++ {
			u := sampled(role, n).Usage
			cpu, rate = cpu+u.CPU, rate+u.Read.PerSecond
			want.Memory, want.Processes = max(want.Memory, u.Memory), max(want.Processes, u.Processes)
			want.Read.Bytes = u.Read.Bytes
		}
		if d := max(math.Abs(e.Usage.CPU-cpu/float64(count)), math.Abs(e.Usage.Read.PerSecond-rate/float64(count))); d > 1e-9 {
			t.Errorf("%s: samples %d to %d: means are off by %g", role, from, to, d)
		}
		want.CPU, want.Read.PerSecond = e.Usage.CPU, e.Usage.Read.PerSecond
		if d := cmp.Diff(want, *e.Usage); d != "" {
			t.Errorf("%s: samples %d to %d: %s", role, from, to, d)
		}
		from = to + 1
	}
	if from != last+1 {
		t.Errorf("%s: the samples end at %d, want %d", role, from-1, last)
	}
	// Of lines that are about equally wide, keep/2 cover all old samples.
	if limit := int64(8 * (last - first + 1) / keep); widest > limit {
		t.Errorf("%s: one event is %d samples of %d, want at most %d", role, widest, last-first+1, limit)
	}
}

// Updates are merged in the same way with and without usage between them.
func TestUsageLeavesUpdatesAlone(t *testing.T) {
	for _, keepUsage := range []int{40, 300} { // fewer and more than updates
		t.Run(fmt.Sprint(keepUsage), func(t *testing.T) {
			var of [2][]spec.Event
			thinned := 0
			for i := range of {
				f := begun(t, filepath.Join(t.TempDir(), "metrics.jsonl"), nil)
				f.keep, f.keepUsage = 50, keepUsage
				for step := int64(1); step <= 1000; step++ {
					add(t, f, spec.Event{Type: spec.EventUpdate, Term: 1, Step: step, Loss: spec.Number(step % 7)}, spec.Event{Type: spec.EventEpoch, Step: step})
					for n := range 5 * i {
						add(t, f, sampled("worker-0", n))
					}
					if err := f.Thin(func() error { thinned += i; return nil }); err != nil {
						t.Fatal(err)
					}
				}
				f.Close()
				f = begun(t, f.path, nil) // merges, too
				for _, e := range sent(t, f, 0) {
					if e.Usage == nil {
						e.Number, e.Time = 0, time.Time{}
						of[i] = append(of[i], e)
					}
				}
			}
			if d := cmp.Diff(of[0], of[1]); d != "" {
				t.Errorf("without usage (-), with it (+): %s", d)
			}
			if thinned < 40 {
				t.Errorf("thinned %d times", thinned)
			}
		})
	}
}

// Samples that are merged have the place of the last one, on each side of other
// events.
func TestMergedUsageHasTheLastPlace(t *testing.T) {
	f := begun(t, filepath.Join(t.TempDir(), "metrics.jsonl"), nil)
	f.keepUsage = 2
	add(t, f, sampled("worker-0", 1), spec.Event{Type: spec.EventScale}, sampled("worker-0", 2), sampled("worker-0", 3), sampled("worker-0", 4), sampled("worker-0", 5))
	if err := f.Thin(allow); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range sent(t, f, 0) {
		got += fmt.Sprintf("%d %s %d, ", e.Number, e.Type, e.Count)
	}
	if want := "2 scale 0, 4 usage 3, 5 usage 0, 6 usage 0, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
