package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/usage"
)

// reported is a reporter of tests, whose clock stands at a second for each sample.
type reported struct {
	samples []any // usage.Sample, or an error
	sent    []spec.Usage
	refused error // of each report
	logs    bytes.Buffer
}

// report takes as many samples as there are.
func (r *reported) report(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	clock, next := time.Unix(0, 0), 0
	ticks := make(chan time.Time, len(r.samples))
	for range len(r.samples) - 1 {
		ticks <- time.Time{}
	}
	reporter := &reporter{
		log: slog.New(slog.NewTextHandler(&r.logs, nil)),
		now: func() time.Time { clock = clock.Add(5 * time.Second); return clock },
		send: func(_ context.Context, u spec.Usage) error {
			r.sent = append(r.sent, u)
			return r.refused
		},
		sample: func(now time.Time) (usage.Sample, error) {
			if next++; next == len(r.samples) {
				defer cancel() // after this one
			}
			if err, ok := r.samples[next-1].(error); ok {
				return usage.Sample{}, err
			}
			s := r.samples[next-1].(usage.Sample)
			s.At = now
			return s, nil
		},
	}
	reporter.run(ctx, ticks)
}

// Reports have the rates since the sample before, the newest totals, and nothing
// negative where a count falls.
func TestRatesOfUsage(t *testing.T) {
	r := &reported{samples: []any{
		usage.Sample{CPU: time.Second, Read: 1000},
		usage.Sample{CPU: 11 * time.Second, Memory: 7, Limit: 8, Received: 5, Sent: 10, Read: 1500, Written: 25, Processes: 3, Partly: "a reason"},
		errors.New("not now"),
		usage.Sample{CPU: 16 * time.Second, Read: 1400},
	}}
	r.report(t)
	want := []spec.Usage{
		{CPU: 2, Memory: 7, Limit: 8, Received: spec.Flow{Bytes: 5, PerSecond: 1}, Sent: spec.Flow{Bytes: 10, PerSecond: 2},
			Read: spec.Flow{Bytes: 1500, PerSecond: 100}, Written: spec.Flow{Bytes: 25, PerSecond: 5}, Processes: 3, Partly: "a reason"},
		{CPU: 0.5, Read: spec.Flow{Bytes: 1400}},
	}
	if d := cmp.Diff(want, r.sent); d != "" {
		t.Error(d)
	}
}

// A reporter that fails logs the first failure, and goes on.
func TestUsageCannotBeReported(t *testing.T) {
	no := errors.New("not now")
	r := &reported{samples: []any{no, no, usage.Sample{}, usage.Sample{}, usage.Sample{}}, refused: errors.New("no coordinator")}
	r.report(t)
	if len(r.sent) != 2 {
		t.Errorf("it sent %+v", r.sent)
	}
	if text := r.logs.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "not now") {
		t.Errorf("it logged:\n%s", text)
	}
}

// watchUsage waits until the usage in a run's status is as wanted, and returns it.
func watchUsage(t *testing.T, f run.Folder, what string, is func(of map[string]spec.Usage) bool) (of map[string]spec.Usage) {
	t.Helper()
	eventually(t, what, func() bool {
		st, err := f.Status()
		if err == nil && st.Phase.Final() {
			t.Fatalf("the run has ended: %+v", st)
		}
		of = st.Usage
		return err == nil && is(of)
	})
	return of
}

// reportedBy returns the condition that exactly these roles have reported.
func reportedBy(roles ...string) func(of map[string]spec.Usage) bool {
	return func(of map[string]spec.Usage) bool {
		return slices.Equal(slices.Sorted(maps.Keys(of)), roles)
	}
}

// stopWatched stops a run, and checks that its history has the usage of these roles.
func stopWatched(t *testing.T, r *trial, roles ...string) {
	t.Helper()
	client := must(r.folder.Client())
	defer client.Close()
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := r.wait(); st.Phase != spec.Stopped || st.Usage != nil {
		t.Errorf("status %+v", st)
	}
	noted := make(map[string]int)
	all, _ := events(t, r.folder.Metrics())
	for _, e := range all {
		if e.Type == spec.EventUsage {
			noted[e.Usage.Role]++
		}
	}
	for _, role := range roles {
		if noted[role] == 0 {
			t.Errorf("events about %v, none about %s", noted, role)
		}
	}
}

// The usage of all roles is in the status of a run of a program, with that of the
// program's own processes.
func TestUsageOfAProgram(t *testing.T) {
	t.Setenv("STOKE_USAGE_INTERVAL", "50ms")
	const ranks = 2
	s := programRun(t, 2, ranks, map[string]any{"steps": 1_000_000, "pause": 0.01, "serve": true})
	s.ParameterServer.Replicas = 1
	r := launchProgram(t, s)
	r.start()
	roles := []string{"coordinator", "ps-0", "worker-0", "worker-1"}
	watchUsage(t, r.folder, "all roles have reported", reportedBy(roles...))
	of := watchUsage(t, r.folder, "the program's processes are measured", func(of map[string]spec.Usage) bool {
		return of["worker-0"].Processes > ranks && of["worker-1"].Processes > ranks && of["ps-0"].Processes > ranks
	})
	if of["worker-1"].Processes != ranks+1 || of["coordinator"].Processes != 1 {
		t.Errorf("usage %+v", of)
	}
	stopWatched(t, r, roles...)
	checkLeft(t, r.folder)
}

// The same of a run of a built-in model.
func TestUsageOfATraining(t *testing.T) {
	t.Setenv("STOKE_USAGE_INTERVAL", "50ms")
	endless := long()
	endless.Epochs = 100_000
	r := launch(t, endless)
	r.start()
	roles := []string{"coordinator", "ps-0", "worker-0", "worker-1"}
	of := watchUsage(t, r.folder, "all roles have reported", reportedBy(roles...))
	for _, role := range roles {
		if u := of[role]; u.Processes != 1 || u.Memory < 1<<20 || u.Role != role {
			t.Errorf("usage of %s: %+v", role, u)
		}
	}
	watchUsage(t, r.folder, "the workers compute", func(of map[string]spec.Usage) bool { return of["worker-0"].CPU > 0 })
	stopWatched(t, r, roles...)
}

// Roles end in good order after they have reported their usage.
func TestRolesEndAfterTheirReports(t *testing.T) {
	t.Parallel()
	r := launch(t, small())
	r.start()
	if st := r.wait(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	for _, path := range must(filepath.Glob(filepath.Join(r.folder.Logs(), "*.log"))) {
		if text := must(os.ReadFile(path)); bytes.Contains(text, []byte("goroutine ")) {
			t.Errorf("%s has a crash:\n%.500s", filepath.Base(path), text)
		}
	}
}
