package ps

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

var credentials = wire.Credentials{Token: "0123456789abcdef0123456789abcdef"}

var recipe = optimizer.Recipe{LearningRate: 0.5, Momentum: 0.5}

func newServer(applied io.Writer) *Server {
	return New(0, credentials, nil, applied, slog.New(slog.DiscardHandler))
}

// restored is a server of the span [2, 6) at version 10 of term 3.
func restored(t *testing.T, applied io.Writer) *Server {
	t.Helper()
	s := newServer(applied)
	s.place = checkpoint.Folder(t.TempDir())
	a := restore(t, s, wire.Restore{
		Term: 3, Version: 10, From: 2, To: 6, Recipe: recipe,
		Vars: []model.Var{{Name: "w", Len: 4}},
	}, []float32{1, 2, 3, 4})
	if a != (wire.Answer{}) {
		t.Fatalf("restore: %+v", a)
	}
	return s
}

func push(id int64, exact bool, version int64) wire.Push {
	return wire.Push{ID: id, Version: version, Exact: exact, Weight: 1, Leaves: 1, Contribution: spec.Contribution{
		Term: 3, Start: id, End: id + 1,
	}}
}

func values(t *testing.T, s *Server, term, version int64) []float32 {
	t.Helper()
	_, held, refused := s.pull(wire.Pull{Term: term, Version: version, Have: -1}, nil)
	if refused != nil {
		t.Fatalf("pull: %+v", refused)
	}
	defer s.letGo(held)
	return slices.Clone(held.v)
}

func TestExactlyTheNamedContributionsAreApplied(t *testing.T) {
	var applied bytes.Buffer
	s := restored(t, &applied)
	for id := range int64(4) {
		v := float32(int(1) << id)
		if a := s.take(push(id, true, 10), []float32{v, v, v, v}); a != (wire.Answer{}) {
			t.Fatalf("push %d: %+v", id, a)
		}
	}
	if a := s.take(push(2, true, 10), make([]float32, 4)); a.Refused == "" {
		t.Error("a repeated push was taken")
	}
	p := wire.Prepare{Term: 3, Version: 10, IDs: []int64{3, 0}, Discard: []int64{1}, Weight: 2}
	if a := s.prepare(context.Background(), p); !a.Finite || math.Abs(a.SquaredNorm-4*4.5*4.5) > 1e-12 {
		t.Fatalf("prepare: %+v", a)
	}
	if diff := cmp.Diff([]float32{1, 2, 3, 4}, values(t, s, 3, 10)); diff != "" {
		t.Errorf("prepared is not applied: %s", diff)
	}
	if a := s.apply(wire.Apply{Term: 3, Version: 10, Scale: 1, Recipe: recipe}); a != (wire.Answer{}) {
		t.Fatalf("apply: %+v", a)
	}
	// The mean gradient is (8+1)/2, the rate 0.5.
	if diff := cmp.Diff([]float32{-1.25, -0.25, 0.75, 1.75}, values(t, s, 3, 11)); diff != "" {
		t.Error(diff)
	}
	if len(s.pending) != 0 {
		t.Errorf("%d contributions wait that can never be named", len(s.pending))
	}
	var last spec.Event
	lines := strings.Split(strings.TrimSpace(applied.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if len(last.Taken) != 2 || last.Taken[0].Start != 3 || last.Taken[1].Start != 0 || last.Step != 11 {
		t.Errorf("the log says %+v", last)
	}
}

// What a taken back lease has pushed, or will push, is forgotten; the ids are
// kept only as long as it can come.
func TestDiscardedContributionsAreForgotten(t *testing.T) {
	s := restored(t, io.Discard)
	s.exact = true
	take := func(id, version int64) wire.Answer {
		return s.take(push(id, true, version), []float32{1, 1, 1, 1})
	}
	for _, id := range []int64{1, 5} {
		if a := take(id, 10); a != (wire.Answer{}) {
			t.Fatal(a)
		}
	}
	if a := s.forget(wire.Discard{Term: 3, Version: 10, IDs: []int64{5, 6, 7}}); a != (wire.Answer{}) {
		t.Fatalf("discard: %+v", a)
	}
	for _, bad := range []wire.Discard{{Term: 2, Version: 10, IDs: []int64{1}}, {Term: 3, Version: 11, IDs: []int64{1}}} {
		if a := s.forget(bad); a.Refused == "" {
			t.Errorf("discard %+v: %+v", bad, a)
		}
	}
	if len(s.pending) != 1 {
		t.Errorf("%d contributions wait", len(s.pending))
	}
	if a := take(6, 10); a.Refused == "" {
		t.Error("a contribution that was discarded before it came was taken")
	}
	if a := s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 1, Alone: &recipe}); a.Error != "" || a.Refused != "" {
		t.Fatalf("prepare: %+v", a)
	}
	if len(s.void) != 0 || take(7, 10).Refused == "" {
		t.Errorf("%d discarded ids are kept, or count", len(s.void))
	}
}

