package coordinator

import (
	"fmt"
	"time"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// queue yields the records that are still to be committed, in slices, epoch by
// epoch. What it has yielded is its caller's to bring to an end.
type queue struct {
	book   *ledger.Book
	epochs int
	epoch  int
	gaps   ledger.Ranges
}

// newQueue begins with what the book lacks now.
func newQueue(book *ledger.Book, epochs int) *queue {
	q := &queue{book: book, epochs: epochs, epoch: min(book.Epochs(), epochs)}
	if q.epoch < epochs {
		q.gaps = book.Gaps(q.epoch)
	}
	q.settle()
	return q
}

// settle moves on to an epoch that has something left. Nothing of a later
// epoch has been yielded, so that the book is right about it.
func (q *queue) settle() {
	for len(q.gaps) == 0 && q.epoch < q.epochs {
		if q.epoch++; q.epoch < q.epochs {
			q.gaps = q.book.Gaps(q.epoch)
		}
	}
}

func (q *queue) empty() bool { return q.epoch >= q.epochs }

// next yields up to n records of one epoch. It must not be empty.
func (q *queue) next(n int) spec.Contribution {
	g := &q.gaps[0]
	s := spec.Contribution{Epoch: q.epoch, Start: g[0], End: min(g[1], g[0]+int64(n))}
	if g[0] = s.End; g[0] == g[1] {
		q.gaps = q.gaps[1:]
	}
	q.settle()
	return s
}

// slices is how many slices of n records are left. Epochs that nothing is
// committed of are all alike.
func (q *queue) slices(n int) int64 {
	count := func(gaps ledger.Ranges) (k int64) {
		for _, g := range gaps {
			k += (g[1] - g[0] + int64(n) - 1) / int64(n)
		}
		return k
	}
	k := count(q.gaps)
	fresh := min(q.epochs, max(q.epoch+1, q.book.FirstUncommitted()))
	for e := q.epoch + 1; e < fresh; e++ {
		k += count(q.book.Gaps(e))
	}
	return k + spec.Product(int64(q.epochs-fresh), count(q.book.Gaps(q.book.FirstUncommitted())))
}

// update is one update that is being computed.
type update struct {
	spec.Contribution // epoch and all of its records
	workers           int
	leaf              int64 // records in each lease of the specification
	units             []*unit
	series            int64    // that it is part of; 0: it was opened by itself
	missing           int      // units without a report
	named             bool     // it was proposed before all of its reports had come
	made              *outcome // then: the answer; nil: there is none yet
}

// unit is what a worker computes of an update or of an evaluation at a time: in
// an update, a block of the specification's leases, see blocks.
type unit struct {
	spec.Contribution
	update  *update // nil: of an evaluation
	lease   *lease  // who computes it now
	id      int64   // of the lease that computed it
	session string  // of the worker that computed it
	report  *wire.Report
	setback setback
	overdue int // leases of it that took too long
}

// pushes reports whether the unit's sums lie on the servers.
func (u *unit) pushes() bool { return u.report != nil && u.report.Finite && u.report.Loss != nil }

func (u *unit) describe() string {
	if u.update == nil {
		return fmt.Sprintf("test records %d to %d", u.Start, u.End-1)
	}
	return fmt.Sprintf("positions %d to %d of epoch %d", u.Start, u.End-1, u.Epoch)
}

// lease says who computes a unit.
type lease struct {
	id      int64
	unit    *unit
	member  *member
	current bool      // the member has all that it needs to compute it
	given   time.Time // to the member, or when the member could turn to it, or got ahead with it
	done    int64     // of the member's last heartbeat about it
}

// open reports whether the unit is neither being computed nor computed.
func (u *unit) open() bool { return u.lease == nil && u.report == nil }

// findOpen returns the first open unit that a member may have now; nil: none.
func findOpen(units []*unit, m *member, members map[int]*member) *unit {
	for _, t := range units {
		if t.open() && t.isFor(m, members) {
			return t
		}
	}
	return nil
}

// countOpen returns how many of the units are open.
func countOpen(units []*unit) (n int) {
	for _, t := range units {
		if t.open() {
			n++
		}
	}
	return n
}
