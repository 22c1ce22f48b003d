package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

func allow() error { return nil }

// begun opens a history that may be written to.
func begun(t *testing.T, path string, see func(spec.Event)) *File {
	t.Helper()
	f, err := Open(path, see)
	if err == nil {
		_, err = f.Renew(allow)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func add(t *testing.T, f *File, events ...spec.Event) {
	t.Helper()
	for _, e := range events {
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
	}
}

// sent returns the events after a number, asked for until none come.
func sent(t *testing.T, f *File, after int64) (all []spec.Event) {
	t.Helper()
	for {
		var out bytes.Buffer
		last, err := f.Send(&out, after)
		if err != nil {
			t.Fatal(err)
		}
		if out.Len() == 0 {
			return all
		}
		for line := range bytes.Lines(out.Bytes()) {
			var e spec.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%.200q: %v", line, err)
			}
			all = append(all, e)
		}
		after = last
	}
}

func TestGoesOnAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := begun(t, path, nil)
	for range 3 * stride {
		add(t, f, spec.Event{Type: spec.EventUpdate, Generation: 4})
	}
	f.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = file.WriteString(`{"n":769,"ty`)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	seen := int64(0)
	f, err = Open(path, func(e spec.Event) { seen = e.Number })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(spec.Event{Type: spec.EventEnd}); err == nil {
		t.Error("an earlier term's file was written to")
	}
	if damaged, err := f.Renew(allow); err != nil || damaged != 0 || seen != 3*stride {
		t.Fatalf("%d events, %d damaged, %v", seen, damaged, err)
	}
	defer f.Close()
	add(t, f, spec.Event{Type: spec.EventEnd})
	for _, after := range []int64{-5, 0, 1, stride - 1, stride, stride + 1, 3*stride - 1, 3 * stride, 3*stride + 1, 1 << 40} {
		want := 3*stride + 1 - min(max(after, 0), 3*stride+1)
		if got := int64(len(sent(t, f, after))); got != want {
			t.Errorf("after %d: %d events, want %d", after, got, want)
		}
	}
}

// A line that cannot be read, wherever it is, is moved to a file of its own.
func TestDamagedLines(t *testing.T) {
	const n = 600
	for name, tt := range map[string]struct {
		damage func([]byte)
		lost   int // lines at most
	}{
		"first line": {func(b []byte) { copy(b, "xx") }, 1},
		"middle": {func(b []byte) {
			end := len(b)/2 + bytes.IndexByte(b[len(b)/2:], '\n')
			copy(b[end+2:], "\x00\x00\x00") // in one line, however long its time is
		}, 1},
		"a page of zeros": {func(b []byte) { clear(b[len(b)/2:][:4096]) }, 4096/80 + 2},
		"last line":       {func(b []byte) { copy(b[len(b)-6:], "xxxxx\n") }, 1},
		"a line's end":    {func(b []byte) { b[bytes.IndexByte(b, '\n')] = ' ' }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics.jsonl")
			f := begun(t, path, nil)
			for step := range int64(n) {
				add(t, f, spec.Event{Type: spec.EventUpdate, Term: 1, Step: step + 1, Loss: 0.5})
			}
			f.Close()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tt.damage(data)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err = Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := len(sent(t, f, 0)); got < n-tt.lost || got >= n {
				t.Errorf("before it is written again, %d events", got)
			}
			damaged, err := f.Renew(allow)
			if err != nil || damaged != 1 {
				t.Fatalf("%d damaged lines, %v", damaged, err)
			}
			add(t, f, spec.Event{Type: spec.EventEnd})
			if got := len(sent(t, f, 0)); got < n-tt.lost+1 || got > n {
				t.Errorf("%d events", got)
			}
			aside, err := os.ReadFile(path + ".damaged-1")
			if err != nil || len(aside) == 0 {
				t.Errorf("put aside: %q, %v", aside, err)
			}
			if _, err := f.Renew(allow); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path + ".damaged-2"); err == nil {
				t.Error("the second time something was put aside again")
			}
		})
	}
}

