package worker

import (
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// reserve returns memory that is shared with the only server; nil: there are several.
func (s *servers) reserve(_ int64, values int, present *wire.Place) *wire.Place {
	if len(s.peers) > 1 {
		return nil
	}
	return reserveFor(s.peers[0].conn, values, present)
}

// reserveFor returns memory that is shared with a peer.
func reserveFor(peer *wire.Conn, values int, present *wire.Place) *wire.Place {
	if present != nil && peer.Waits(present) {
		return present
	}
	return peer.Reserve(values)
}

func (s *servers) letGo() bool { return false }

// reserve returns memory for the sums of a lease: where two members push whole vectors, it is
// shared with the other one. Else the holder borrows its share of a contribution, in memory of
// this process; there are two where a lease begins before the update with the former one is made.
func (g *group) reserve(term int64, values int, present *wire.Place) *wire.Place {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.term != term:
		return nil
	case g.at.Whole:
		if m := g.links[g.at.Members[1-g.at.Mine]]; m != nil {
			return reserveFor(m.conn, values, present)
		}
		return nil
	}
	for i := range g.lendable {
		p := g.lendable[i]
		if p == nil {
			p = wire.NewPlace(make([]float32, values))
			g.lendable[i] = p
		}
		if p == present && p.Users() == 1 {
			return p
		}
		if p.Users() == 0 {
			p.Hold()
			return p
		}
	}
	return nil
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

// borrowSums lets the replica add up the sums of a lease where they are sent from.
func (s *session) borrowSums(b *batch) error {
	if engine.BorrowerOf(s.replica) == nil {
		return nil
	}
	var to *wire.Place
	if !s.Spec.Deterministic || b.Leaves() == 1 { // else the tree has the sums
		to = s.exchange.reserve(b.Term, s.values, s.place)
	}
	if to != nil && to == s.place {
		return nil
	}
	return s.moveSums(to)
}

// moveSums lets the replica add up sums in another place; nil: in memory of its own.
func (w *worker) moveSums(to *wire.Place) error {
	if to == nil && w.place == nil {
		return nil
	}
	var memory []float32
	if to != nil {
		memory = to.Values
	}
	if err := engine.BorrowerOf(w.replica).BorrowSums(memory); err != nil {
		if to != nil {
			to.Release()
		}
		return err
	}
	w.dropPlace()
	w.place = to
	return nil
}

// dropPlace ends the use of a place that no replica uses any longer.
func (w *worker) dropPlace() {
	if w.place != nil {
		w.place.Release()
		w.place = nil
	}
}

// placeOf returns the worker's place where the sums are all of it; nil: they are elsewhere.
func (w *worker) placeOf(sums spans) *wire.Place {
	if w.place == nil || len(sums) == 0 || sums.length() != len(w.place.Values) {
		return nil
	}
	for _, p := range sums {
		if len(p.sums) > 0 && &p.sums[0] != &w.place.Values[p.offset] {
			return nil
		}
	}
	return w.place
}
