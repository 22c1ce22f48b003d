package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/wire"
)

// Where updates are short, their coordination takes longer than they do. Then the leases
// of several updates are given out in one message for each worker, and the members are
// asked to make these updates in one request: a series. Its leases stay with their
// workers. A lost member ends the term, as within any named update. The next term begins
// with single updates, so that errors are still found to be of the records that cause
// them.

// seriesTime is about how long the updates of a series take.
const seriesTime = 50 * time.Millisecond

// pace decides how many updates a series has.
type pace struct {
	most    time.Duration // that a series takes, about
	updates int           // of the next series; below 2: each update is opened by itself
	single  int           // updates that are made before the first series
	at      time.Time     // when the newest updates were made; zero: training has paused since
	each    time.Duration // of the newest updates; 0: it is not known yet
}

func newPace(most time.Duration) pace { return pace{most: cmp.Or(most, seriesTime)} }

// begin begins a term.
func (p *pace) begin() { p.updates, p.single, p.at, p.each = 1, 2*wire.MostAhead, time.Time{}, 0 }

// pause notes that training pauses: the time of the next updates has other work in it.
func (p *pace) pause() { p.at = time.Time{} }

// take notes that so many updates were made.
func (p *pace) take(updates int, now time.Time) {
	took, paused := now.Sub(p.at), p.at.IsZero()
	p.at, p.single = now, max(0, p.single-updates)
	if paused {
		return
	}
	fit := time.Duration(wire.MostAhead)
	if p.each = took / time.Duration(updates); p.each > 0 {
		fit = min(fit, p.most/p.each)
	}
	p.updates = max(1, min(2*p.updates, int(fit)))
	if p.single > 0 {
		p.updates = 1
	}
}

// assignSeries opens a series and gives its leases to members, unless one waits already.
func (d *dispatch) assignSeries(members []*member) {
	if !d.names || d.pace.updates < 2 || len(members) == 0 || d.evaluation != nil || len(d.setbacks) > 0 {
		return
	}
	if n := len(d.updates); n > 0 && d.updates[n-1].series > 0 && !d.updates[n-1].named {
		return
	}
	leases, waits := make(map[*member][]wire.Lease), make(map[*member]int64)
	holders := d.countHolders()
	d.lastSeries++
	for i := range d.pace.updates {
		if !d.openNext() {
			break
		}
		at := len(d.updates) - 1
		u := d.updates[at]
		lengths, shares := shareOut(u.leaves(), len(members))
		if u.cutUnits(lengths); i > 0 && min(len(lengths), len(members)) < holders { // see findSeries
			d.lastSeries++
		}
		u.series = d.lastSeries
		for i, t := range u.units {
			m := members[shares[i]]
			if n := len(leases[m]); n > 0 && waits[m] == u.series {
				leases[m][n-1].Waits = true
			}
			leases[m], waits[m] = append(leases[m], d.lease(m, t, d.version+int64(at))), u.series
		}
	}
	for m, all := range leases {
		all[0].Then = all[1:]
		m.Send(wire.TypeLease, &all[0]) // see give
	}
}

// shareOut returns blocks of so many leases, and the worker of each block: a worker has
// as few leases as possible, and as many workers as possible have some, in as few blocks.
func shareOut(leases, workers int) (lengths, shares []int) {
	least, lazy := leases+1, 0
	for _, most := range []int{workers, mostBlocks(workers)} {
		cut, loads := blocks(leases, most), make([]int, workers)
		var to []int
		for _, n := range cut {
			i := slices.Index(loads, slices.Min(loads))
			loads[i] += n
			to = append(to, i)
		}
		idle := max(0, workers-len(cut))
		if most := slices.Max(loads); most < least || most == least && idle < lazy {
			lengths, shares, least, lazy = cut, to, most, idle
		}
	}
	return lengths, shares
}

// findSeries returns the updates of the oldest series that the members may be asked for.
// Each holder contributes to each update, except the first one: it would otherwise be sent
// sums of an update before it has made the one before.
func findSeries(open []*update, holders int) (all []*update) {
	for i, u := range open {
		if u.series != open[0].series || !u.isLeased() || i > 0 && u.contributors() < holders {
			break
		}
		all = append(all, u)
	}
	return all
}

// contributors is how many workers have leases of the update.
func (u *update) contributors() int {
	var all []int
	for _, t := range u.units {
		if !slices.Contains(all, t.Worker) {
			all = append(all, t.Worker)
		}
	}
	return len(all)
}

// countHolders returns how many workers hold the parameters.
func (d *dispatch) countHolders() (n int) {
	for _, m := range d.members {
		if d.serves(m.Member) {
			n++
		}
	}
	return n
}

// isLeased reports whether all of the update is computed, or is being computed.
func (u *update) isLeased() bool {
	return !slices.ContainsFunc(u.units, func(t *unit) bool {
		return t.report == nil && (t.lease == nil || t.setback.tried != nil)
	})
}

// extend gives more time for the leases of named updates that the member has computed
// before another one: it reports on them later.
func (m *member) extend(at *lease) {
	for _, l := range m.leases {
		if u := l.unit.update; u != nil && u.named && l.id < at.id {
			l.given = at.given
		}
	}
}

// proposeAll returns the proposals of updates that follow one another.
func proposeAll(c *coordinator, all []*update) (proposals []proposal) {
	at, before := c.currentPoint(), int64(0)
	for i, u := range all {
		p := propose(u, at, recipeOfNext(c, u, int64(i), before))
		if u.series > 0 { // the members find out whether all of it is finite
			p.named, p.finite = true, true
		}
		u.named = p.named
		proposals = append(proposals, p)
		at.version++
		before += u.End - u.Start
	}
	return proposals
}

// renameRest lets the rest of a series be proposed later, after so many updates that were
// made: the members have skipped the last one of them, and the numbers of the next updates
// follow from that. The workers report what they have computed.
func renameRest(c *coordinator, made int) {
	left := false
	for _, u := range c.updates[made:] {
		if u.series == c.updates[0].series {
			u.named, left = false, true
		}
	}
	for _, m := range c.members {
		if left {
			c.applied(m)
		}
	}
}
