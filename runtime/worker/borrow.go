package worker

import (
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// reservation is memory, shared with a process of this machine, where the replica adds up
// sums that are to be sent to that process. One goroutine uses it.
type reservation struct{ place *wire.Place }

// renew ends the reservation and makes another one, of so many values; nil: there is no
// memory.
func (r *reservation) renew(c *wire.Conn, values int) []float32 {
	r.end()
	if c != nil {
		r.place = c.Reserve(values)
	}
	if r.place == nil {
		return nil
	}
	return r.place.Values
}

// end ends the reservation.
func (r *reservation) end() {
	if r.place != nil {
		r.place.Release()
		r.place = nil
	}
}

// placeOf returns the place where sums lie, all of them; nil: they are elsewhere.
func (r *reservation) placeOf(sums spans) *wire.Place {
	if r.place == nil || len(sums) == 0 || sums.length() != len(r.place.Values) {
		return nil
	}
	for _, p := range sums {
		if &p.sums[0] != &r.place.Values[p.offset] {
			return nil
		}
	}
	return r.place
}

// reserve returns memory that this worker shares with the only server, or nil.
func (s *servers) reserve(_ int64, values int) []float32 {
	if len(s.peers) > 1 {
		return nil
	}
	return s.renew(s.peers[0].conn, values)
}

func (s *servers) letGo() bool { return false }

// reserve returns memory that this member shares with the only other one of its group.
func (g *group) reserve(term int64, values int) []float32 {
	g.mu.Lock()
	var other *wire.Conn
	if g.term == term && g.at.Whole {
		if m := g.links[g.at.Members[1-g.at.Mine]]; m != nil {
			other = m.conn
		}
	}
	g.mu.Unlock()
	return g.renew(other, values)
}

func (g *group) letGo() bool {
	release := g.borrowed
	if g.borrowed = nil; release != nil {
		release()
	}
	return release != nil
}

// load gives the replica the parameters of a version, without a copy where it can compute in
// the holder's memory; nil: its device has them.
func (g *group) load(r engine.Replica, values []float32, release func()) error {
	b := engine.BorrowerOf(r)
	if values == nil || b == nil {
		defer release()
		if values == nil {
			return nil
		}
		return r.Put(0, 0, values)
	}
	g.letGo()
	g.borrowed = release
	return b.BorrowParameters(values)
}

// letParametersGo ends the use of the parameters of a lease that is computed: where the
// replica has borrowed them, the update of their version is made in their place.
func (s *session) letParametersGo() {
	if s.exchange.letGo() {
		s.loaded = loaded{}
	}
}

// borrowSums lets the replica add up the sums of a lease where the exchange sends them from.
func (s *session) borrowSums(b *batch) error {
	r := engine.BorrowerOf(s.replica)
	if r == nil {
		return nil
	}
	if s.Spec.Deterministic && b.Leaves() > 1 { // the tree has the sums
		s.exchange.end()
		return r.BorrowSums(nil)
	}
	return r.BorrowSums(s.exchange.reserve(b.Term, s.values))
}

// returnAll gives back all memory that the replica has borrowed, at the session's end.
func (s *session) returnAll() {
	if r := engine.BorrowerOf(s.replica); r != nil {
		for _, err := range []error{r.BorrowParameters(nil), r.BorrowSums(nil)} {
			if err != nil {
				s.Log.Error("the replica cannot return memory", "error", err)
			}
		}
	}
	s.letParametersGo()
	s.exchange.end()
}
