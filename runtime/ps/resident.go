package ps

import (
	"errors"
	"math"
	"slices"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/optimizer"
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

// complete is Server.complete for sums on the device. Called with mu held.
func (d *resident) complete(s *Server, ids []int64) wire.Answer {
	squares, ok := d.replica.Sums(s.term, s.version, ids)
	if !ok { // the next term computes the update again
		return refuse("the device has no sums of contributions %v", ids)
	}
	s.sum = &sum{resident: true}
	for _, id := range ids {
		s.sum.taken = append(s.sum.taken, s.pending[id].Contribution)
		s.sum.weight += s.pending[id].Weight
		delete(s.pending, id)
	}
	if math.IsInf(squares, 0) || math.IsNaN(squares) {
		return wire.Answer{}
	}
	return wire.Answer{SquaredNorm: squares / (s.sum.weight * s.sum.weight), Finite: true}
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
	if refused := d.fetch(s); refused != nil {
		return refused
	}
	d.current = false
	answer := refuse("the device makes no updates: %v", err)
	return &answer
}

// fetch copies parameters and slots from the device, where the server's are older. After an
// error the server holds no parameters, and the answer refuses the request that reads
// them. Called with mu held.
func (d *resident) fetch(s *Server) *wire.Answer {
	if !d.ahead {
		return nil
	}
	d.ahead = false
	all := vectorsOf(s)
	vectors := make([][]float32, len(all))
	for i, v := range all {
		if v.held > 0 { // a checkpoint of an earlier version is being written
			all[i] = &vector{v: s.spans.take()}
		}
		vectors[i] = all[i].v
	}
	if err := d.replica.Fetch(vectors); err != nil {
		s.log.Error("the parameters on the device are lost", "error", err)
		d.current, s.term = false, 0
		s.changed.ring()
		answer := refuse("the parameters on the device are lost: %v", err)
		return &answer
	}
	s.values, s.slots = all[0], all[1:]
	return nil
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
	s.values = s.writable(s.values)
	for i, v := range s.slots {
		s.slots[i] = s.writable(v)
	}
	sums, values := r.values(), s.values.v
	spread(len(values), func(i, from, to int) {
		slots := make([][]float32, len(s.slots))
		for k, v := range s.slots {
			slots[k] = v.v[from:to]
		}
		optimizer.UpdateScaled(values[from:to], slots, sums[from:to], r.weight, s.pieces[i], a.Recipe, a.Scale)
	})
	return nil
}
