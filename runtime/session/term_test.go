package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
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

// lostPlace is a place of claims whose highest one is known before the place answers.
type lostPlace struct {
	sync.Mutex
	highest int64
	answer  chan struct{} // closed once Claimed may answer
}

func (p *lostPlace) Claimed(ctx context.Context, _ string) (int64, error) {
	select {
	case <-p.answer:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	p.Lock()
	defer p.Unlock()
	return p.highest, nil
}

func (p *lostPlace) Claim(_ context.Context, _ string, term int64) (bool, error) {
	p.Lock()
	defer p.Unlock()
	free := term > p.highest
	p.highest = max(p.highest, term)
	return free, nil
}

// A coordinator that has lost its folder hears of the run's term by a member
// before the place has told it: it begins a term above that one. Once its term
// is claimed in the place, a higher term is that of another coordinator.
func TestMemberTellsTheTermBeforeThePlace(t *testing.T) {
	b := newBench(t, 1)
	place := &lostPlace{highest: 3, answer: make(chan struct{})}
	b.options.Claims = place
	w := b.opened()
	ended := b.begin(w)
	c := b.guest(wire.Hello{Index: 0})
	b.until("worker joined", 1)
	claimed := make(chan error, 1)
	go func() { claimed <- w.ClaimPlace(b.ctx) }()
	b.send(c, wire.TypeHeartbeat, wire.Heartbeat{Term: 3})
	for w.Term() == 1 {
		select {
		case st := <-ended:
			t.Fatalf("it ended: %+v", st)
		case <-time.After(time.Millisecond):
		}
	}
	close(place.answer)
	if err := <-claimed; err != nil || w.Term() != 4 || place.highest != 4 {
		t.Fatalf("term %d, in the place %d: %v", w.Term(), place.highest, err)
	}
	b.send(c, wire.TypeHeartbeat, wire.Heartbeat{Term: 5})
	if st := <-ended; st.Cause != spec.CauseSuperseded || !strings.Contains(st.Message, "term 4 has been followed by term 5") {
		t.Errorf("it ended with %+v", st)
	}
}
