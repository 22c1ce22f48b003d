package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// over makes a run that has ended in that phase, and its launcher.
func over(t *testing.T, phase spec.Phase) (*Launcher, string, run.Folder) {
	t.Helper()
	p, id, f := made(t, "op")
	set(t, f, phase)
	return New(string(p), func(*spec.Spec) (string, error) { return "", errors.New("no trainer") }), id, f
}

func set(t *testing.T, f run.Folder, phase spec.Phase) {
	t.Helper()
	if err := run.WriteJSON(f.StatusFile(), spec.Status{Run: f.Name(), Phase: phase}); err != nil {
		t.Fatal(err)
	}
}

func say(t *testing.T, path string, lines ...string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(strings.Join(lines, "\n"))
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Checkpoints of all versions count.
func TestNewestCheckpoint(t *testing.T) {
	l, id, f := over(t, spec.Stopped)
	for name, want := range map[string]int64{
		"": -1, ".new-1": -1, "final": -1, "step-x": -1,
		"step-000000000087": 87, "step-000000000120-term-000003": 120, "final-term-000003": -1,
	} {
		if err := os.RemoveAll(f.Checkpoints()); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(f.Checkpoints(), name), 0o700); err != nil {
			t.Fatal(err)
		}
		if s, err := l.Status(t.Context(), id); err != nil || s.Saved != -1 {
			t.Errorf("%q, without a manifest: step %d, %v", name, s.Saved, err)
		}
		say(t, filepath.Join(f.Checkpoints(), name, "manifest.json"), "{}")
		if s, err := l.Status(t.Context(), id); err != nil || s.Saved != want {
			t.Errorf("%q: step %d, %v", name, s.Saved, err)
		}
	}
}

