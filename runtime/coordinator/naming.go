package coordinator

import (
	"fmt"
	"slices"
)

// An update may be proposed while its last units are being computed, where the
// holders of the parameters are the workers: they commit it as soon as its
// contributions are there, and the coordinator, which enters it in book and ledger
// once the reports are there as well, is not on the way of training. Such an update
// is named: its units stay with their workers. With a lost worker, a holder of the
// parameters is lost, too, and another term begins.

// outcome is the answer to the proposal of a named update.
type outcome struct {
	norm    float64
	applied bool
}

// isMade reports whether the holders have made the oldest update, and only reports
// are missing.
func (d *dispatch) isMade() bool { return len(d.updates) > 0 && d.updates[0].made != nil }

// findNameable returns the updates that may be named: the rest of a series, or the
// oldest update, where all of it is computed, or is each worker's present lease. Another
// worker may still get a lease that follows another one, see secondLease.
func findNameable(open []*update, holders int) (all []*update) {
	if open[0].series > 0 {
		return findSeries(open, holders)
	}
	computing := make(map[*member]bool)
	for _, t := range open[0].units {
		switch {
		case t.report != nil && !t.pushes(): // the update will be skipped
			return nil
		case t.report != nil:
		case t.lease == nil || t.setback.tried != nil || computing[t.lease.member]:
			return nil
		default:
			computing[t.lease.member] = true
		}
	}
	return append(all, open[0])
}

// abandonNamed ends the proposal of a named update that lacks a contribution: it is
// computed in another term, which knows of the error and does not name the update.
func abandonNamed(c *coordinator, u *update) {
	if u == nil || !u.named {
		return
	}
	err := fmt.Errorf("%w: a contribution to step %d will not come", errLost, c.version+1)
	if c.call != nil {
		c.call.cancel(err)
	} else {
		c.parameters.drop(err)
	}
}

// withdraw takes back all leases except the leases of named updates: the holders
// commit them.
func (d *dispatch) withdraw() {
	d.evaluation = nil
	d.updates = slices.DeleteFunc(d.updates, func(u *update) bool { return !u.named })
	for _, m := range d.members {
		d.handBack(m)
	}
}
