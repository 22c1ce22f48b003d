package ps

import (
	"io"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// noise is a value per lease whose sum depends on the order of adding.
func noise(n int) []float32 {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(random.NormFloat64() * 1e4)
	}
	return v
}

// reference adds leases up as the tree is defined: the largest complete branches
// from the left, then what is left from the last to the first.
func reference(v []float32) float32 {
	if len(v) == 1 {
		return v[0]
	}
	half := 1 << (bits.Len(uint(len(v)-1)) - 1) // the largest power of 2 below
	return reference(v[:half]) + reference(v[half:])
}

func TestDeterministicSumsAreATree(t *testing.T) {
	differs := false
	for n := 1; n <= 70; n++ {
		leaves := noise(n)
		s, chain, most := &sum{tree: true}, float32(0), 0
		for _, v := range leaves {
			s.add([]float32{v})
			chain += v
			most = max(most, len(s.parts))
		}
		if want := bits.Len(uint(n)); most > want {
			t.Errorf("%d leases: %d parts at a time, want at most %d", n, most, want)
		}
		s.finish()
		if got, want := s.values()[0], reference(leaves); got != want {
			t.Errorf("%d leases: %g, want %g", n, got, want)
		}
		differs = differs || s.values()[0] != chain
		// Branches that somebody else has added up give the same.
		for width := 2; width <= 8; width *= 2 {
			whole := &sum{tree: true}
			for at := 0; at < n; at += width {
				branch := &sum{tree: true}
				for _, v := range leaves[at:min(at+width, n)] {
					branch.add([]float32{v})
				}
				branch.finish()
				whole.add(branch.values())
			}
			if whole.finish(); whole.values()[0] != s.values()[0] {
				t.Errorf("%d leases in groups of %d: %g, want %g", n, width, whole.values()[0], s.values()[0])
			}
		}
	}
	if !differs {
		t.Error("the order made no difference: this test shows nothing")
	}
}

// bounded runs updates of so many leases through a server that holds a snapshot
// meanwhile, and returns it. The snapshot is given back by done.
func bounded(t *testing.T, s *Server, leases int64, done func()) {
	t.Helper()
	s.count(2)
	if a := s.keep(wire.Cut{Term: 3, Version: 10}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	release := s.snapshot
	s.mu.Lock()
	s.snapshot = nil
	s.writing++
	s.mu.Unlock()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for { // training has come to wait for the checkpoint, or has not
			s.mu.Lock()
			stalled := s.stalls > 0 || s.version > 11
			s.mu.Unlock()
			if stalled {
				break
			}
			time.Sleep(time.Millisecond)
		}
		done()
		s.mu.Lock()
		s.writing--
		s.letSnapshotGo(release)
		s.wake()
		s.mu.Unlock()
	}()
	id := int64(0)
	for version := int64(10); version < 13; version++ {
		weight := 0.0
		var rest []int64
		for range leases {
			id++
			weight++
			p := push(id, true, version)
			s.mu.Lock()
			s.room(1, nil)
			b := s.buffer()
			s.mu.Unlock()
			if a := s.take(p, b); a != (wire.Answer{}) {
				t.Fatal(a)
			}
			if rest = append(rest, id); len(rest) == 2 { // one worker's push waits for the other's
				if a := s.fold(wire.Fold{Term: 3, Version: version, IDs: rest}); a != (wire.Answer{}) {
					t.Fatal(a)
				}
				rest = nil
			}
		}
		p := wire.Prepare{Term: 3, Version: version, IDs: rest, Weight: weight, Alone: &recipe}
		if a := s.prepare(p); a.Error != "" || a.Refused != "" {
			t.Fatalf("%+v", a)
		}
	}
	<-written
}

// A checkpoint that is being written, moments and all, costs no memory beyond
// what a server may use: training waits for it where it must.
func TestCheckpointsStayWithinTheBound(t *testing.T) {
	const workers, slots = 2, 1
	for _, leases := range []int64{2, 3, 16, 64} {
		s := restored(t, io.Discard)
		bounded(t, s, leases, func() {})
		if n := s.Vectors(); n > 3+slots+workers {
			t.Errorf("%d leases: %d vectors, want at most %d", leases, n, 3+slots+workers)
		}
		if s.snapshot != nil || s.values.held > 0 || s.slots.held > 0 {
			t.Errorf("%d leases: something is still held", leases)
		}
	}
}

// What is saved is the version that was kept, whatever training does meanwhile.
func TestSnapshotStaysAsItIs(t *testing.T) {
	s := restored(t, io.Discard)
	if a := s.keep(wire.Cut{Term: 3, Version: 10}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	kept := s.snapshot
	for version := int64(10); version < 13; version++ {
		if a := s.take(push(version, true, version), []float32{1, 1, 1, 1}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		s.prepare(wire.Prepare{Term: 3, Version: version, IDs: []int64{version}, Weight: 1, Alone: &recipe})
	}
	if kept.values.v[0] != 1 || kept.slots.v[0] != 0 || s.values.v[0] == 1 || s.slots.v[0] == 0 {
		t.Errorf("kept %v and %v; now %v and %v", kept.values.v, kept.slots.v, s.values.v, s.slots.v)
	}
	if n := s.Vectors(); n > 5 { // both twice; pushes that are given back are used
		t.Errorf("%d vectors", n)
	}
}

func TestTreeIsTheRestoresToSay(t *testing.T) {
	s := restored(t, io.Discard)
	if a := restore(t, s, wire.Restore{Term: 4, To: 1, Tree: true}, []float32{0}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	leaves := noise(7)
	var ids []int64
	for id, v := range leaves {
		p := wire.Push{ID: int64(id), Exact: true, Weight: 1, Contribution: spec.Contribution{Term: 4}}
		if a := s.take(p, []float32{v}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		ids = append(ids, int64(id))
	}
	if a := s.fold(wire.Fold{Term: 4, IDs: ids[:3]}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	s.prepare(wire.Prepare{Term: 4, IDs: ids[3:], Weight: 7})
	if got, want := s.sum.values()[0], reference(leaves); got != want {
		t.Errorf("sum %g, want %g", got, want)
	}
}
