package ps

import (
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/spec"
)

// sum is an update that waits for its decision: its contributions are added up
// in the order of their leases, see engine.Tree. taken is what this server
// itself knows of it, for its log.
type sum struct {
	engine.Tree
	weight   float64
	whole    []float32 // in a group: the sums of all shares
	taken    []spec.Contribution
	resident bool // the sums are on the worker's device
	squares  engine.Squares
	promises bool // the squares come later
}

// values returns the sums of the vector that the server holds.
func (r *sum) values() []float32 {
	if r.whole != nil {
		return r.whole
	}
	return r.Sums()
}

func newSum() *sum { return &sum{Tree: engine.Tree{Merge: merge}} }

func merge(left, right []float32) {
	spread(len(right), func(_, from, to int) {
		blas32.Axpy(1, vectorOf(right[from:to]), vectorOf(left[from:to]))
	})
}

func vectorOf(v []float32) blas32.Vector { return blas32.Vector{N: len(v), Inc: 1, Data: v} }
