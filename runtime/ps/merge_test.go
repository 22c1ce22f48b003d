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

// merging is a member of two whose own contribution, 1, is here, while a request waits for
// contributions 1 and 2.
type merging struct {
	*testing.T
	s        *Server
	own      []float32
	returned int // times that the own contribution was given back
}

func newMerging(t *testing.T, n int, lent bool) *merging {
	t.Helper()
	m := &merging{T: t, s: newServer(io.Discard)}
	group := &wire.Group{Members: []string{"127.0.0.1:1", "127.0.0.1:2"}, Mine: 1}
	vars := []model.Var{{Name: "w", Len: n}}
	if a := restore(t, m.s, wire.Restore{Term: 3, Version: 10, To: n, Vars: vars, Recipe: recipe, Exact: true, Group: group}, make([]float32, n)); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	c := &contribution{Push: push(1, true, 10), sums: m.s.sums.take()}
	if lent {
		m.s.sums.give(c.sums)
		c.sums, c.lent = make([]float32, m.s.sums.length), func() { m.returned++ }
	}
	fill(c.sums, 3)
	m.own = slices.Clone(c.sums)
	if a := accept(m.s, c); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	m.await(1, 2)
	return m
}

// fill fills a vector with values whose sums have roundings.
func fill(v []float32, divisor float32) {
	for i := range v {
		v[i] = float32(i%97+1) / divisor
	}
}

func (m *merging) await(ids ...int64) {
	m.s.awaited = &wire.Prepare{Term: 3, Version: 10, IDs: ids, Weight: float64(len(ids))}
}

// receive receives contribution 2 as push does. meanwhile is called before its last part.
func (m *merging) receive(meanwhile func()) (taken *merge, counts bool) {
	m.Helper()
	p := push(2, true, 10)
	taken = beginMerge(m.s, p)
	if taken == nil {
		m.Fatal("the contribution is not merged")
	}
	room := &taken.room
	other := make([]float32, len(room.Into))
	fill(other, 7)
	from := 0
	for i, to := range room.Ends {
		if copy(room.Into[from:to], other[from:to]); i == len(room.Ends)-1 && meanwhile != nil {
			meanwhile()
		}
		room.Here(from, to)
		from = to
	}
	if counts = taken.end(m.s, true); counts {
		if a := accept(m.s, &contribution{Push: p, sums: room.Into, lent: func() {}}); a != (wire.Answer{}) {
			m.Fatal(a)
		}
	}
	return taken, counts
}

// A contribution that is added up as it arrives makes the bits and the norms that the tree of
// both makes, in either order, and the memory of the other one is given back once.
func TestContributionsAreMergedAsTheyArrive(t *testing.T) {
	const n = 9*piece + 7
	for _, ids := range [][]int64{{1, 2}, {2, 1}} {
		for _, lent := range []bool{false, true} {
			m := newMerging(t, n, lent)
			from, to := m.s.group.Share(n, 1)
			other := make([]float32, to-from)
			fill(other, 7)
			plain := make([]float32, n)
			tree := engine.Tree{Merge: optimizer.Add, Into: plain[from:to]}
			tree.Add(m.own, 1)
			tree.Add(other, 1)
			m.await(ids...)
			m.receive(nil)
			if m.returned != 0 {
				t.Error("the own contribution is given back before the update")
			}
			r, why := takeMerge(m.s, ids)
			if r == nil || why != "" {
				t.Fatalf("the sum is not made: %q", why)
			}
			m.s.sum = r
			m.s.add(ids)
			want := &sum{weight: 2, norms: make([]float64, len(m.s.pieces)), counted: make([]bool, len(m.s.pieces))}
			want.whole = &vector{v: plain}
			wanted := want.squaredNorm(m.s.pieces)
			first := (from + piece - 1) / piece
			if !slices.Equal(m.s.group.whole.v[from:to], plain[from:to]) || r.weight != 2 || !slices.Equal(r.norms[first:], want.norms[first:]) || wanted == 0 {
				t.Errorf("ids %d, lent %v: other sums than the tree's", ids, lent)
			}
			if !slices.Equal(r.counted[first:], slices.Repeat([]bool{true}, len(m.s.pieces)-first)) {
				t.Errorf("ids %d, lent %v: some norms are not found yet", ids, lent)
			}
			if lent != (m.returned == 1) || len(m.s.sums.free) != m.s.sums.made {
				t.Errorf("ids %d, lent %v: the own contribution is given back %d times, %d of %d buffers are free", ids, lent, m.returned, len(m.s.sums.free), m.s.sums.made)
			}
			if len(m.s.pending) > 0 {
				t.Errorf("contributions are left: %v", m.s.pending)
			}
		}
	}
}

