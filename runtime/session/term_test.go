package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

func TestEveryTermIsClaimedOnce(t *testing.T) {
	c := terms(filepath.Join(t.TempDir(), "terms"))
	var mu sync.Mutex
	var all sync.WaitGroup
	taken := make(map[int64]bool)
	for range 20 {
		all.Go(func() {
			term, err := c.claim(7)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || term <= 7 || taken[term] {
				t.Errorf("term %d: %v, taken before: %v", term, err, taken[term])
			}
			taken[term] = true
		})
	}
	all.Wait()
	highest := int64(0)
	for term := range taken {
		highest = max(highest, term)
	}
	for term := range taken {
		if err := c.check(term); (err == nil) != (term == highest) || err != nil && !errors.Is(err, ErrSuperseded) {
			t.Errorf("check of term %d of %d: %v", term, highest, err)
		}
	}
	if next, err := c.claim(0); err != nil || next != highest+1 {
		t.Errorf("term %d follows %d: %v", next, highest, err)
	}
}

// A status or event that a coordinator has begun to write when another one
// follows it has no effect; it takes no settings and no further term.
func TestNothingOfAnOldTermIsWritten(t *testing.T) {
	b := newBench(t, 1)
	f := b.options.Folder
	w := b.opened()
	if err := w.Begin(); err != nil || w.Term() != 1 {
		t.Fatalf("term %d, %v", w.Term(), err)
	}
	w.Note(spec.Event{Type: spec.EventRestore})
	w.Publish()
	if err := (statusFile{w.Session}).write(w.status.Load()); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	status := read(f.StatusFile())
	next := b.opened()
	if err := next.Begin(); err != nil || next.Term() != 2 {
		t.Fatalf("term %d, %v", next.Term(), err)
	}
	next.Note(spec.Event{Type: spec.EventRestore})
	metrics := read(f.Metrics())
	w.Note(spec.Event{Type: spec.EventUpdate})
	if after := read(f.Metrics()); after != metrics || !strings.Contains(metrics, `"term":2`) {
		t.Errorf("metrics were\n%s and are\n%s", metrics, after)
	}
	w.marks = 99
	w.Publish()
	if err := (statusFile{w.Session}).write(w.status.Load()); !errors.Is(err, ErrSuperseded) || read(f.StatusFile()) != status {
		t.Errorf("status was written: %v", err)
	}
	keep := 9
	if err := (server{w.Session}).change(spec.LiveChange{CheckpointKeep: &keep}); !errors.Is(err, ErrSuperseded) {
		t.Errorf("settings were taken by a superseded coordinator: %v", err)
	}
	if err := w.Begin(); !errors.Is(err, ErrSuperseded) {
		t.Errorf("another term was begun: %v", err)
	}
}
