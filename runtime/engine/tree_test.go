package engine

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

func plus(into, left, right []float32) {
	for i, v := range right {
		into[i] = left[i] + v
	}
}

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

func TestSumsAreATree(t *testing.T) {
	differs := false
	for n := 1; n <= 70; n++ {
		leaves := noise(n)
		s, chain, most := &Tree{Merge: plus}, float32(0), 0
		for _, v := range leaves {
			s.Add([]float32{v}, 1)
			chain += v
			most = max(most, s.Parts())
		}
		if want := bits.Len(uint(n)); most > want {
			t.Errorf("%d leases: %d parts at a time, want at most %d", n, most, want)
		}
		s.Finish()
		if got, want := s.Sums()[0], reference(leaves); got != want {
			t.Errorf("%d leases: %g, want %g", n, got, want)
		}
		if got := sumInPlace(leaves); got != s.Sums()[0] {
			t.Errorf("%d leases that the caller adds: %g, want %g", n, got, s.Sums()[0])
		}
		differs = differs || s.Sums()[0] != chain
		// The same in the caller's memory: all vectors of the leaves come back.
		placed, into, back := &Tree{Merge: plus, Into: make([]float32, 1)}, []float32(nil), 0
		for _, v := range leaves {
			back += len(placed.Add([]float32{v}, 1))
		}
		back += len(placed.Finish())
		into = placed.Into
		if back != n || into[0] != s.Sums()[0] || &placed.Sums()[0] != &into[0] || len(placed.Clear()) != 0 {
			t.Errorf("%d leases in the caller's memory: %g with %d vectors, want %g", n, into[0], back, s.Sums()[0])
		}
		// Blocks that were added up elsewhere give the same.
		for width := 2; width <= 64; width *= 2 {
			whole := &Tree{Merge: plus}
			for at := 0; at < n; at += width {
				block := &Tree{Merge: plus}
				for _, v := range leaves[at:min(at+width, n)] {
					block.Add([]float32{v}, 1)
				}
				block.Finish()
				whole.Add(block.Sums(), min(width, n-at))
			}
			if whole.Finish(); whole.Sums()[0] != s.Sums()[0] {
				t.Errorf("%d leases in blocks of %d: %g, want %g", n, width, whole.Sums()[0], s.Sums()[0])
			}
		}
		if spare := s.Clear(); len(spare) != 1 || s.Sums() != nil {
			t.Errorf("%d leases: %d vectors come back", n, len(spare))
		}
	}
	if !differs {
		t.Error("the order made no difference: this test shows nothing")
	}
}

// sumInPlace adds leases up where the tree would merge them.
func sumInPlace(leaves []float32) float32 {
	s := &Tree{Merge: plus}
	for _, v := range leaves {
		if into := s.Neighbour(1); into != nil {
			into[0] += v
			s.Grow(1)
		} else {
			s.Add([]float32{v}, 1)
		}
	}
	s.Finish()
	return s.Sums()[0]
}
