package ps

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/wire"
)

func TestRestoresOfWhatIsNoneAreRefused(t *testing.T) {
	for name, r := range map[string]wire.Restore{
		"span that is none":  {Term: 5, From: 3, To: 3},
		"too few values":     {Term: 5, To: 2},
		"a variable outside": {Term: 5, To: 3, Vars: []model.Var{{Offset: 2, Len: 2}}},
		"no term":            {To: 3},
	} {
		s := newServer(io.Discard)
		if a := restore(t, s, r, make([]float32, 3)); a.Error == "" && a.Refused == "" || s.term != 0 {
			t.Errorf("%s was taken: %+v", name, a)
		}
	}
}

// Nobody is obeyed in a term below the highest that was heard of, and is told so.
func TestLowerTermsAreRefused(t *testing.T) {
	dir := t.TempDir()
	requests := func(s *Server, term int64) map[string]wire.Answer {
		s.place = checkpoint.Folder(dir)
		p := push(1, true, 10)
		p.Term = term
		_, _, pulled := s.pull(wire.Pull{Term: term, Version: 10, Have: -1}, nil)
		if pulled == nil {
			pulled = new(wire.Answer)
		}
		return map[string]wire.Answer{
			"pull":    *pulled,
			"push":    s.take(p, []float32{1, 1, 1, 1}),
			"discard": s.forget(wire.Discard{Term: term, Version: 10, IDs: []int64{0}}),
			"prepare": s.prepare(context.Background(), wire.Prepare{Term: term, Version: 10, IDs: []int64{0}, Weight: 1}),
			"apply":   s.apply(wire.Apply{Term: term, Version: 10, Skip: true}),
			"cut":     s.keep(wire.CutRequest{Term: term, Version: 10}),
			"write":   write(t, s, wire.Write{Term: term, Checkpoint: "step-1", Part: "x"}),
			"restore": restore(t, s, wire.Restore{Term: term, To: 1}, []float32{7}),
		}
	}
	untouched := func(s *Server) {
		t.Helper()
		if s.term != 3 || s.version != 10 || s.values.v[0] != 1 || len(s.pending) != 1 || s.sum != nil || s.snapshot == nil {
			t.Errorf("something was done: term %d, version %d, %d contributions", s.term, s.version, len(s.pending))
		}
		if found, _ := os.ReadDir(dir); len(found) > 0 {
			t.Errorf("written: %v", found)
		}
	}
	prepared := func() *Server {
		s := restored(t, io.Discard)
		if a := s.take(push(0, true, 10), []float32{1, 1, 1, 1}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		if a := s.keep(wire.CutRequest{Term: 3, Version: 10}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		return s
	}
	s := prepared()
	for name, a := range requests(s, 2) {
		if a.Refused == "" || a.Term != 3 {
			t.Errorf("%s in term 2: %+v", name, a)
		}
	}
	untouched(s)
	if a := restore(t, s, wire.Restore{Term: 3, To: 1}, []float32{7}); a.Refused == "" {
		t.Errorf("a second restore in one term: %+v", a)
	}
	untouched(s)
	// A higher one need only be heard of.
	if _, _, a := s.pull(wire.Pull{Term: 5, Version: 10}, nil); a == nil || a.Term != 0 {
		t.Fatalf("pull of a term that has not begun: %+v", a)
	}
	for _, term := range []int64{3, 4} {
		for name, a := range requests(s, term) {
			if a.Refused == "" || a.Term != 5 {
				t.Errorf("%s in term %d: %+v", name, term, a)
			}
		}
	}
	untouched(s)
	if a := restore(t, s, wire.Restore{Term: 5, To: 1}, []float32{7}); a != (wire.Answer{}) || s.term != 5 {
		t.Errorf("restore in term 5: %+v", a)
	}
}

// Whoever waits for a version hears at once that its term is over.
func TestPullThatWaitsEndsWithItsTerm(t *testing.T) {
	s := restored(t, io.Discard)
	refused := make(chan *wire.Answer)
	go func() {
		_, _, a := s.pull(wire.Pull{Term: 3, Version: 11, Have: 10}, nil)
		refused <- a
	}()
	if a := s.keep(wire.CutRequest{Term: 4, Version: 10}); a.Refused == "" {
		t.Fatal(a)
	}
	if a := <-refused; a == nil || a.Term != 4 {
		t.Errorf("answered with %+v", a)
	}
}

// A restore that comes while a request is being answered has superseded the coordinator that
// asked, and the refusal says so, whatever its reason.
func TestRefusalCarriesTheHighestTerm(t *testing.T) {
	s := restored(t, io.Discard)
	p := wire.Prepare{Term: 3, Version: 10, IDs: []int64{0}, Weight: 1, Alone: &recipe}
	last := wire.Answer{SquaredNorm: 1, Finite: true}
	if a := restore(t, s, wire.Restore{Term: 4, To: 1, Recipe: recipe}, []float32{7}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	if a := tellTerm(s, redeemAll(s, p, nil, last)); a.Refused == "" || a.Term != 4 {
		t.Errorf("an update of term 3 after a restore in term 4: %+v", a)
	}
	c, err := credentials.Dial(t.Context(), serve(t, s), wire.Hello{Role: "coordinator"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(wire.TypeApply, wire.Apply{Term: 4, Version: 9, Skip: true}, nil); err != nil {
		t.Fatal(err)
	}
	m, err := c.Receive(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var a wire.Answer
	if err := m.Decode(&a); err != nil || a.Refused == "" || a.Term != 4 {
		t.Errorf("an update of another version: %+v, %v", a, err)
	}
}

// A server that attaches to another term gives the memory of a prepared update back.
func TestAttachGivesSumsBack(t *testing.T) {
	s := restored(t, io.Discard)
	for id := int64(1); id <= 2; id++ {
		if a := s.take(push(id, true, 10), s.sums.take()); a != (wire.Answer{}) {
			t.Fatal(a)
		}
	}
	p := wire.Prepare{Term: 3, Version: 10, IDs: []int64{1, 2}, Weight: 2}
	if a := s.prepare(t.Context(), p); !a.Finite || s.sum == nil {
		t.Fatalf("%+v", a)
	}
	if a := s.attach(wire.Attach{Term: 4, Held: 3, Version: 10}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	if len(s.sums.free) != s.sums.made {
		t.Errorf("%d of %d buffers are free", len(s.sums.free), s.sums.made)
	}
}