// Older updates are merged, so that the file stays small; sums, means, extremes
// and all other events are kept.
func TestThinnedAsItGrows(t *testing.T) {
	const n = 40_000
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := begun(t, path, nil)
	f.keep = 100
	biggest := int64(0)
	for step := int64(1); step <= n; step++ {
		add(t, f, spec.Event{Type: spec.EventUpdate, Term: 1, Step: step, Records: 3, Loss: spec.Number(step % 7), Skipped: step%1000 == 0})
		if step%5000 == 0 {
			add(t, f, spec.Event{Type: spec.EventEvaluation, Step: step})
		}
		if step%50 == 0 {
			if err := f.Thin(allow); err != nil {
				t.Fatal(err)
			}
		}
		biggest = max(biggest, int64(f.updates))
	}
	if biggest > 2*100+51+100 {
		t.Errorf("up to %d lines of updates", biggest)
	}
	check := func(f *File) {
		t.Helper()
		var records, updates, skips, last, evaluations, lowest, highest int64
		sum, full := 0.0, 0
		for _, e := range sent(t, f, 0) {
			if e.Number <= last {
				t.Fatalf("event %d follows %d", e.Number, last)
			}
			last = e.Number
			switch e.Type {
			case spec.EventEvaluation:
				evaluations++
				continue
			case spec.EventUpdate:
				full++
			}
			e = toSeveral(e)
			if e.First != updates+1 || e.Step != updates+e.Count {
				t.Fatalf("steps %d to %d, %d of them, follow step %d", e.First, e.Step, e.Count, updates)
			}
			records, updates, skips = records+e.Records, updates+e.Count, skips+e.Skips
			sum += float64(e.Loss) * float64(e.Count-e.Skips)
			lowest, highest = min(lowest, int64(e.LossMin)), max(highest, int64(e.LossMax))
		}
		want := 0.0
		for step := int64(1); step <= n; step++ {
			if step%1000 != 0 {
				want += float64(step % 7)
			}
		}
		if records != 3*n || updates != n || skips != n/1000 || evaluations != 8 || lowest != 0 || highest != 6 || full < 100 || sum < 0.999*want || sum > 1.001*want {
			t.Errorf("%d records, %d updates, %d skipped, %d evaluations, losses %d to %d, sum %g (want %g), %d in full",
				records, updates, skips, evaluations, lowest, highest, sum, want, full)
		}
	}
	check(f)
	f.Close()
	again := begun(t, path, nil)
	check(again)
}

// A restore is a limit: updates before and behind it are never one event.
func TestStepsBackAreNotMergedOver(t *testing.T) {
	f := begun(t, filepath.Join(t.TempDir(), "metrics.jsonl"), nil)
	f.keep = 2
	for step := range int64(9) {
		add(t, f, spec.Event{Type: spec.EventUpdate, Term: 1, Step: step + 1})
	}
	add(t, f, spec.Event{Type: spec.EventRestore, Term: 2, Step: 3})
	for step := int64(3); step < 30; step++ {
		add(t, f, spec.Event{Type: spec.EventUpdate, Term: 2, Step: step + 1})
	}
	if err := f.Thin(allow); err != nil {
		t.Fatal(err)
	}
	behind := false
	for _, e := range sent(t, f, 0) {
		behind = behind || e.Type == spec.EventRestore
		if want := map[bool]int64{false: 1, true: 2}[behind]; e.Term != want {
			t.Errorf("%+v, behind the restore: %v", e, behind)
		}
	}
}

// Events that are added while the file is written again are kept, and readers
// hear of them.
func TestAddedWhileThinned(t *testing.T) {
	const n = 5000
	f := begun(t, filepath.Join(t.TempDir(), "metrics.jsonl"), nil)
	f.keep = 50
	var both sync.WaitGroup
	done := make(chan struct{})
	both.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := f.Thin(allow); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for step := range int64(n) {
		add(t, f, spec.Event{Type: spec.EventUpdate, Term: 1, Step: step + 1})
	}
	close(done)
	both.Wait()
	count := int64(0)
	for _, e := range sent(t, f, 0) {
		count += toSeveral(e).Count
	}
	if count != n {
		t.Errorf("%d updates", count)
	}
	if more, _ := f.HasAfter(n - 1); !more {
		t.Error("nobody hears of the last event")
	}
}

// Where another term has begun the file stays as it is.
func TestCheckedLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := begun(t, path, nil)
	f.keep = 1
	for step := range int64(9) {
		add(t, f, spec.Event{Type: spec.EventUpdate, Step: step + 1})
	}
	before, _ := os.ReadFile(path)
	no := func() error { return fmt.Errorf("another term") }
	if err := f.Thin(no); err == nil || !strings.Contains(err.Error(), "another term") {
		t.Errorf("thinned: %v", err)
	}
	if _, err := f.Renew(no); err == nil {
		t.Error("renewed")
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Errorf("was\n%s is\n%s", before, after)
	}
}

// A history that this process has begun stays the same file in its later terms, whatever its
// length is, until another process has begun one.
func TestOwnFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	stat := func() os.FileInfo {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	f := begun(t, path, nil)
	before := stat()
	for step := range int64(3) {
		add(t, f, spec.Event{Type: spec.EventUpdate, Step: step + 1})
		if _, err := f.Renew(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(before, stat()) {
			t.Fatal("the file is written again for a later term")
		}
	}
	add(t, begun(t, path, nil), spec.Event{Type: spec.EventUpdate, Step: 4})
	other := stat()
	if os.SameFile(before, other) {
		t.Fatal("another process writes to the same file")
	}
	if _, err := f.Renew(func() error { return nil }); err != nil || os.SameFile(other, stat()) {
		t.Errorf("the other process could still write to the file: %v", err)
	}
}

// Updates of a program that are merged keep the newest value of each metric.
func TestMergedMetrics(t *testing.T) {
	a := spec.Event{Type: spec.EventUpdate, Step: 1, Metrics: map[string]float64{"params": 7, "loss": 2, "gone": 1}}
	b := spec.Event{Type: spec.EventUpdate, Step: 2, Metrics: map[string]float64{"loss": 1}, NotFinite: []string{"gone"}}
	got := merge(a, b).Metrics
	if len(got) != 2 || got["params"] != 7 || got["loss"] != 1 || len(a.Metrics) != 3 {
		t.Errorf("metrics %v", got)
	}
}
