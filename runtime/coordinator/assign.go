package coordinator

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// ahead is how many leases of an update a worker holds: one to compute, one
// whose records it reads meanwhile. The worker holds as many of the next update,
// so that it need not wait for the coordinator between the two.
const ahead = 2

// assign gives leases to workers: first to idle ones, then leases to read
// ahead.
func (c *coordinator) assign() {
	c.message = c.evidence.newest
	if n := len(c.members); n < c.Spec.Worker.MinReplicas {
		c.message = fmt.Sprintf("waiting for workers: %d of at least %d", n, c.Spec.Worker.MinReplicas)
		if why := c.evidence.newest; why != "" {
			c.message += ": " + why
		}
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
	idlers := slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return c.computable(m) > 0 })
	if c.evaluation == nil && len(c.updates) > 0 {
		c.updates[0].recut(len(idlers), mostBlocks(len(members)))
	}
	for holds := range ahead {
		left := 0
		if c.evaluation != nil {
			left = countOpen(c.evaluation.units)
		} else {
			left = c.strategy.left(c.updates)
		}
		enough := holds == 0 || left >= len(members) // else idle workers get the rest
		for _, m := range members {
			if enough && c.computable(m) == holds {
				if t := c.pick(m); t != nil {
					c.give(m, t, c.version)
				}
			}
		}
	}
	for _, m := range idlers { // they get what slower workers hold
		if c.computable(m) > 0 || c.evaluation != nil || len(c.updates) == 0 {
			continue
		}
		if l := c.updates[0].secondLease(); l != nil && l.unit.isFor(m, c.members) {
			c.revoke(l)
			c.give(m, l.unit, c.version)
		}
	}
	for holds := range ahead {
		enough := holds == 0 || len(c.updates) > 1 && countOpen(c.updates[1].units) >= len(members)
		for _, m := range members {
			if enough && len(m.leases)-c.computable(m) == holds {
				if t := c.pickNext(m); t != nil {
					c.give(m, t, c.version+1)
				}
			}
		}
	}
}

// revoke takes a lease back from its holder.
func (c *coordinator) revoke(l *lease) {
	delete(l.member.leases, l.id)
	delete(c.leases, l.id)
	l.unit.lease = nil
	c.strategy.discard(l.id)
	if err := l.member.conn.Send(wire.TypeRevoke, wire.Revoke{Term: c.term, ID: l.id}, nil); err != nil {
		l.member.conn.Close() // its reader reports it as gone
	}
}

// computable is how many of a member's leases it has all it needs for; the
// others are of the next update.
func (c *coordinator) computable(m *member) int {
	n := 0
	for _, l := range m.leases {
		if c.current(l) {
			n++
		}
	}
	return n
}

// pick returns the next unit for a member that can be computed with the present
// version.
func (c *coordinator) pick(m *member) *unit {
	if c.evaluation != nil {
		return findOpen(c.evaluation.units, m, c.members)
	}
	return c.take(m, c.strategy.now)
}

// pickNext returns a unit for a member whose records can be read before its
// version is there.
func (c *coordinator) pickNext(m *member) *unit {
	if c.evaluation != nil {
		return nil
	}
	return c.take(m, c.strategy.ahead)
}

// take returns the first unit of an offer that a member may have, of an update
// that is opened for it if need be.
func (c *coordinator) take(m *member, offered func(open []*update) offer) *unit {
	for {
		o := offered(c.updates)
		if t := findOpen(o.units, m, c.members); t != nil {
			return t
		}
		if !o.more || !c.openNext() {
			return nil
		}
	}
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
	t.Term, t.Generation, t.Worker = c.term, c.generation, m.index
	l := &lease{id: c.lastLease, unit: t, member: m, given: time.Now()}
	l.current = c.current(l)
	t.lease, m.leases[l.id], c.leases[l.id] = l, l, l
	out := wire.Lease{
		ID: l.id, Evaluate: t.update == nil, Version: version, Current: c.version,
		Exact: t.update == nil || c.strategy.exact(), Contribution: t.Contribution,
		Workers: c.Spec.Worker.Replicas, Early: t.update != nil && c.strategy.early(),
	}
	if t.update != nil {
		out.Leaf = t.update.leaf
	}
	if err := m.conn.Send(wire.TypeLease, out, nil); err != nil {
		m.conn.Close() // its reader reports it as gone, and the lease comes back
	}
}

// report takes what a worker says about a lease.
func (c *coordinator) report(m *member, r wire.Report) error {
	l := c.leases[r.ID]
	if l == nil || l.member != m || r.Term != c.term {
		c.applied(m) // of a lease that was taken back: it has no effect, but the worker may wait
		return nil
	}
	delete(c.leases, l.id)
	delete(m.leases, l.id)
	for _, next := range m.leases { // it turns to one of these now
		next.given = time.Now()
	}
	t := l.unit
	t.lease = nil
	switch {
	case r.Dropped:
		c.strategy.discard(l.id)
		c.applied(m)
		return c.strategy.flush(c.at()) // what some servers took must not keep others out
	case r.Error != "":
		c.applied(m)
		c.Log.Error("records cannot be computed", "worker", m.index, "records", t.describe(), "fault", r.Fault, "error", r.Error)
		err := c.evidence.failed(t, m, r.Fault, r.Error)
		if err == nil && r.Fault == spec.FaultEngine {
			c.dismiss(m, wire.Leave{End: spec.EndError, Reason: "its engine failed: another process takes its place"})
		}
		return err
	}
	t.id, t.session, t.report, c.evidence.newest = l.id, m.hello.Session, &r, ""
	if t.update != nil {
		t.update.missing--
	} else {
		c.evaluation.open--
	}
	return nil
}

// applied tells a worker which version there is, which it may wait for.
func (c *coordinator) applied(m *member) {
	if err := m.conn.Send(wire.TypeApplied, wire.Applied{Term: c.term, Version: c.version}, nil); err != nil {
		m.conn.Close() // its reader reports it as gone
	}
}
