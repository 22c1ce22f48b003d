package coordinator

import "fmt"

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

// findNameable returns the oldest update, where all of it is computed, or is each
// worker's present lease; nil: it is not. Another worker may still get a lease that
// follows another one, see secondLease.
func findNameable(open []*update) *update {
	if len(open) == 0 {
		return nil
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
	return open[0]
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

// withdraw takes back all leases except the leases of a named update: the holders
// commit it.
func (d *dispatch) withdraw() {
	named := len(d.updates) > 0 && d.updates[0].named
	for _, m := range d.members {
		for _, l := range m.leases {
			if !named || l.unit.update != d.updates[0] {
				d.takeBack(m, l)
			}
		}
	}
	d.evaluation = nil
	if d.updates = d.updates[:min(1, len(d.updates))]; !named {
		d.updates = nil
	}
}