// The finished model counts, at the step that its manifest names: of several,
// the newest one that has a manifest which can be read.
func TestFinishedModelIsACheckpoint(t *testing.T) {
	for _, name := range []string{"final", spec.FinalName(7)} { // of all versions
		t.Run(name, func(t *testing.T) { finishedModel(t, name) })
	}
	l, id, f := over(t, spec.Stopped)
	for i, name := range []string{spec.FinalName(3), spec.FinalName(20), "final"} {
		folder := filepath.Join(f.Checkpoints(), name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		say(t, filepath.Join(folder, "manifest.json"), fmt.Sprintf(`{"step": %d}`, i))
	}
	if s, err := l.Status(t.Context(), id); err != nil || s.Saved != 1 {
		t.Errorf("of three finished models: step %d, %v", s.Saved, err)
	}
}

func finishedModel(t *testing.T, name string) {
	l, id, f := over(t, spec.Stopped)
	final := filepath.Join(f.Checkpoints(), name)
	earlier := filepath.Join(f.Checkpoints(), "step-000000000087")
	for _, folder := range []string{final, earlier} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	saved := func(manifest string, want int64) {
		t.Helper()
		if err := run.WriteFile(filepath.Join(final, "manifest.json"), []byte(manifest)); err != nil {
			t.Fatal(err)
		}
		if s, err := l.Status(t.Context(), id); err != nil || s.Saved != want {
			t.Errorf("final with manifest %q: step %d, want %d, %v", manifest, s.Saved, want, err)
		}
	}
	saved(`{"step": 120, "run": "x"}`, 120)
	for _, damaged := range []string{`{"step": 12`, `{"step": "x"}`, `{"step": -5}`, `[]`, ""} { // nobody can go on from it
		saved(damaged, -1)
	}
	say(t, filepath.Join(earlier, "manifest.json"), "{}")
	saved(`{"step": 120}`, 120)
	saved(`{"step": 12`, 87)
}

func TestLogsAreInTheOrderOfTime(t *testing.T) {
	l, id, f := over(t, spec.Failed)
	at := func(s int) string {
		return fmt.Sprintf("time=2026-01-02T03:04:%02d.000Z level=INFO msg=%d", s, s)
	}
	say(t, f.Log("worker", 0), at(1), at(4), "panic: x", "goroutine 1", "")
	say(t, f.Log("worker", 1), at(2), at(3), at(5)) // no end of its last line
	say(t, f.Output("worker", 1), "printed", "")
	say(t, f.Log("coordinator", 0), at(6), "")
	say(t, filepath.Join(f.Logs(), "applied-0.jsonl"), "{}", "")
	say(t, filepath.Join(f.Logs(), "launch.log"), "nothing", "")
	tests := []struct {
		want launch.LogOptions
		got  []string
	}{
		{launch.LogOptions{}, []string{"worker-1 stdout printed", "worker-0 stderr 1", "worker-1 stderr 2", "worker-1 stderr 3", "worker-0 stderr 4",
			"worker-0 stderr panic: x", "worker-0 stderr goroutine 1", "worker-1 stderr 5", "coordinator stderr 6"}},
		{launch.LogOptions{Role: "worker-1"}, []string{"worker-1 stdout printed", "worker-1 stderr 2", "worker-1 stderr 3", "worker-1 stderr 5"}},
		{launch.LogOptions{Role: "worker-1", Stream: launch.Stdout}, []string{"worker-1 stdout printed"}},
		{launch.LogOptions{Role: "worker-7"}, nil},
	}
	for _, tt := range tests {
		for _, follow := range []bool{false, true} { // the run is over: following ends with it
			tt.want.Follow = follow
			var got []string
			err := l.Logs(t.Context(), id, tt.want, func(line launch.Line) error {
				_, text, found := strings.Cut(line.Text, "msg=")
				if !found {
					text = line.Text
				}
				got = append(got, line.Role+" "+line.Stream+" "+text)
				return nil
			})
			if diff := cmp.Diff(tt.got, got); err != nil || diff != "" {
				t.Errorf("%+v: %v\n%s", tt.want, err, diff)
			}
		}
	}
}

// Following gives what comes, of new processes too, and ends with the run.
func TestLogsAndMetricsAreFollowed(t *testing.T) {
	l, id, f := over(t, spec.Running)
	self, err := run.Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WriteJSON(f.Supervisor(), run.Supervisor{Process: self}); err != nil {
		t.Fatal(err)
	}
	lines, events := make(chan string, 100), make(chan spec.Event, 100)
	ended := make(chan error, 2)
	go func() {
		ended <- l.Logs(t.Context(), id, launch.LogOptions{Follow: true}, func(line launch.Line) error { lines <- line.Text; return nil })
	}()
	go func() {
		ended <- l.Metrics(t.Context(), id, run.EventFilter{After: 1}, true, func(e spec.Event) error { events <- e; return nil })
	}()
	say(t, f.Log("worker", 0), "one", "tw")
	say(t, f.Metrics(), `{"n":1,"type":"scale"}`, `{"n":2,"type":"update","st`)
	if got := <-lines; got != "one" {
		t.Errorf("followed %q", got)
	}
	say(t, f.Log("worker", 0), "o", "")
	say(t, f.Metrics(), `ep":7}`, "")
	if got := <-lines; got != "two" {
		t.Errorf("followed %q", got)
	}
	if e := <-events; e.Number != 2 || e.Step != 7 {
		t.Errorf("followed %+v", e)
	}
	say(t, f.Log("worker", 9), "late", "last")
	if got := <-lines; got != "late" {
		t.Errorf("followed %q", got)
	}
	if err := os.Remove(f.Supervisor()); err != nil {
		t.Fatal(err)
	}
	set(t, f, spec.Succeeded)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := <-lines; got != "last" || len(lines)+len(events) > 0 {
		t.Errorf("followed %q and %d more", got, len(lines)+len(events))
	}
}

// Each term of a coordinator goes on in a file of its own, which takes the
// place of the one before.
func TestMetricsAreFollowedIntoTheNextTerm(t *testing.T) {
	l, id, f := over(t, spec.Running)
	self, err := run.Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WriteJSON(f.Supervisor(), run.Supervisor{Process: self}); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Supervisor()) // or else this process is stopped as the run's
	events, ended := make(chan int64, 100), make(chan error, 1)
	go func() {
		ended <- l.Metrics(t.Context(), id, run.EventFilter{}, true, func(e spec.Event) error { events <- e.Number; return nil })
	}()
	want := func(numbers ...int64) {
		t.Helper()
		for _, n := range numbers {
			select {
			case got := <-events:
				if got != n {
					t.Fatalf("followed event %d, want %d", got, n)
				}
			case <-time.After(time.Minute):
				t.Fatalf("event %d never came", n)
			}
		}
	}
	earlier, err := os.OpenFile(f.Metrics(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	if _, err := earlier.WriteString("{\"n\":1}\n{\"n\":2}\n{\"n\":3,\"ty"); err != nil { // killed while it wrote
		t.Fatal(err)
	}
	want(1, 2)
	if err := run.WriteFile(f.Metrics(), []byte("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n")); err != nil {
		t.Fatal(err)
	}
	want(3)
	if _, err := earlier.WriteString("pe\":\"update\"}\n{\"n\":99}\n"); err != nil { // reaches nobody
		t.Fatal(err)
	}
	say(t, f.Metrics(), `{"n":4}`, "")
	want(4)
	if err := run.WriteFile(f.Metrics(), []byte("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n{\"n\":5}\n")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Supervisor()); err != nil { // the last term's end is not missed
		t.Fatal(err)
	}
	set(t, f, spec.Succeeded)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	want(5)
	if len(events) > 0 {
		t.Errorf("followed %d more", len(events))
	}
}

// Who follows can leave, and a caller's error ends it.
func TestFollowingEnds(t *testing.T) {
	l, id, f := over(t, spec.Running)
	self, err := run.Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WriteJSON(f.Supervisor(), run.Supervisor{Process: self}); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Supervisor()) // or else this process is stopped as the run's
	say(t, f.Log("worker", 0), "one", "")
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.Logs(ctx, id, launch.LogOptions{Follow: true}, func(launch.Line) error { cancel(); return nil }); err != nil {
		t.Error(err)
	}
	full := errors.New("pipe closed")
	if err := l.Logs(t.Context(), id, launch.LogOptions{Follow: true}, func(launch.Line) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}

// A status that nothing renews is named: its coordinator may hang.
func TestOldStatusIsNamed(t *testing.T) {
	l, id, f := over(t, spec.Running)
	self, err := run.Self()
	if err == nil {
		err = run.WriteJSON(f.Supervisor(), run.Supervisor{Process: self})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Supervisor()) // before the run's processes are stopped
	for _, tt := range []struct {
		phase spec.Phase
		age   time.Duration
		want  string
	}{{spec.Running, 75 * time.Hour, "its status is 2700"}, {spec.Running, -time.Hour, ""}, {spec.Stopped, 75 * time.Hour, ""}} {
		if err := run.WriteJSON(f.StatusFile(), spec.Status{Run: id, Phase: tt.phase, Updated: time.Now().Add(-tt.age)}); err != nil {
			t.Fatal(err)
		}
		s, err := l.Status(t.Context(), id)
		if got := strings.Join(s.Warnings, " "); err != nil || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s, %v old: %q, %v", tt.phase, tt.age, got, err)
		}
	}
}

func TestLauncherNamesWhatIsNotThere(t *testing.T) {
	l, id, f := over(t, spec.Running)
	if _, err := l.Status(t.Context(), launch.ID("other")); !errors.Is(err, launch.ErrNoRun) {
		t.Error(err)
	}
	if err := l.Stop(t.Context(), launch.ID("other"), time.Second); err != nil {
		t.Errorf("a run that is not there cannot be stopped: %v", err)
	}
	if err := os.Remove(filepath.Join(string(f), markFile)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		l.Stop(t.Context(), id, time.Second), l.Change(t.Context(), id, small()), l.Logs(t.Context(), id, launch.LogOptions{}, nil),
	} {
		if !errors.Is(err, launch.ErrForeign) {
			t.Error(err)
		}
	}
	if err := run.WriteJSON(filepath.Join(string(f), markFile), mark{id, "op"}); err != nil { // for the cleanup
		t.Fatal(err)
	}
}
