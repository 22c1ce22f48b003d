package coordinator

import (
	"slices"
	"sort"
	"time"

	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// member is one member of the session, with its leases.
type member struct {
	*session.Member
	leases  map[int64]*lease
	named   int64 // the lease that its newest heartbeat names; 0: none
	departs bool  // it waits for Leave
}

// ahead is how many leases of an update a worker holds: one to compute, one
// whose records it reads meanwhile. The worker holds as many of the next update,
// so that it need not wait for the coordinator between the two.
const ahead = 2

// dispatch hands out the units of an evaluation, or of the open updates.
type dispatch struct {
	schedule   schedule
	session    *session.Session
	members    map[int]*member
	queue      *queue   // nil: no state was restored yet
	version    int64    // updates committed
	limit      int64    // version up to which updates may be opened
	steps      int64    // that the run will have in the end
	setbacks   setbacks // of units in earlier terms
	shape      shape    // of an update
	updates    []*update
	evaluation *evaluation // nil: training goes on
	leases     map[int64]*lease
	lastLease  int64
	early      bool // workers may report before their pushes have arrived
	names      bool // updates may be named: see naming.go
	pace       pace // of series
	lastSeries int64
	serves     func(*session.Member) bool // a worker can get the parameters
	void       []int64                    // leases that were taken back, for the holders of the parameters to forget
}

// shape is what an update is made of.
type shape struct {
	workers int   // that the run is for
	batch   int   // records in an update
	leaf    int64 // records in each lease of the specification
}

func shapeOf(s *spec.Spec, records int64) shape {
	workers := s.Worker.Replicas
	return shape{workers, s.GlobalBatch(workers), int64(s.LeaseRecords(records))}
}

// assign gives leases to workers: first to idle ones, then leases to read
// ahead.
func (d *dispatch) assign() {
	members := make([]*member, 0, len(d.members))
	for _, m := range d.members {
		if !m.Leaving() && !m.departs && d.serves(m.Member) {
			members = append(members, m)
		}
	}
	sort.Slice(members, func(i, j int) bool { return members[i].Index < members[j].Index })
	d.assignSeries(members)
	idlers := slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return d.computable(m) > 0 })
	if d.evaluation == nil && len(d.updates) > 0 {
		d.updates[0].recut(len(idlers), mostBlocks(len(members)))
	}
	for holds := range ahead {
		left := 0
		if d.evaluation != nil {
			left = countOpen(d.evaluation.units)
		} else {
			left = d.schedule.unassigned(d.updates)
		}
		enough := holds == 0 || left >= len(members) // else idle workers get the rest
		for _, m := range members {
			if enough && d.computable(m) == holds {
				if t := d.pick(m); t != nil {
					d.give(m, t, d.version)
				}
			}
		}
	}
	for _, m := range idlers { // they get what slower workers hold
		if d.computable(m) > 0 || d.evaluation != nil || len(d.updates) == 0 || d.updates[0].series > 0 {
			continue
		}
		if l := d.updates[0].secondLease(); l != nil && l.unit.isFor(m, d.members) {
			d.revoke(l)
			d.give(m, l.unit, d.version)
		}
	}
	for holds := range ahead {
		enough := holds == 0 || len(d.updates) > 1 && countOpen(d.updates[1].units) >= len(members)
		for _, m := range members {
			if enough && len(m.leases)-d.computable(m) == holds {
				if t := d.pickNext(m); t != nil {
					d.give(m, t, d.version+1)
				}
			}
		}
	}
}

// revoke takes a lease back from its holder.
func (d *dispatch) revoke(l *lease) {
	delete(l.member.leases, l.id)
	delete(d.leases, l.id)
	l.unit.lease = nil
	d.discard(l.id)
	l.member.Send(wire.TypeRevoke, wire.Revoke{Term: d.session.Term(), ID: l.id})
}

// computable is how many of a member's leases it has all it needs for; the
// others are of the next update.
func (d *dispatch) computable(m *member) int {
	n := 0
	for _, l := range m.leases {
		if d.current(l) {
			n++
		}
	}
	return n
}

// pick returns the next unit for a member that can be computed with the present
// version.
func (d *dispatch) pick(m *member) *unit {
	if d.evaluation != nil {
		return findOpen(d.evaluation.units, m, d.members)
	}
	return d.take(m, d.schedule.computable)
}

// pickNext returns a unit for a member whose records can be read before its
// version is there.
func (d *dispatch) pickNext(m *member) *unit {
	if d.evaluation != nil {
		return nil
	}
	return d.take(m, d.schedule.prefetchable)
}

// take returns the first unit of an offer that a member may have, of an update
// that is opened for it if need be.
func (d *dispatch) take(m *member, offered func(open []*update) offer) *unit {
	for {
		o := offered(d.updates)
		if t := findOpen(o.units, m, d.members); t != nil {
			return t
		}
		if !o.more || !d.openNext() {
			return nil
		}
	}
}

