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
			if len(m.held) != holds {
				continue
			}
			if t, version := c.pick(holds, len(members)); t != nil {
				c.give(m, t, version)
			}
		}
	}
}

// pick chooses the next unit for a worker that holds so many, and the version
// that it is to be computed with.
func (c *coordinator) pick(holds, members int) (*unit, int64) {
	if c.evaluation != nil {
		t, _ := idleUnit(c.evaluation.units)
		return t, c.version
	}
	if c.Spec.Asynchronous {
		for _, u := range c.updates {
			if t, _ := idleUnit(u.tasks); t != nil {
				return t, 0
			}
		}
		if !c.queue.empty() && c.version+int64(len(c.updates)) < c.horizon() {
			return c.open().tasks[0], 0
		}
		return nil, 0
	}
	for i := range 2 { // the current update, and the next
		version := c.version + int64(i)
		if i == len(c.updates) {
			if c.queue.empty() || version >= c.horizon() {
				return nil, 0
			}
			c.open()
		}
		t, idle := idleUnit(c.updates[i].tasks)
		// Reading ahead within the current update is for long ones: near its
		// end, what is left goes to those who have nothing to do.
		if t != nil && (i > 0 || holds == 0 || idle >= members) {
			return t, version
		}
		if t != nil {
			return nil, 0
		}
	}
	return nil, 0
}

// give leases a unit to a member.
func (c *coordinator) give(m *member, t *unit, version int64) {
	c.lastLease++
	t.Attempt++
	t.Generation, t.Worker = c.generation, m.index
	l := &lease{id: c.lastLease, task: t, member: m, given: time.Now()}
	if len(m.held) == 0 {
		l.begun = l.given
	}
	t.lease, m.held[l.id], c.leases[l.id] = l, l, l
	out := wire.Lease{
		ID: l.id, Evaluate: t.update == nil, Version: version,
		Exact: t.update == nil || !c.Spec.Asynchronous, Contribution: t.Contribution,
	}
	if err := m.conn.Send(wire.TypeLease, out, nil); err != nil {
		m.conn.Close() // its reader reports it as gone, and the lease comes back
	}
}

// report takes what a worker says about a lease.
func (c *coordinator) report(m *member, r wire.Report) error {
	l := c.leases[r.ID]
	if l == nil || l.member != m || r.Generation != c.generation {
		c.applied(m, r.Evaluate) // of a lease that was taken back: it has no effect
		return nil
	}
	delete(c.leases, l.id)
	delete(m.held, l.id)
	for _, next := range m.held {
		if next.begun.IsZero() {
			next.begun = time.Now()
			next.given = next.begun
		}
	}
	t := l.task
	t.lease = nil
	switch {
	case r.Dropped:
		c.discard = append(c.discard, l.id)
		c.applied(m, r.Evaluate)
		return nil
	case r.Error != "":
		c.applied(m, r.Evaluate)
		c.Log.Error("records cannot be computed", "worker", m.index, "records", t.describe(), "error", r.Error)
		if t.failures++; t.failures >= 3 {
			return fail("%s cannot be computed: %s", t.describe(), r.Error)
		}
		return nil
	}
	t.id, t.report = l.id, &r
	if t.update != nil {
		t.update.open--
		return nil
	}
	c.evaluation.open--
	return nil
}

// applied lets a worker of an asynchronous run go on.
func (c *coordinator) applied(m *member, evaluation bool) {
	if evaluation || !c.Spec.Asynchronous {
		return
	}
	if err := m.conn.Send(wire.TypeApplied, wire.Applied{Generation: c.generation, Version: c.version}, nil); err != nil {
		m.conn.Close()
	}
}