// Blocks are the branches of the tree that all leases are added up in.
func TestBlocksAreAddedUpAsTheirLeases(t *testing.T) {
	v := []float32{1e8, 1, -1e8, 1, 3e7, -3e7, 5} // whose sum depends on the order of adding
	total := func(blocks ...int) float32 {
		s := restored(t, io.Discard)
		var ids []int64
		at := 0
		for i, n := range blocks {
			tree := engine.Tree{Merge: optimizer.Add}
			for _, leaf := range v[at : at+n] {
				tree.Add([]float32{leaf, 0, 0, 0}, 1)
			}
			tree.Finish()
			p := push(int64(i), true, 10)
			p.Leaves = n
			if a := s.take(p, tree.Sums()); a != (wire.Answer{}) {
				t.Fatal(a)
			}
			ids, at = append(ids, int64(i)), at+n
		}
		if a := s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: ids, Weight: float64(len(ids))}); a.Error != "" || a.Refused != "" {
			t.Fatal(a)
		}
		return s.sum.values()[0]
	}
	want := ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6])
	for _, blocks := range [][]int{{1, 1, 1, 1, 1, 1, 1}, {4, 3}, {2, 2, 2, 1}, {4, 2, 1}, {7}, {2, 2, 3}, {1, 1, 2, 1, 1, 1}} {
		if got := total(blocks...); got != want {
			t.Errorf("blocks %v: %g, want %g", blocks, got, want)
		}
	}
}