// The own contribution is given back once nothing reads it, and a merge with it is void.
func TestMergeEndsWithItsContributions(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(*merging)
		counts    bool
	}{
		"nothing":     {func(*merging) {}, true},
		"discarded":   {func(m *merging) { m.s.forget(wire.Discard{Term: 3, Version: 10, IDs: []int64{1}}) }, false},
		"skipped":     {func(m *merging) { m.s.apply(wire.Apply{Term: 3, Version: 10, Skip: true}) }, false},
		"another one": {func(m *merging) { m.s.attach(wire.Attach{Term: 4, Held: 3, Version: 10, Group: &m.s.group.Group}) }, false},
	} {
		m := newMerging(t, 64, true)
		_, counts := m.receive(func() {
			tt.meanwhile(m)
			if m.returned != 0 {
				t.Errorf("%s: the own contribution is given back while it is read", name)
			}
		})
		if counts != tt.counts {
			t.Errorf("%s: the sum counts: %v", name, counts)
		}
		if want := map[bool]int{false: 1}[counts]; m.returned != want {
			t.Errorf("%s: the own contribution is given back %d times, want %d", name, m.returned, want)
		}
	}
}

// An update of other contributions than the merged ones is not made of their sum.
func TestMergeIsOfItsUpdateOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		ids     []int64
		refused bool
	}{
		"both": {[]int64{1, 2}, false}, "the own one": {[]int64{1}, false}, "the other one": {[]int64{2}, true}, "a third": {[]int64{1, 2, 3}, true},
	} {
		m := newMerging(t, 64, true)
		m.receive(nil)
		if slices.Contains(tt.ids, 3) {
			accept(m.s, &contribution{Push: push(3, true, 10), sums: m.s.sums.take()})
		}
		r, why := takeMerge(m.s, tt.ids)
		if (why != "") != tt.refused || (r != nil) != (name == "both") {
			t.Errorf("%s: sum %v, %q", name, r != nil, why)
		}
		if name == "the own one" && m.s.pending[2] != nil {
			t.Error("a contribution without memory can still be named")
		}
	}
}

// A contribution is merged only if a waiting request lacks nothing else.
func TestMergeNeedsItsRequest(t *testing.T) {
	for name, change := range map[string]func(*merging){
		"no request":        func(m *merging) { m.s.awaited = nil },
		"three":             func(m *merging) { m.await(1, 2, 3) },
		"others":            func(m *merging) { m.await(1, 3) },
		"without the own":   func(m *merging) { m.s.drop(1) },
		"it is void":        func(m *merging) { m.s.discard([]int64{2}) },
		"the former is due": func(m *merging) { m.s.group.owed = 1 },
		"it is being read":  func(m *merging) { beginMerge(m.s, push(2, true, 10)) },
	} {
		m := newMerging(t, 64, true)
		change(m)
		if beginMerge(m.s, push(2, true, 10)) != nil {
			t.Errorf("%s: it is merged", name)
		}
	}
	m := newMerging(t, 64, true)
	beginMerge(m.s, push(2, true, 10)).end(m.s, false) // its connection is lost
	if m.s.group.merge != nil || m.s.pending[1] == nil {
		t.Error("a lost contribution leaves its merge")
	}
}
