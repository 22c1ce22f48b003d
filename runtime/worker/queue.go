package worker

import (
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// queue has the leases whose records are not read yet, by their versions.
type queue struct {
	leases []wire.Lease
	begun  loaded // the latest version whose records are being read
}

func versionOf(l *wire.Lease) loaded { return loaded{l.Term, l.Version} }

// precedes reports whether a version comes before another one.
func (v loaded) precedes(other loaded) bool {
	return v.term < other.term || v.term == other.term && v.version < other.version
}

// add takes the leases of a message in. Leases of earlier terms are void.
func (q *queue) add(l wire.Lease) {
	q.leases = slices.DeleteFunc(q.leases, func(before wire.Lease) bool { return before.Term < l.Term })
	for _, next := range append([]wire.Lease{l}, l.Then...) {
		next.Then = nil
		at := len(q.leases)
		for at > 0 && versionOf(&next).precedes(versionOf(&q.leases[at-1])) {
			at--
		}
		q.leases = slices.Insert(q.leases, at, next)
	}
}

// isLate reports whether records of later versions than the next lease's are being read.
func (q *queue) isLate() bool {
	return len(q.leases) > 0 && versionOf(&q.leases[0]).precedes(q.begun)
}

// next returns the lease whose records are read next.
func (q *queue) next() wire.Lease {
	l := q.leases[0]
	q.leases = q.leases[1:]
	if at := versionOf(&l); q.begun.precedes(at) {
		q.begun = at
	}
	return l
}

// reports are the reports that the coordinator does not need at once.
type reports struct {
	mu      sync.Mutex
	waiting []waitingReport
}

// waitingReport is a report; with later it lacks its numbers.
type waitingReport struct {
	wire.Report
	later func() (engine.Result, error) // see engine.Result.Later
}

// add adds the report on a lease.
func (r *reports) add(of *wire.Lease, report wire.Report, later func() (engine.Result, error)) {
	report.ID, report.Term, report.Evaluate = of.ID, of.Term, of.Evaluate
	r.mu.Lock()
	r.waiting = append(r.waiting, waitingReport{report, later})
	r.mu.Unlock()
}

// lacksNumbers reports whether one of the reports waits for its numbers.
func (r *reports) lacksNumbers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.waiting, func(w waitingReport) bool { return w.later != nil })
}

// complete waits for the numbers of all reports. A lease whose numbers are not finite is dropped,
// as its holder makes no update of it: the next term computes it by itself. After an error of
// the device all later leases are dropped, too.
func (r *reports) complete() {
	broken := false
	for {
		r.mu.Lock()
		i := slices.IndexFunc(r.waiting, func(w waitingReport) bool { return w.later != nil })
		if i < 0 {
			r.mu.Unlock()
			return
		}
		w := r.waiting[i]
		r.mu.Unlock()
		result, err := w.later()
		head := wire.Report{ID: w.ID, Term: w.Term, Version: w.Version}
		switch whole := reported(result); {
		case err != nil && !broken:
			broken, head.Error, head.Fault = true, err.Error(), faultOf(err)
		case err != nil || !whole.Finite:
			head.Dropped = true
		default:
			head.Weight, head.Loss, head.Metrics, head.Finite = whole.Weight, whole.Loss, whole.Metrics, true
		}
		r.mu.Lock()
		if i = slices.IndexFunc(r.waiting, func(other waitingReport) bool { return other.ID == w.ID && other.Term == w.Term }); i >= 0 {
			r.waiting[i] = waitingReport{Report: head}
		}
		r.mu.Unlock()
	}
}

// sender is the connection to the coordinator.
type sender interface {
	Send(t wire.Type, head any, values []float32) error
}

// flush sends the reports in one message, except those from the first one on that waits for its
// numbers.
func (r *reports) flush(to sender) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := slices.IndexFunc(r.waiting, func(w waitingReport) bool { return w.later != nil })
	if n < 0 {
		n = len(r.waiting)
	}
	if n == 0 {
		return nil
	}
	last := r.waiting[n-1].Report
	for _, w := range r.waiting[:n-1] {
		last.Before = append(last.Before, w.Report)
	}
	r.waiting = slices.Delete(r.waiting, 0, n)
	return to.Send(wire.TypeReport, last, nil)
}
