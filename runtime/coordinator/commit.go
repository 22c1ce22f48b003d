package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
)

// commit proposes updates that follow one another to the holders of the parameters.
func (c *coordinator) commit(ctx context.Context, all []*update) {
	proposals := proposeAll(c, all)
	if first := &proposals[0]; first.finite {
		first.void = c.takeVoid()
	} else {
		c.discard(first.ids...) // some of them were pushed
	}
	var outcomes []outcome
	c.begin(ctx, func(ctx context.Context) (err error) {
		outcomes, err = c.parameters.commit(ctx, proposals)
		return err
	}, func(err error) error {
		if n := (notCome{}); errors.As(err, &n) {
			c.Log.Warn("a contribution is computed again", "error", err)
			return all[0].reopenUnit(n.lease)
		}
		if err != nil {
			return err
		}
		c.pace.take(len(outcomes), time.Now())
		if !all[0].named {
			return c.enter(all[0], outcomes[0].norm, outcomes[0].applied)
		}
		for i := range outcomes {
			all[i].made = &outcomes[i] // move enters it
		}
		if all[0].series > 0 {
			renameRest(c, len(outcomes))
		}
		return nil
	})
}

// enter enters a committed update in book and ledger.
func (c *coordinator) enter(u *update, norm float64, applied bool) error {
	taken, weight, loss, staleness := u.sums(c.version)
	c.version++
	c.updates = slices.DeleteFunc(c.updates, func(o *update) bool { return o == u })
	c.announce(u)
	c.dispatch.setbacks.forget(u.Contribution)
	if err := c.book.Commit(taken...); err != nil {
		return err
	}
	c.record(ledger.Record{Epoch: u.Epoch, Start: u.Start, End: u.End, Skipped: !applied})
	e := spec.Event{Type: spec.EventUpdate, Epoch: u.Epoch, Records: u.End - u.Start, Staleness: staleness}
	if applied {
		c.loss, c.skips = loss/weight, 0
		e.Loss, e.Norm = spec.Number(c.loss), spec.Number(norm)
	} else {
		c.skipped++
		c.skips++
		e.Skipped = true
	}
	if !c.committed {
		c.committed = true
		c.session.TellSupervisor(spec.Control{Committed: true})
	}
	c.session.Note(e)
	if c.book.IsComplete(u.Epoch) {
		c.session.Note(spec.Event{Type: spec.EventEpoch, Epoch: u.Epoch, Records: c.records()})
	}
	if !c.isMade() { // else the next one is entered at once
		c.session.Publish()
	}
	if c.skips >= maxSkips {
		return session.Fail(spec.ReasonDiverged, "loss or gradients were not finite in %d updates in a row: lower the learning rate (%g)",
			c.skips, c.Spec.LearningRate)
	}
	return nil
}

// record writes a committed update to the ledger. Where it cannot be written the
// run stops.
func (c *coordinator) record(r ledger.Record) {
	if !c.session.Unwritten() {
		c.session.EndUnwritten(c.journal.ledger.Add(r))
	}
}

// reopenUnit counts a unit as missing, after its contribution did not arrive.
func (u *update) reopenUnit(lease int64) error {
	for _, t := range u.units {
		if t.report != nil && t.id == lease {
			t.report = nil
			u.missing++
			return nil
		}
	}
	return fmt.Errorf("a server misses the contribution of lease %d, which is not part of the update", lease)
}

// sums is what a whole update is made of. Where something of it is not finite,
// loss says nothing.
func (u *update) sums(version int64) (taken []spec.Contribution, weight, loss float64, staleness int64) {
	for _, t := range u.units {
		taken = append(taken, t.Contribution)
		weight += t.report.Weight
		switch {
		case len(t.report.Losses) > 0: // one by one, in the leases' order: the blocks make no difference
			for _, l := range t.report.Losses {
				loss += l
			}
		case t.report.Loss != nil:
			loss += *t.report.Loss
		}
		staleness = max(staleness, version-t.report.Version)
	}
	return taken, weight, loss, staleness
}

// announce informs the workers that wait for the commit of their own
// contribution. The holders of leases for the next version learn of the commit
// from the servers.
func (d *dispatch) announce(u *update) {
	now := time.Now()
	for _, m := range d.members {
		waits := d.schedule.waitsForCommit(u, m.Index)
		for _, l := range m.leases {
			if !l.current && d.current(l) {
				l.current, l.given = true, now
			}
		}
		if waits {
			d.applied(m)
		}
	}
}
