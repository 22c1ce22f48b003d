package coordinator

import (
	"fmt"
	"sort"
	"time"

	"github.com/stokehq/stoke/runtime/wire"
)

// ahead is how many leases a worker holds: one to compute, one whose records
// it reads meanwhile.
const ahead = 2

// assign gives leases to whoever can take one: first to those that have
// nothing to do, then to be read ahead.
func (c *coordinator) assign() {
	c.message = ""
	if n := len(c.members); n < c.Spec.Worker.MinReplicas {
		c.message = fmt.Sprintf("waiting for workers: %d of at least %d", n, c.Spec.Worker.MinReplicas)
		c.clock.pause()
		return
	}
	if c.evaluation == nil {
		c.clock.run()
	}
	members := make([]*member, 0, len(c.members))
	for _, m := range c.members {
		if !m.leaving {
			members = append(members, m)
		}
	}
	sort.Slice(members, func(i, j int) bool { return members[i].index < members[j].index })
	for holds := range ahead {
		for _, m := range members {
			if c.computable(m) != holds {
				continue
			}
			if t := c.pick(); t != nil {
				// Reading ahead is for long updates: near the end of one, what
				// is left goes to those who have nothing to do.
				if holds == 0 || c.Spec.Asynchronous || c.idle() >= len(members) {
					c.give(m, t, c.version)
				}
			}
		}
	}
	for _, m := range members {
		if len(m.held) < ahead && c.computable(m) == len(m.held) {
			if t := c.pickNext(); t != nil {
				c.give(m, t, c.version+1)
			}
		}
	}
}

// computable is how many of a member's leases it has all it needs for; the
// others are of the next update.
func (c *coordinator) computable(m *member) int {
	n := 0
	for _, l := range m.held {
		if c.current(l) {
			n++
		}
	}
	return n
}

// pick is the next unit that can be computed with the present version.
func (c *coordinator) pick() *unit {
	if c.evaluation != nil {
		t, _ := idleUnit(c.evaluation.units)
		return t
	}
	if !c.Spec.Asynchronous {
		if len(c.updates) == 0 && !c.openNext() {
			return nil
		}
		t, _ := idleUnit(c.window(c.updates[0]))
		return t
	}
	for _, u := range c.updates {
		if t, _ := idleUnit(u.tasks); t != nil {
			return t
		}
	}
	if !c.openNext() {
		return nil
	}
	return c.updates[len(c.updates)-1].tasks[0]
}

// idle is how many units of the current update or evaluation nobody has.
func (c *coordinator) idle() int {
	units := c.updates[:min(1, len(c.updates))]
	if c.evaluation != nil {
		_, n := idleUnit(c.evaluation.units)
		return n
	}
	n := 0
	for _, u := range units {
		_, k := idleUnit(u.tasks)
		n += k
	}
	return n
}

// pickNext is a unit of the update after the current one: its records can be
// read before the parameters are there.
func (c *coordinator) pickNext() *unit {
	if c.evaluation != nil || c.Spec.Asynchronous || len(c.updates) == 0 {
		return nil
	}
	if len(c.updates) == 1 && !c.openNext() {
		return nil
	}
	t, _ := idleUnit(c.window(c.updates[1]))
	return t
}

// window is the part of an update that may be computed now. The servers add
// its units up in their order and keep apart what comes before its turn: of
// this there is never more than one push per worker, and one.
func (c *coordinator) window(u *update) []*unit {
	return u.tasks[:min(len(u.tasks), u.folded+len(c.members)+1)]
}

// openNext opens one more update, unless something is to be done before it.
func (c *coordinator) openNext() bool {
	if c.queue.empty() || c.version+int64(len(c.updates)) >= c.horizon() {
		return false
	}
	c.open()
	return true
}

// give leases a unit to a member.
func (c *coordinator) give(m *member, t *unit, version int64) {
	c.lastLease++
	t.Attempt++
	t.Generation, t.Worker = c.generation, m.index
	l := &lease{id: c.lastLease, task: t, member: m, given: time.Now()}
	t.lease, m.held[l.id], c.leases[l.id] = l, l, l
	out := wire.Lease{
		ID: l.id, Evaluate: t.update == nil, Version: version, Current: c.version,
		Exact: t.update == nil || !c.Spec.Asynchronous, Contribution: t.Contribution,
		Workers: c.Spec.Worker.Replicas,
	}
	if err := m.conn.Send(wire.TypeLease, out, nil); err != nil {
		m.conn.Close() // its reader reports it as gone, and the lease comes back
	}
}

// report takes what a worker says about a lease.
func (c *coordinator) report(m *member, r wire.Report) error {
	l := c.leases[r.ID]
	if l == nil || l.member != m || r.Generation != c.generation {
		c.answerReport(m, r) // of a lease that was taken back: it has no effect
		return nil
	}
	delete(c.leases, l.id)
	delete(m.held, l.id)
	for _, next := range m.held { // it turns to one of these now
		next.given = time.Now()
	}
	t := l.task
	t.lease = nil
	switch {
	case r.Dropped:
		c.discard = append(c.discard, l.id)
		c.answerReport(m, r)
		if t.update != nil {
			return c.fold(t.update) // what some servers took must not keep others out
		}
		return nil
	case r.Error != "":
		c.answerReport(m, r)
		c.Log.Error("records cannot be computed", "worker", m.index, "records", t.describe(), "error", r.Error)
		if t.failures++; t.failures >= 3 {
			return fail("%s cannot be computed: %s", t.describe(), r.Error)
		}
		return nil
	}
	t.id, t.report = l.id, &r
	if t.update != nil {
		t.update.open--
		return c.fold(t.update)
	}
	c.evaluation.open--
	return nil
}

// answerReport lets a worker of an asynchronous run go on after a report that
// comes to nothing.
func (c *coordinator) answerReport(m *member, r wire.Report) {
	if c.Spec.Asynchronous && !r.Evaluate {
		c.applied(m)
	}
}

// applied tells a worker of a commit that it waits for.
func (c *coordinator) applied(m *member) {
	if err := m.conn.Send(wire.TypeApplied, wire.Applied{Generation: c.generation, Version: c.version}, nil); err != nil {
		m.conn.Close() // its reader reports it as gone
	}
}