// The only server of a run needs no second message to apply what is finite.
func TestOnlyServerDecidesByItself(t *testing.T) {
	for name, v := range map[string]float32{"finite": 1, "not finite": float32(math.Inf(1))} {
		s := restored(t, io.Discard)
		if a := s.take(push(1, true, 10), []float32{v, v, v, v}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		p := wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 1, Alone: &recipe}
		want := []float32{1, 2, 3, 4}
		if v == 1 {
			want = []float32{0.5, 1.5, 2.5, 3.5}
		}
		if a := s.prepare(context.Background(), p); a.Error != "" || a.Refused != "" || a.Finite != (v == 1) {
			t.Errorf("%s: %+v", name, a)
		}
		if diff := cmp.Diff(want, values(t, s, 3, 11)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if a := s.prepare(context.Background(), p); a.Refused == "" {
			t.Errorf("%s: a repeated request was answered with %+v", name, a)
		}
		p.Version, p.IDs = 11, []int64{7}
		s.arrival = time.Millisecond
		if a := s.prepare(context.Background(), p); a.Missing != 7 || s.version != 11 {
			t.Errorf("%s: what is not here was applied: %+v", name, a)
		}
	}
}

// Who pulls reads the values of one version, whatever is applied meanwhile,
// and no second copy is kept once nobody reads.
func TestValuesThatArePulledStayAsTheyAre(t *testing.T) {
	s := restored(t, io.Discard)
	_, held, refused := s.pull(wire.Pull{Term: 3, Version: 10, Have: -1}, nil)
	if refused != nil {
		t.Fatal(refused)
	}
	for version := range int64(5) {
		if a := s.take(push(version, true, 10+version), []float32{1, 1, 1, 1}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10 + version, IDs: []int64{version}, Weight: 1})
		if a := s.apply(wire.Apply{Term: 3, Version: 10 + version, Scale: 1, Recipe: recipe}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
	}
	if diff := cmp.Diff([]float32{1, 2, 3, 4}, held.v); diff != "" {
		t.Error(diff)
	}
	s.letGo(held)
	if cmp.Diff([]float32{1, 2, 3, 4}, values(t, s, 3, 15)) == "" {
		t.Error("nothing was applied")
	}
	if n := s.Vectors(); n > 4 { // parameters, slots, the copy, and pushes, none of which came from here
		t.Errorf("%d vectors", n)
	}
}

func TestRequestsOutOfPlaceAreRefused(t *testing.T) {
	s := restored(t, io.Discard)
	if a := s.take(push(1, true, 10), []float32{1, 1, 1, 1}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	otherTerm := push(2, true, 10)
	otherTerm.Term = 2
	weightless := push(3, true, 10)
	weightless.Weight = 0
	leafless := push(8, true, 10)
	leafless.Leaves = 0
	for name, a := range map[string]wire.Answer{
		"push of an earlier term":       s.take(otherTerm, make([]float32, 4)),
		"push of an earlier version":    s.take(push(4, true, 9), make([]float32, 4)),
		"push of a later version":       s.take(push(5, false, 11), make([]float32, 4)),
		"push of another length":        s.take(push(6, true, 10), make([]float32, 3)),
		"push without weight":           s.take(weightless, make([]float32, 4)),
		"push without leases":           s.take(leafless, make([]float32, 4)),
		"prepare of an earlier version": s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 9, IDs: []int64{1}, Weight: 1}),
		"prepare of what is not there":  s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1, 7}, Weight: 2}),
		"prepare of nothing":            s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10}),
		"prepare of one twice":          s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1, 1}, Weight: 2}),
		"prepare with another weight":   s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 5}),
		"apply of nothing":              s.apply(wire.Apply{Term: 3, Version: 10, Scale: 1, Recipe: recipe}),
		"cut of another version":        s.keep(wire.CutRequest{Term: 3, Version: 11}),
		"write without a cut":           write(t, s, wire.Write{Term: 3, Checkpoint: "step-1", Part: "x"}),
	} {
		if a.Refused == "" && a.Error == "" {
			t.Errorf("%s was taken", name)
		}
	}
	if diff := cmp.Diff([]float32{1, 2, 3, 4}, values(t, s, 3, 10)); diff != "" {
		t.Error(diff)
	}
	if a := s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 1}); !a.Finite {
		t.Errorf("the one good contribution got lost: %+v", a)
	}
	bad := wire.Apply{Term: 3, Version: 10, Scale: 1, Recipe: optimizer.Recipe{LearningRate: -1}}
	if a := s.apply(bad); a.Error == "" {
		t.Error("a recipe that cannot train was applied")
	}
}

