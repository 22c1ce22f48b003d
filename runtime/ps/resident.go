package ps

import (
	"errors"
	"math"
	"slices"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// resident is the device of a worker that is the only member of its group. The server
// makes the updates there, and copies the parameters only for a reader: a checkpoint, or
// the member of a larger group. The server's mu guards it; the replica has a lock of its
// own, which is taken while mu is held, never the other way round.
type resident struct {
	replica *engine.Resident // nil: the worker has none
	current bool             // it has the present parameters and slots
	ahead   bool             // and the server's are older
	// promised are updates that were made on the device before their numbers were known: it
	// makes none after sums that are not finite. A request that reads parameters, versions or
	// decisions redeems them first.
	promised []promise
	norms    map[point]float64 // squared norms of promised updates that are known now
}

// promise is an update, made at a point, whose numbers come later.
type promise struct {
	point
	decision
	squares engine.Squares
	weight  float64
}

// Reside makes a replica the device of this member's worker; nil: it has none. Parameters
// that are on the device before it are copied from there first.
func (m Member) Reside(r *engine.Resident) error {
	s := m.Server
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := s.resident.fetch(s)
	s.resident = resident{replica: r}
	if refused != nil {
		return errors.New(refused.Refused)
	}
	return nil
}

// sole reports whether the sums of contributions may stay on the worker's device. Called
// with mu held.
func (d *resident) sole(s *Server) bool {
	return d.replica != nil && s.group != nil && len(s.group.Members) == 1
}

// hasSums reports whether the sums of one of the contributions are on the device. Called with
// mu held.
func (d *resident) hasSums(s *Server, ids []int64) bool {
	return slices.ContainsFunc(ids, func(id int64) bool { return s.pending[id].sums == nil })
}

// complete is Server.complete for sums on the device. Where the member decides alone, the numbers
// may come later. Called with mu held.
func (d *resident) complete(s *Server, ids []int64, alone bool) wire.Answer {
	squares, ok := d.replica.Sums(s.term, s.version, ids)
	if !ok { // the next term computes the update again
		return refuse("the device has no sums of contributions %v", ids)
	}
	promises := alone && d.current && len(s.followers) == 0 && !squares.IsKnown()
	total := 0.0
	if !promises {
		refused := d.redeem(s)
		var err error
		if total, err = squares.Wait(); refused == nil && err != nil {
			refused = d.lose(s, err)
		}
		if refused != nil {
			return *refused
		}
	}
	s.sum = &sum{resident: true, promises: promises, squares: squares}
	for _, id := range ids {
		s.sum.taken = append(s.sum.taken, s.pending[id].Contribution)
		s.sum.weight += s.pending[id].Weight
		delete(s.pending, id)
	}
	if math.IsInf(total, 0) || math.IsNaN(total) {
		return wire.Answer{}
	}
	return wire.Answer{SquaredNorm: total / (s.sum.weight * s.sum.weight), Finite: true}
}

// record remembers an update that is decided, and notes it; a promised one later. Called with
// mu held, before the version grows.
func (d *resident) record(s *Server, r *sum, a wire.Apply) {
	made := decision{a, r.taken}
	if r.promises {
		d.promised = append(d.promised, promise{point{s.term, s.version}, made, r.squares, r.weight})
		return
	}
	remember(s, made)
	s.note(s.version+1, spec.Event{Type: spec.EventUpdate, Skipped: a.Skip, Taken: r.taken})
}

// redeem waits for the numbers of all promised updates, and records these updates. Where one
// is not finite, the device has made neither that one nor a later one: the server goes back
// to the version before it, and the answer refuses the request. The next term makes it by
// itself. Called with mu held.
func (d *resident) redeem(s *Server) *wire.Answer {
	all := d.promised
	d.promised = nil
	for _, p := range all {
		if p.term != s.term { // a restore has replaced all that was promised
			continue
		}
		squares, err := p.squares.Wait()
		if err != nil {
			return d.lose(s, err)
		}
		norm := squares / (p.weight * p.weight)
		if math.IsInf(norm, 0) || math.IsNaN(norm) {
			s.version, s.present, s.sum = p.version, new(version), nil
			s.changed.ring()
			answer := refuse("update %d of a series is not finite", p.version+1)
			return &answer
		}
		if d.norms == nil {
			d.norms = make(map[point]float64)
		}
		d.norms[p.point] = norm
		p.apply.Scale = p.apply.Recipe.ClipScale(norm)
		remember(s, p.decision)
		s.note(p.version+1, spec.Event{Type: spec.EventUpdate, Taken: p.taken})
	}
	return nil
}

// lose notes that the device has lost the parameters. Where the server's are older, that ends its
// part in the term. The answer refuses the request. Called with mu held.
func (d *resident) lose(s *Server, err error) *wire.Answer {
	s.log.Error("the parameters on the device are lost", "error", err)
	if d.ahead {
		s.term = 0
	}
	d.current, d.ahead, d.promised = false, false, nil
	s.changed.ring()
	answer := refuse("the parameters on the device are lost: %v", err)
	return &answer
}

// update makes the update of a sum on the device. Called with mu held.
func (d *resident) update(s *Server, r *sum, a wire.Apply) *wire.Answer {
	var slots [][]float32
	if !d.current {
		for _, v := range s.slots {
			slots = append(slots, v.v)
		}
	}
	err := d.replica.Commit(s.term, s.version, r.weight, a.Recipe, slots)
	if err == nil {
		d.current, d.ahead = true, true
		return nil
	}
	s.log.Warn("the device makes no updates; this process makes them from now on", "error", err)
	refused := d.fetch(s)
	d.current = false
	if refused != nil {
		return refused
	}
	answer := refuse("the device makes no updates: %v", err)
	return &answer
}

// fetch copies parameters and slots from the device, where the server's are older. A refusal
// answers the request that reads them: the device has lost them, or a promised update was not
// finite, and the server is at the version before it now. Called with mu held.
func (d *resident) fetch(s *Server) *wire.Answer {
	refused := d.redeem(s) // the device has the parameters of the version that this leaves
	if !d.ahead {
		return refused
	}
	all := vectorsOf(s)
	vectors := make([][]float32, len(all))
	for i, v := range all {
		if v.held > 0 { // a checkpoint of an earlier version is being written
			all[i] = &vector{v: s.spans.take()}
		}
		vectors[i] = all[i].v
	}
	if err := d.replica.Fetch(vectors); err != nil {
		return d.lose(s, err)
	}
	d.ahead = false
	s.values, s.slots = all[0], all[1:]
	return refused
}

// makeUpdate makes the update of a sum where the parameters are. Called with mu held.
func makeUpdate(s *Server, r *sum, a wire.Apply) *wire.Answer {
	if r.resident {
		return s.resident.update(s, r, a)
	}
	if refused := s.resident.fetch(s); refused != nil {
		return refused
	}
	s.resident.current = false
	for i, v := range s.slots {
		s.slots[i] = s.writable(v)
	}
	before := s.values.v
	if s.values.held > 0 {
		s.values = &vector{v: s.spans.take()}
	}
	sums, values := r.values(), s.values.v
	spread(len(values), func(i, from, to int) {
		slots := make([][]float32, len(s.slots))
		for k, v := range s.slots {
			slots[k] = v.v[from:to]
		}
		optimizer.UpdateScaled(values[from:to], before[from:to], slots, sums[from:to], r.weight, s.pieces[i], a.Recipe, a.Scale)
	})
	return nil
}
