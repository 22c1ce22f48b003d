package ps

import (
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/stokehq/stoke/runtime/spec"
)

// sum is what has been added up of an update, in the order of its leases. taken
// is what this server itself knows of it, for its log.
//
// In deterministic mode the leases are the leaves of a binary tree: two
// neighbours are added, then two such pairs, and so on, and what is left in the
// end from the last to the first. The result then depends on the leases' number
// alone, also where somebody has added up whole branches before, and there are
// at most log₂ of them parts at a time. Otherwise each lease is added to the one
// sum of those before it.
type sum struct {
	tree   bool
	parts  []part
	weight float64
	taken  []spec.Contribution
	ready  bool // it is whole and waits for the decision
}

// part is the sum of so many leases that follow one another.
type part struct {
	values []float32
	leases int
}

// add puts the next lease's values in, which then belong to the sum, and gives
// back the buffers that it does not need any more.
func (s *sum) add(values []float32) (spare [][]float32) {
	s.parts = append(s.parts, part{values, 1})
	for n := len(s.parts); n > 1 && (!s.tree || s.parts[n-2].leases == s.parts[n-1].leases); n-- {
		spare = append(spare, s.merge())
	}
	return spare
}

// merge adds the last part to the one before it.
func (s *sum) merge() (spare []float32) {
	n := len(s.parts)
	left, right := &s.parts[n-2], s.parts[n-1]
	spread(len(right.values), func(_, from, to int) {
		blas32.Axpy(1, vectorOf(right.values[from:to]), vectorOf(left.values[from:to]))
	})
	left.leases += right.leases
	s.parts = s.parts[:n-1]
	return right.values
}

func vectorOf(v []float32) blas32.Vector { return blas32.Vector{N: len(v), Inc: 1, Data: v} }

// finish leaves one part.
func (s *sum) finish() (spare [][]float32) {
	for len(s.parts) > 1 {
		spare = append(spare, s.merge())
	}
	return spare
}

// values is the sum once it is finished; nil: of nothing.
func (s *sum) values() []float32 {
	if len(s.parts) == 0 {
		return nil
	}
	return s.parts[0].values
}