// openNext opens one more update, unless something is to be done before it.
func (d *dispatch) openNext() bool {
	if d.queue.empty() || d.version+int64(len(d.updates)) >= d.limit {
		return false
	}
	d.open()
	return true
}

// give leases a unit to a member.
func (d *dispatch) give(m *member, t *unit, version int64) {
	out := d.lease(m, t, version)
	m.Send(wire.TypeLease, &out) // where that fails, the member leaves and the lease comes back
}

// lease makes the lease of a unit for a member.
func (d *dispatch) lease(m *member, t *unit, version int64) wire.Lease {
	d.lastLease++
	t.Attempt++
	t.Term, t.Generation, t.Worker = d.session.Term(), d.session.Generation(), m.Index
	l := &lease{id: d.lastLease, unit: t, member: m, given: time.Now()}
	l.current = d.current(l)
	t.lease, m.leases[l.id], d.leases[l.id] = l, l, l
	out := wire.Lease{
		ID: l.id, Evaluate: t.update == nil, Version: version, Current: d.version,
		Exact: t.update == nil || d.schedule.exactVersion(), Contribution: t.Contribution,
		Workers: d.shape.workers, Early: t.update != nil && d.early,
	}
	if t.update != nil {
		out.Leaf = t.update.leaf
	}
	return out
}

// open starts the next update.
func (d *dispatch) open() *update {
	s := d.shape
	u := &update{Contribution: d.queue.next(s.batch), workers: s.workers, leaf: s.leaf}
	lengths := blocks(u.leaves(), mostBlocks(len(d.members)))
	if len(d.members) > 1 && d.pace.tooShortToRob() {
		lengths, _ = shareOut(u.leaves(), len(d.members))
	}
	u.cutUnits(lengths)
	for _, t := range u.units {
		t.setback = d.setbacks.findSetback(t)
	}
	d.updates = append(d.updates, u)
	return u
}

// current reports whether a lease's holder has all that it needs to compute
// it.
func (d *dispatch) current(l *lease) bool {
	return l.unit.update == nil || d.schedule.hasParameters(l.unit.update, d.updates)
}

// isLate reports whether a lease makes no progress for too long. A worker that waits for
// others holds leases of later updates in a series: only the one that it computes counts.
func isLate(c *coordinator, l *lease, now time.Time) bool {
	computed := l.unit.update != nil && l.unit.update.named && l.member.named == l.id
	return (c.current(l) || computed) && now.Sub(l.given) > c.LeaseTimeout<<min(l.unit.overdue, maxDoublings)
}

// end takes the lease of a member out; nil: it has none of this id.
func (d *dispatch) end(m *member, id int64) *lease {
	l := d.leases[id]
	if l == nil || l.member != m {
		return nil
	}
	delete(d.leases, id)
	delete(m.leases, id)
	l.unit.lease = nil
	for _, next := range m.leases { // it turns to one of these now
		next.given = time.Now()
	}
	return l
}

// release gives back the leases of a member.
func (d *dispatch) release(m *member) {
	for _, l := range m.leases {
		d.takeBack(m, l)
	}
}

// handBack gives back the leases of a member that departs, except the leases of a named
// update: the member computes them before it leaves.
func (d *dispatch) handBack(m *member) {
	for _, l := range m.leases {
		if u := l.unit.update; u == nil || !u.named {
			d.takeBack(m, l)
		}
	}
}

func (d *dispatch) takeBack(m *member, l *lease) {
	delete(m.leases, l.id)
	delete(d.leases, l.id)
	d.discard(l.id)
	l.unit.lease = nil
}

// discard makes the contributions of leases void that were taken back, with the
// next request at the latest.
func (d *dispatch) discard(leases ...int64) { d.void = append(d.void, leases...) }

// takeVoid returns the leases whose contributions are void, for a request to the
// holders of the parameters.
func (d *dispatch) takeVoid() []int64 {
	void := d.void
	d.void = nil
	return void
}

// applied tells a worker which version there is, which it may wait for.
func (d *dispatch) applied(m *member) {
	m.Send(wire.TypeApplied, wire.Applied{Term: d.session.Term(), Version: d.version})
}

// currentPoint returns the point where the parameters are.
func (d *dispatch) currentPoint() point { return point{d.session.Term(), d.version} }

// Step returns how many updates were committed.
func (d *dispatch) Step() int64 { return d.version }

// Dismissed gives back the leases of a member that is dismissed.
func (d *dispatch) Dismissed(m *session.Member) {
	if member := d.members[m.Index]; member != nil {
		d.release(member)
	}
}

// giveUp takes back all leases.
func (d *dispatch) giveUp() {
	for _, m := range d.members {
		d.release(m)
	}
	d.updates, d.evaluation = nil, nil
}

// forecast sets how many updates the run will have in the end; limit 0: as many
// as its epochs have.
func (d *dispatch) forecast(limit int) {
	d.steps = d.version + int64(len(d.updates)) + d.queue.slices(d.shape.batch)
	if limit > 0 {
		d.steps = min(d.steps, int64(limit))
	}
}
