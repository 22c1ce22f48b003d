package ps

import (
	"io"
	"math"
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Another group that begins with the same parameters leaves a checkpoint in the making
// alone; a restore of other parameters ends it.
func TestCheckpointSurvivesAnotherGroup(t *testing.T) {
	alone := &wire.Group{Members: []string{"127.0.0.1:1"}}
	s := newServer(io.Discard)
	s.place = checkpoint.Folder(t.TempDir())
	begin := wire.Restore{Term: 3, Version: 10, To: 4, Group: alone}
	if a := restore(t, s, begin, []float32{1, 2, 3, 4}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	keep := func(term int64) {
		t.Helper()
		if a := s.keep(wire.CutRequest{Term: term, Version: 10}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
	}
	keep(3)
	if a := s.attach(wire.Attach{Term: 4, Held: 3, Version: 10, Group: alone}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	if a := write(t, s, wire.Write{Term: 3, Checkpoint: "step-10", Part: "x"}); a.Part.To != 4 || a.Refused != "" {
		t.Errorf("the checkpoint of the term before: %+v", a)
	}
	keep(4)
	begin.Term = 5
	if a := restore(t, s, begin, []float32{5, 6, 7, 8}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	if a := write(t, s, wire.Write{Term: 4, Checkpoint: "step-10", Part: "y"}); a.Refused == "" {
		t.Errorf("a checkpoint of parameters that were replaced: %+v", a)
	}
}

// Sums of a share that are read while their update is skipped do not count for the next
// update: its own sums have room.
func TestSumsOfADecidedUpdateDoNotCount(t *testing.T) {
	s := newServer(io.Discard)
	group := &wire.Group{Members: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	if a := restore(t, s, wire.Restore{Term: 3, Version: 10, To: 4, Group: group}, []float32{1, 2, 3, 4}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	m := Member{s}
	share := wire.Values{Term: 3, Version: 11, From: 2}
	late, lateDone := m.Room(share, 2, t.Context().Done())
	if late == nil {
		t.Fatal("sums that the update needs have no room")
	}
	if a := s.apply(wire.Apply{Term: 3, Version: 10, Skip: true}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	if lateDone() {
		t.Error("sums of a skipped update count for the next one")
	}
	share.Version = 12
	next, nextDone := m.Room(share, 2, t.Context().Done())
	if next == nil {
		t.Fatal("the sums of the next update have no room")
	}
	if &next[0] == &late[0] {
		t.Error("the sums of two updates are read into the same memory")
	}
	if !nextDone() {
		t.Error("sums of the update that is under way do not count")
	}
}

// A member holds at most 4 vectors and twice its slots: parameters and slots, once more for a
// checkpoint of each version, the sums, and a contribution of each member to its share.
func TestMemoryOfAMember(t *testing.T) {
	const n, slots, members = 64, 2, 2
	s := newServer(io.Discard)
	s.place = checkpoint.Folder(t.TempDir())
	recipe := optimizer.Recipe{Name: optimizer.Adam, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 1}
	group := &wire.Group{Members: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	vars := []model.Var{{Name: "values", Shape: []int{n}, Len: n}}
	if a := restore(t, s, wire.Restore{Term: 3, To: n, Vars: vars, Recipe: recipe, Exact: true, Group: group}, make([]float32, n)); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	m, most := Member{s}, 0
	count := func() { most = max(most, m.Values()) }
	for version := range int64(8) {
		if a := s.keep(wire.CutRequest{Term: 3, Version: version}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		var ids []int64
		for worker := range int64(members) {
			p := wire.Push{ID: members*version + worker + 1, Version: version, Exact: true, Weight: 1, Leaves: 1}
			p.Term, ids = 3, append(ids, p.ID)
			if a := m.Contribute(p, [][]float32{make([]float32, n/members)}, nil); a != (wire.Answer{}) {
				t.Fatal(a)
			}
		}
		count()
		room, done := m.Room(wire.Values{Term: 3, Version: version + 1, From: n / members}, n/members, t.Context().Done())
		if room == nil {
			t.Fatal("sums that the update needs have no room")
		}
		done()
		prepared := make(chan wire.Answer)
		go func() {
			prepared <- s.prepare(t.Context(), wire.Prepare{Term: 3, Version: version, Weight: members, IDs: ids, Alone: &recipe})
		}()
		if a := <-prepared; !a.Finite {
			t.Fatal(a)
		}
		count()
		s.mu.Lock() // the other member pulls the sums
		a, known := s.shareFor(wire.Pull{Term: 3, Version: version + 1}, group.Members[1])
		if !known || len(a.values) != n/members {
			t.Fatalf("the sums of version %d are not here", version+1)
		}
		s.letGo(a.held)
		if _, known := s.shareFor(wire.Pull{Term: 3, Version: version + 2}, group.Members[1]); known {
			t.Fatalf("the sums of version %d are here", version+2)
		}
		s.mu.Unlock()
		count()
	}
	if most > (4+2*slots)*n {
		t.Errorf("%d values in memory, %d vectors: want at most %d vectors", most, (most+n-1)/n, 4+2*slots)
	}
	if most < (3+2*slots)*n { // else the test does not count what it is about
		t.Errorf("only %d values in memory", most)
	}
}

// A member takes the squared norms of another member's share as they came with the sums, and
// finds those of the other pieces: the norm has the bits of one that finds all itself. Norms
// that are not of the share's pieces do not count.
func TestNormsComeWithTheSums(t *testing.T) {
	const n = 7*piece + 5
	group := wire.Group{Members: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	begin := func(mine int) *Server {
		s, g := newServer(io.Discard), group
		g.Mine = mine
		vars := []model.Var{{Name: "w", Len: n}}
		if a := restore(t, s, wire.Restore{Term: 3, To: n, Vars: vars, Recipe: recipe, Exact: true, Group: &g}, make([]float32, n)); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		return s
	}
	prepare := func(s *Server, values []float32, share *wire.Values) (norm float64, here []float64) {
		from, to := s.group.Share(n, s.group.Mine)
		a := Member{s}.Contribute(wire.Push{ID: 1, Exact: true, Weight: 3, Leaves: 1, Contribution: spec.Contribution{Term: 3}}, [][]float32{values[from:to]}, nil)
		if a != (wire.Answer{}) {
			t.Fatal(a)
		}
		first, last := s.group.Share(n, 1-s.group.Mine)
		share.Term, share.Version, share.From = 3, 1, first
		room, done := Member{s}.Room(*share, last-first, t.Context().Done())
		copy(room, values[first:last])
		done()
		a = s.prepare(t.Context(), wire.Prepare{Term: 3, Weight: 3, IDs: []int64{1}, Alone: &recipe})
		pulled, _ := s.shareFor(wire.Pull{Term: 3, Version: 1}, group.Members[1-s.group.Mine])
		return a.SquaredNorm, pulled.head.Norms
	}
	values := make([]float32, n)
	fill(values, 3)
	alone, norms := prepare(begin(1), values, new(wire.Values))
	if len(norms) != 4 { // the share begins in the middle of a piece and ends with the vector
		t.Fatalf("%d norms come with half of %d values, want 4", len(norms), n)
	}
	if both, _ := prepare(begin(0), values, &wire.Values{Norms: norms}); both != alone {
		t.Errorf("the squared norm is %v, and %v where the other member's norms are taken", alone, both)
	}
	other := slices.Clone(norms)
	other[0]++
	if taken, _ := prepare(begin(0), values, &wire.Values{Norms: other}); taken == alone {
		t.Error("norms that came with the sums are found again")
	}
	if taken, _ := prepare(begin(0), values, &wire.Values{Norms: other[1:]}); taken != alone {
		t.Error("norms of other pieces count")
	}
	values[n-1] = float32(math.Inf(1))
	if _, norms := prepare(begin(1), values, new(wire.Values)); norms != nil {
		t.Errorf("norms that are not finite are sent: %v", norms)
	}
}
