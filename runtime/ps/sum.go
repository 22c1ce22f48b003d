package ps

import (
	"math"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// sum is an update that waits for its decision: its contributions are added up in the order
// of their leases, see engine.Tree. taken is what this server itself knows of it, for its log.
type sum struct {
	weight   float64
	own      []float32     // the sums of the contributions; nil: they are not added up yet
	room     []float32     // in a group: where they belong, in the sums of all shares
	from     int           // where they begin there
	first    *contribution // whose memory has the sums; nil: room has them
	whole    *vector       // in a group: the sums of all shares
	norms    []float64     // of the pieces whose squared norm is known
	counted  []bool        // these pieces
	merged   bool          // both contributions are in room
	taken    []spec.Contribution
	resident bool // the sums are on the worker's device
	squares  engine.Squares
	promises bool // the squares come later
}

// newSum returns an update without contributions. In a group the sums of this member's share
// are made where those of all shares belong. Called with mu held, after awaitTurn.
func newSum(s *Server) *sum {
	r := &sum{norms: make([]float64, len(s.pieces)), counted: make([]bool, len(s.pieces))}
	if g := s.group; g != nil {
		r.room = g.open(s, g.Mine)
		r.from, _ = g.Share(g.n, g.Mine)
	}
	return r
}

// values returns the sums of the vector that the server holds.
func (r *sum) values() []float32 {
	if r.whole != nil {
		return r.whole.v
	}
	return r.own
}

// add adds up contributions that are here, in the given order. Called with mu held.
func (s *Server) add(ids []int64) {
	r := s.sum
	all := make([]*contribution, len(ids))
	for i, id := range ids {
		all[i] = s.pending[id]
		delete(s.pending, id)
		r.taken = append(r.taken, all[i].Contribution)
		r.weight += all[i].Weight
	}
	if r.own = r.room; r.room == nil {
		r.first, r.own = all[0], all[0].sums
	}
	vector := r.own
	if s.group != nil {
		vector = s.group.whole.v
	}
	if !r.merged {
		r.addUp(vector, s.pieces, all)
	}
	for _, c := range all {
		if c != r.first {
			c.giveBack(s)
		}
	}
}

// addUp adds up contributions to a span or a share of the vector piece by piece: what each has
// of a piece is read once, and the piece's norm is found while the sums are in the processor's
// caches.
func (r *sum) addUp(vector []float32, pieces [][]model.Var, all []*contribution) {
	skip := r.from / piece * piece // the pieces are those of the vector
	spread(r.from+len(r.own)-skip, func(_, a, b int) {
		a, b = max(a+skip, r.from)-r.from, b+skip-r.from
		tree := engine.Tree{Merge: optimizer.Add}
		if r.room != nil {
			tree.Into = r.own[a:b]
		}
		for i, c := range all {
			part := c.sums[a:b]
			if c.lent != nil && i > 0 && i < len(all)-1 && tree.Neighbour(c.Leaves) == nil { // the tree adds others to it
				copied := scratch.Get().(*[piece]float32)
				defer scratch.Put(copied)
				part = copied[:copy(copied[:], part)]
			}
			tree.Add(part, c.Leaves)
		}
		tree.Finish()
		r.findNorms(vector, pieces, r.from+a, r.from+b)
	})
}

// scratch has memory for pieces of lent contributions.
var scratch = sync.Pool{New: func() any { return new([piece]float32) }}

// letGo gives the memory of the sums back that is not of the group's vector. Called with mu held.
func (r *sum) letGo(s *Server) {
	if r.first != nil {
		r.first.giveBack(s)
		r.first = nil
	}
}

// wholePieces returns the pieces [first, end) of a vector of n values that are whole in its
// values [from, to).
func wholePieces(from, to, n int) (first, end int) {
	first, end = (from+piece-1)/piece, to/piece
	if to == n {
		end = (n + piece - 1) / piece
	}
	return first, max(first, end)
}

// findNorms finds the squared norms of the pieces that are whole in [from, to) of the vector.
func (r *sum) findNorms(vector []float32, pieces [][]model.Var, from, to int) {
	for i, end := wholePieces(from, to, len(vector)); i < end; i++ {
		r.norms[i] = optimizer.SquaredNorm(vector[i*piece:min((i+1)*piece, len(vector))], r.weight, pieces[i])
		r.counted[i] = true
	}
}

// ownNorms returns the squared norms of the pieces that are whole in this member's share of a
// vector of n values: the other members need not find them. It returns nil where one of them is
// not finite, which JSON cannot carry.
func (r *sum) ownNorms(n int) []float64 {
	first, end := wholePieces(r.from, r.from+len(r.own), n)
	for i := first; i < end; i++ {
		if !r.counted[i] || math.IsInf(r.norms[i], 0) || math.IsNaN(r.norms[i]) {
			return nil
		}
	}
	return slices.Clone(r.norms[first:end])
}

// takeNorms takes the norms that another member has found of its share [from, to): they have
// the bits that this member would find. Without one for each piece it takes none, and finds them.
func (r *sum) takeNorms(from, to int, norms []float64) {
	first, end := wholePieces(from, to, len(r.values()))
	if len(norms) != end-first {
		return
	}
	for i, norm := range norms {
		r.norms[first+i], r.counted[first+i] = norm, true
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
