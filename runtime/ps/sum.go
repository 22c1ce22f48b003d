package ps

import (
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// sum is an update that waits for its decision: its contributions are added up
// in the order of their leases, see engine.Tree. taken is what this server
// itself knows of it, for its log.
type sum struct {
	engine.Tree
	weight   float64
	whole    *vector // in a group: the sums of all shares
	taken    []spec.Contribution
	resident bool // the sums are on the worker's device
}

// values returns the sums of the vector that the server holds.
func (r *sum) values() []float32 {
	if r.whole != nil {
		return r.whole.v
	}
	return r.Sums()
}

func newSum() *sum { return &sum{Tree: engine.Tree{Merge: merge}} }

func merge(left, right []float32) { addInto(left, left, right) }

// addInto sets into to left + right.
func addInto(into, left, right []float32) {
	spread(len(into), func(_, from, to int) { optimizer.Add(into[from:to], left[from:to], right[from:to]) })
}
