package ps

import (
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// sum is an update that waits for its decision: its contributions are added up
// in the order of their leases, see engine.Tree. taken is what this server
// itself knows of it, for its log.
type sum struct {
	engine.Tree
	weight   float64
	whole    *vector   // in a group: the sums of all shares
	norms    []float64 // of the pieces whose squared norm is known
	counted  []bool    // these pieces
	last     bool      // the last contribution is being added
	merged   bool      // both contributions are in Into
	taken    []spec.Contribution
	resident bool // the sums are on the worker's device
	squares  engine.Squares
	promises bool // the squares come later
}

// values returns the sums of the vector that the server holds.
func (r *sum) values() []float32 {
	if r.whole != nil {
		return r.whole.v
	}
	return r.Sums()
}

// newSum returns an update without contributions. In a group the sums of this member's share
// are made where those of all shares belong. Called with mu held, after awaitTurn.
func newSum(s *Server) *sum {
	r := &sum{Tree: engine.Tree{Merge: addInto}, norms: make([]float64, len(s.pieces)), counted: make([]bool, len(s.pieces))}
	if g := s.group; g != nil {
		own, whole, pieces := g.open(s, g.Mine), g.whole.v, s.pieces
		from, _ := g.Share(g.n, g.Mine)
		r.Into = own
		r.Merge = func(into, left, right []float32) {
			switch {
			case r.merged:
			case r.last && len(into) > 0 && &into[0] == &own[0]: // these are the sums of all contributions
				r.addShare(whole, pieces, from, left, right)
			default:
				addInto(into, left, right)
			}
		}
	}
	return r
}

// addInto sets into to left + right.
func addInto(into, left, right []float32) {
	spread(len(into), func(_, from, to int) { optimizer.Add(into[from:to], left[from:to], right[from:to]) })
}

// addShare is addInto for the share of a vector that begins at from, whose norms it finds
// while the sums are in the processor's caches.
func (r *sum) addShare(vector []float32, pieces [][]model.Var, from int, left, right []float32) {
	skip := from / piece * piece // the pieces are those of the vector
	spread(from+len(left)-skip, func(_, a, b int) {
		a, b = max(a+skip, from), b+skip
		optimizer.Add(vector[a:b], left[a-from:b-from], right[a-from:b-from])
		r.findNorms(vector, pieces, a, b)
	})
}

// findNorms finds the squared norms of the pieces that are whole in [from, to) of the vector.
func (r *sum) findNorms(vector []float32, pieces [][]model.Var, from, to int) {
	for i := (from + piece - 1) / piece; i < len(pieces) && min((i+1)*piece, len(vector)) <= to; i++ {
		r.norms[i] = optimizer.SquaredNorm(vector[i*piece:min((i+1)*piece, len(vector))], r.weight, pieces[i])
		r.counted[i] = true
	}
}

// squaredNorm adds up over the pieces, in their order.
func (r *sum) squaredNorm(pieces [][]model.Var) float64 {
	vector := r.values()
	spread(len(vector), func(i, from, to int) {
		if !r.counted[i] {
			r.findNorms(vector, pieces, from, to)
		}
	})
	total := 0.0
	for _, n := range r.norms {
		total += n
	}
	return total
}