func TestNonFiniteSumsAreReported(t *testing.T) {
	for name, v := range map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1)), "overflow": math.MaxFloat32} {
		s := restored(t, io.Discard)
		for id := range int64(2) {
			if a := s.take(push(id, true, 10), []float32{0, v, 0, 0}); a != (wire.Answer{}) {
				t.Fatal(a)
			}
		}
		if a := s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{0, 1}, Weight: 2}); a.Finite || a.Error != "" || a.Refused != "" {
			t.Errorf("%s: %+v", name, a)
		}
		if a := s.apply(wire.Apply{Term: 3, Version: 10, Skip: true}); a != (wire.Answer{}) {
			t.Errorf("%s: skip: %+v", name, a)
		}
		if diff := cmp.Diff([]float32{1, 2, 3, 4}, values(t, s, 3, 11)); diff != "" {
			t.Errorf("%s: a skipped update changed values: %s", name, diff)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// The account that tests compare with the ledger is no reason to end a run.
func TestAccountThatCannotBeWritten(t *testing.T) {
	s := restored(t, fullDisk{})
	if a := s.take(push(1, true, 10), []float32{1, 2, 3, 4}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 1})
	if a := s.apply(wire.Apply{Term: 3, Version: 10, Scale: 1, Recipe: recipe}); a != (wire.Answer{}) {
		t.Errorf("apply: %+v", a)
	}
}

func TestCheckpointIsCutAnew(t *testing.T) {
	s := restored(t, io.Discard)
	if a := s.take(push(1, true, 10), []float32{1, 2, 3, 4}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	s.prepare(context.Background(), wire.Prepare{Term: 3, Version: 10, IDs: []int64{1}, Weight: 1})
	s.apply(wire.Apply{Term: 3, Version: 10, Scale: 1, Recipe: recipe})
	want := values(t, s, 3, 11)
	wantSlots := append([]float32(nil), s.slots[0].v...)
	if a := s.keep(wire.CutRequest{Term: 3, Version: 11}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	a := write(t, s, wire.Write{Term: 3, Checkpoint: "step-11", Part: "part"})
	if a.Error != "" || a.Refused != "" {
		t.Fatal(a)
	}
	// A part of the values before and one of those behind make the vector whole.
	parts := []checkpoint.Part{a.Part, zeros(t, s.place, "before", 0, 2), zeros(t, s.place, "behind", 6, 8)}
	var got, gotSlots []float32
	for _, span := range [][2]int{{0, 3}, {3, 5}, {5, 8}} {
		piece := newServer(io.Discard)
		piece.place = s.place
		r := wire.Restore{Term: 1, Version: 11, From: span[0], To: span[1], Recipe: recipe, Checkpoint: "step-11", Parts: parts}
		if a := restore(t, piece, r, nil); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		got = append(got, piece.values.v...)
		gotSlots = append(gotSlots, piece.slots[0].v...)
	}
	if diff := cmp.Diff(append([]float32{0, 0}, append(want, 0, 0)...), got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(append([]float32{0, 0}, append(wantSlots, 0, 0)...), gotSlots); diff != "" {
		t.Error(diff)
	}
	missing := wire.Restore{Term: 1, To: 8, Recipe: recipe, Checkpoint: "step-11", Parts: parts[:2]}
	piece := newServer(io.Discard)
	piece.place = s.place
	if a := restore(t, piece, missing, nil); a.Error == "" || !a.Damaged {
		t.Errorf("a checkpoint that lacks a part: %+v", a)
	}
	piece.place = checkpoint.Folder("/a\x00b") // no such place can be reached
	if a := restore(t, piece, missing, nil); a.Error == "" || a.Damaged {
		t.Errorf("a place that cannot be reached: %+v", a)
	}
}

// restore is what the coordinator asks of a server that needs nothing of it.
func restore(t testing.TB, s *Server, r wire.Restore, initial []float32) wire.Answer {
	t.Helper()
	a, err := s.restore(t.Context(), r, initial, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// write is what the coordinator asks of a server that writes by itself.
func write(t testing.TB, s *Server, w wire.Write) wire.Answer {
	t.Helper()
	a, err := s.write(t.Context(), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// zeros writes a part of zeros for a span.
func zeros(t *testing.T, place *checkpoint.Place, name string, from, to int) checkpoint.Part {
	t.Helper()
	z := make([]float32, to-from)
	part, err := place.Save(t.Context(), "step-11", name, from, [][]float32{z, z})
	if err != nil {
		t.Fatal(err)
	}
	return part
}
