package ps

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/wire"
)

// A contribution that is named may be on its way: it is waited for as long as it
// comes, and the coordinator hears of the one that does not.
func TestNamedContributionsAreWaitedFor(t *testing.T) {
	one := []float32{1, 1, 1, 1}
	named := wire.Prepare{Term: 3, Version: 10, IDs: []int64{1, 2}, Sessions: []string{"a", "b"}, Weight: 2, Alone: &recipe}
	for name, tt := range map[string]struct {
		arrival time.Duration
		happens func(s *Server)
		missing int64
	}{
		"comes late":           {time.Hour, func(s *Server) { s.take(push(2, true, 10), one) }, 0},
		"takes long to arrive": {time.Nanosecond, func(s *Server) { s.take(push(2, true, 10), one) }, 0},
		"breaks off":           {time.Hour, func(s *Server) { s.mu.Lock(); s.settle(2, false); s.mu.Unlock() }, 2},
		"is refused":           {time.Hour, func(s *Server) { s.take(push(2, true, 9), one) }, 2},
		"never begins":         {time.Nanosecond, nil, 2},
		"has no connection":    {time.Hour, func(s *Server) { s.mu.Lock(); delete(s.coming, 2); s.mu.Unlock(); s.meet("b", -1) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := restored(t, io.Discard)
			s.arrival = tt.arrival
			s.meet("b", 1) // of "a", what is named is here
			if a := s.take(push(1, true, 10), slices.Clone(one)); a != (wire.Answer{}) {
				t.Fatal(a)
			}
			if tt.happens != nil {
				s.expect(2)
			}
			answer := make(chan wire.Answer)
			go func() { answer <- s.prepare(context.Background(), named) }()
			if tt.happens != nil {
				tt.happens(s)
			}
			a := <-answer
			if a.Missing != tt.missing || a.Finite != (tt.missing == 0) || (s.version == 11) != (tt.missing == 0) {
				t.Errorf("%+v, version %d", a, s.version)
			}
			if tt.missing != 0 && (s.sum != nil || len(s.pending) != 1) {
				t.Error("something was done without it")
			}
			if s.Late() != 0 {
				t.Errorf("%d timers fired for connections that had ended", s.Late())
			}
		})
	}
}

// Whoever is waited for when a term ends is not waited for any longer.
func TestWaitingEndsWithTheTerm(t *testing.T) {
	s := restored(t, io.Discard)
	s.arrival = time.Hour
	answer := make(chan wire.Answer)
	go func() {
		answer <- s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 1, Alone: &recipe})
	}()
	for a := (wire.Answer{}); a.Refused == ""; { // whichever comes first
		a = s.keep(wire.CutRequest{Term: 4, Version: 10})
	}
	if a := <-answer; a.Refused == "" || a.Term != 4 {
		t.Errorf("answered with %+v", a)
	}
}

// A server's work fills more cores the more is pushed for an update.
func TestCoresFollowTheWork(t *testing.T) {
	s := newServer(io.Discard)
	var heard []int
	s.Fit = func(cores int) { heard = append(heard, cores) }
	n := perCore
	a := restore(t, s, wire.Restore{Term: 1, To: n, Recipe: recipe, Vars: []model.Var{{Name: "w", Len: n}}}, make([]float32, n))
	if a != (wire.Answer{}) {
		t.Fatalf("restore: %+v", a)
	}
	for _, n := range []int{2, 1, -3} {
		s.meet("a", n)
	}
	if want := []int{1, 3, 4, 1}; !slices.Equal(heard, want) {
		t.Errorf("cores %v, want %v", heard, want)
	}
}

// A server that ends does not wait: a worker that leaves an all-reduce may have been
// asked for an update that is being computed.
func TestWaitingEndsWithTheServer(t *testing.T) {
	s := restored(t, io.Discard)
	s.arrival = time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	answer := make(chan wire.Answer)
	go func() {
		answer <- s.prepare(ctx, wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 1, Alone: &recipe})
	}()
	cancel()
	if a := <-answer; a.Refused == "" || s.version != 10 {
		t.Errorf("%+v, version %d", a, s.version)
	}
}
