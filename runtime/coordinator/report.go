package coordinator

import (
	"cmp"
	"fmt"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// assignAll hands out leases where there are enough workers.
func (c *coordinator) assignAll() {
	message := c.evidence.newest
	if !c.session.Attended() {
		waits := fmt.Sprintf("waiting for workers: %d of at least %d", c.session.CountWorkers(), c.Spec.Worker.MinReplicas)
		if message := cmp.Or(message, c.session.Status().Waiting()); message != "" {
			waits += ": " + message
		}
		c.session.Explain(waits)
		c.clock.Pause()
		c.pace.pause()
		return
	}
	c.session.Explain(message)
	if c.evaluation == nil {
		c.clock.Run()
	}
	c.limit = c.horizon()
	c.assign()
}

// report takes a worker's report on a lease.
func (c *coordinator) report(m *member, r wire.Report) error {
	for _, before := range r.Before {
		if err := c.report(m, before); err != nil {
			return err
		}
	}
	r.Before = nil
	if r.Departs {
		m.departs, c.flushes = true, true
		c.handBack(m)
		return nil
	}
	var l *lease
	if r.Term == c.session.Term() {
		l = c.end(m, r.ID)
	}
	if l == nil { // it was taken back: the report has no effect, but the worker may wait
		if !c.call.restores() { // else it hears of the restored version
			c.applied(m)
		}
		return nil
	}
	t := l.unit
	switch {
	case r.Dropped:
		c.discard(l.id)
		c.applied(m)
		c.flushes = true // what some servers took must not keep others out
		abandonNamed(c, t.update)
		return nil
	case r.Error != "":
		c.applied(m)
		c.Log.Error("records cannot be computed", "worker", m.Index, "records", t.describe(), "fault", r.Fault, "error", r.Error)
		err := c.evidence.failed(t, m, r.Fault, r.Error)
		if err == nil && r.Fault == spec.FaultEngine {
			c.session.Dismiss(m.Member, wire.Leave{End: spec.EndError, Reason: "its engine failed: another process takes its place"})
		}
		abandonNamed(c, t.update)
		return err
	}
	t.id, t.session, t.report, c.evidence.newest = l.id, m.Hello.Session, &r, ""
	if t.update != nil {
		t.update.missing--
	} else {
		c.evaluation.open--
	}
	return nil
}
