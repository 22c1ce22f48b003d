package worker

import (
	"context"
	"fmt"

	"github.com/stokehq/stoke/runtime/engine"
)

// reside lets the holder make updates on the replica's device, and returns the replica to
// compute with. In a deterministic run the holder makes them by itself: their bits are then
// the same with any number of members.
func (w *worker) reside(replica engine.Replica) (engine.Replica, error) {
	u, ok := replica.(engine.Updater)
	if !ok || w.Holder == nil || w.Spec.Deterministic {
		return replica, nil
	}
	r := engine.NewResident(u)
	return r, w.Holder.Reside(r)
}

// closeReplica gives the device back. The holder copies the parameters first,
// because the coordinator may still ask for them.
func (w *worker) closeReplica() {
	if _, ok := w.replica.(*engine.Resident); ok {
		if err := w.Holder.Reside(nil); err != nil {
			w.Log.Error("the holder cannot take the parameters", "error", err)
		}
	}
	w.replica.Close()
	w.dropPlace()
}

// residence is a session whose group has no other member: the sums of its leases stay on
// the device.
type residence struct {
	*session
	replica *engine.Resident
}

// resident returns the residence of a lease; nil: its sums are pushed.
func (s *session) resident(b *batch) *residence {
	r, ok := s.replica.(*engine.Resident)
	g, grouped := s.exchange.(*group)
	if !ok || !grouped || r.Fails() {
		return nil
	}
	at, in, _ := g.holder.Group()
	if len(at.Members) != 1 || in.Term != b.Term {
		return nil
	}
	return &residence{s, r}
}

// sum computes a lease in the pass of the update, which has all leases of it, and clears
// s.sums. Within a series it does not wait for the lease's numbers: the device computes one
// lease after the other.
func (r *residence) sum(ctx context.Context, b *batch) (total engine.Result, losses []float64, err error) {
	if err := r.moveSums(nil); err != nil { // another member may still add up the last ones
		return total, nil, err
	}
	first := r.replica.Begin(b.Term, r.loaded.version)
	ahead := b.Early && !b.reported && (b.Waits || r.reports.lacksNumbers())
	step := func(staged engine.Staged, p engine.Pass) (engine.Result, error) {
		p.First, p.Keep, p.Ahead = p.First && first, true, ahead
		result, err := r.replica.Step(ctx, staged, p)
		if err != nil {
			return result, fmt.Errorf("compute gradients: %w", err)
		}
		return result, nil
	}
	err = r.eachMicroBatch(ctx, b, 0, step, func(result engine.Result) {
		total = result
		r.replica.Keep(b.ID, result)
	})
	r.sums = r.sums[:0]
	return total, nil, err
}

// notFinite makes the sums on the device ones that no update can take. They stay there.
func (r *residence) notFinite() spans {
	r.replica.Spoil()
	return r.sums
}
