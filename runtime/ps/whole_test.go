package ps

import (
	"io"
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/wire"
)

// Two members that add up whole vectors make the bits that the tree of all leases makes, from
// contributions of any memory, and give lent memory back once and unused for the sums.
func TestWholeVectorsAreAddedUp(t *testing.T) {
	const n = 3*piece + 7
	for count := 1; count <= 4; count++ {
		for lent := range 1 << count { // a bit for each contribution
			s := newServer(io.Discard)
			vars := []model.Var{{Name: "w", Len: n}}
			group := wire.NewGroup([]string{"127.0.0.1:1", "127.0.0.1:2"}, 0, n)
			if a := restore(t, s, wire.Restore{Term: 3, To: n, Vars: vars, Recipe: recipe, Exact: true, Group: group}, make([]float32, n)); a != (wire.Answer{}) {
				t.Fatal(a)
			}
			plain := &sum{norms: make([]float64, len(s.pieces)), counted: make([]bool, len(s.pieces))}
			tree := engine.Tree{Merge: optimizer.Add}
			ids, loans := []int64(nil), make([]int, count)
			var memory []*float32
			var borrowed, given [][]float32 // lent memory, and what it has
			s.sum = newSum(s)
			for i := range count {
				v := s.sums.take()
				if lent>>i&1 != 0 {
					s.sums.give(v)
					v = make([]float32, n)
				}
				for k := range v {
					v[k] = float32(k%97+1) / float32(i+3)
				}
				c := &contribution{Push: push(int64(i+1), true, 0), sums: v}
				if lent>>i&1 != 0 {
					c.lent = func() { loans[i]++ }
					memory = append(memory, &v[0])
					borrowed, given = append(borrowed, v), append(given, slices.Clone(v))
				}
				if a := accept(s, c); a != (wire.Answer{}) {
					t.Fatal(a)
				}
				ids = append(ids, c.ID)
				tree.Add(slices.Clone(v), 1)
				plain.weight++
			}
			tree.Finish()
			plain.own = tree.Sums()
			s.add(ids)
			if a := s.combine(t.Context(), wire.Prepare{Term: 3}); a != nil {
				t.Fatal(a)
			}
			got := s.sum.values()
			if !slices.Equal(got, plain.own) || s.sum.squaredNorm(s.pieces) != plain.squaredNorm(s.pieces) {
				t.Errorf("%d contributions, lent %b: other sums than the tree's", count, lent)
			}
			for i, times := range loans {
				if want := lent >> i & 1; times != want {
					t.Errorf("%d contributions, lent %b: contribution %d is given back %d times", count, lent, i, times)
				}
			}
			for i, v := range borrowed {
				if !slices.Equal(v, given[i]) {
					t.Errorf("%d contributions, lent %b: lent memory has other values", count, lent)
				}
			}
			if slices.Contains(memory, &got[0]) {
				t.Errorf("%d contributions, lent %b: the sums lie in lent memory", count, lent)
			}
			tellFollowers(s, s.sum, wire.Apply{})
			for i, v := range s.spans.free {
				if slices.ContainsFunc(s.spans.free[:i], func(o []float32) bool { return &o[0] == &v[0] }) || slices.Contains(memory, &v[0]) {
					t.Errorf("%d contributions, lent %b: the pool has a buffer twice, or a lent one", count, lent)
				}
			}
			if len(s.spans.free) != s.spans.made {
				t.Errorf("%d contributions, lent %b: %d of %d buffers are free", count, lent, len(s.spans.free), s.spans.made)
			}
		}
	}
}

// A lent contribution is given back where it is refused, discarded, or of a past term.
func TestLoansEnd(t *testing.T) {
	s := newServer(io.Discard)
	group := wire.NewGroup([]string{"127.0.0.1:1", "127.0.0.1:2"}, 0, 4)
	begin := wire.Restore{Term: 3, Version: 10, To: 4, Recipe: recipe, Exact: true, Group: group}
	if a := restore(t, s, begin, []float32{1, 2, 3, 4}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	ended := 0
	lend := func(p wire.Push) wire.Answer {
		return accept(s, &contribution{Push: p, sums: make([]float32, 4), lent: func() { ended++ }})
	}
	if a := lend(push(1, true, 9)); a.Refused == "" || ended != 1 {
		t.Errorf("a late contribution: %+v, %d loans have ended", a, ended)
	}
	for id := int64(2); id <= 4; id++ {
		if a := lend(push(id, true, 10)); a != (wire.Answer{}) {
			t.Fatal(a)
		}
	}
	if a := s.forget(wire.Discard{Term: 3, Version: 10, IDs: []int64{2}}); a != (wire.Answer{}) || ended != 2 {
		t.Errorf("a discarded contribution: %+v, %d loans have ended", a, ended)
	}
	if a := s.attach(wire.Attach{Term: 4, Held: 3, Version: 10, Group: group}); a != (wire.Answer{}) || ended != 4 {
		t.Errorf("contributions of a past term: %+v, %d loans have ended", a, ended)
	}
	p := push(5, true, 10)
	if p.Term = 4; lend(p) != (wire.Answer{}) {
		t.Fatal("a contribution is refused")
	}
	begin.Term = 5
	if a := restore(t, s, begin, []float32{5, 6, 7, 8}); a != (wire.Answer{}) || ended != 5 {
		t.Errorf("contributions to other parameters: %+v, %d loans have ended", a, ended)
	}
}

// A member of a group of more members than values has a share of no value.
func TestEmptyShareIsAddedUp(t *testing.T) {
	s := newServer(io.Discard)
	group := &wire.Group{Members: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}}
	vars := []model.Var{{Name: "w", Len: 2}}
	if a := restore(t, s, wire.Restore{Term: 3, To: 2, Vars: vars, Recipe: recipe, Exact: true, Group: group}, make([]float32, 2)); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	returned := 0
	s.sum = newSum(s)
	for id := int64(1); id <= 3; id++ {
		if a := accept(s, &contribution{Push: push(id, true, 0), sums: []float32{}, lent: func() { returned++ }}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
	}
	s.add([]int64{1, 2, 3})
	if returned != 3 || s.sum.weight != 3 {
		t.Errorf("%d of 3 contributions are given back, of the weight %g", returned, s.sum.weight)
	}
}
