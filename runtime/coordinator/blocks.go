package coordinator

import (
	"math/bits"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// An update is cut into blocks of consecutive leases. A worker adds up a block
// and pushes it once. A block begins at a multiple of its length, rounded
// up to a power of two, so that it is a branch of the tree that all leases are
// added up in (see engine.Tree): what is committed does not depend on the blocks.

// mostBlocks is the highest number of blocks in an update, for so many workers:
// two for each, so that fast workers can compute more of them.
func mostBlocks(workers int) int { return 2 * max(1, workers) }

// blocks returns the lengths of at most so many blocks of n leases. They do not
// get longer, so that each begins where it may.
func blocks(n, most int) (lengths []int) {
	for ; n > 0; most-- {
		k := min(n, powerOf2((n+most-1)/most))
		lengths, n = append(lengths, k), n-k
	}
	return lengths
}

// powerOf2 returns the lowest power of two that is at least n.
func powerOf2(n int) int { return 1 << bits.Len(uint(n-1)) }

// block is the unit of the records [start, end) of an update.
func (u *update) block(start, end int64) *unit {
	c := spec.Contribution{Epoch: u.Epoch, Start: start, End: end, Sequence: int((start - u.Start) / u.leaf)}
	return &unit{Contribution: c, update: u}
}

// leaves is how many leases of the specification an update has.
func (u *update) leaves() int { return int((u.End - u.Start + u.leaf - 1) / u.leaf) }

// cutUnits makes the update's units: blocks of so many leases each.
func (u *update) cutUnits(lengths []int) {
	u.units = nil
	at := u.Start
	for _, leaves := range lengths {
		end := min(at+int64(leaves)*u.leaf, u.End)
		u.units = append(u.units, u.block(at, end))
		at = end
	}
	u.missing = len(u.units)
}

// leaves is how many leases of the specification a unit has.
func (u *unit) leaves() int {
	if u.update == nil {
		return 1
	}
	return int((u.End - u.Start + u.update.leaf - 1) / u.update.leaf)
}

// recut halves blocks that no worker computes, the longest first, until there
// are as many as idle workers. The update has at most so many blocks then. A
// block that met an error stays as it is.
func (u *update) recut(idlers, most int) {
	for n := countOpen(u.units); n > 0 && n < idlers && len(u.units) < most; n++ {
		at := -1
		for i, t := range u.units {
			if t.open() && t.setback.tried == nil && t.leaves() > 1 && (at < 0 || t.leaves() > u.units[at].leaves()) {
				at = i
			}
		}
		if at < 0 {
			return
		}
		whole := u.units[at]
		half := whole.Start + u.leaf*int64(powerOf2(whole.leaves())/2)
		first, second := u.block(whole.Start, half), u.block(half, whole.End)
		first.overdue, second.overdue = whole.overdue, whole.overdue
		u.units = slices.Replace(u.units, at, at+1, first, second)
		u.missing++
	}
}

// robAfter is the shortest time that a worker computes a lease before another
// worker gets its next lease: within less, its report may be on its way.
const robAfter = 5 * time.Millisecond

// tooShortToRob reports whether no worker would get another one's second block of an update
// in time: each worker then gets one block, and pushes once.
func (p *pace) tooShortToRob() bool { return p.each > 0 && p.each < 2*robAfter }

// secondLease returns the longest lease of the update that its holder has not
// begun: it computes another one, and takes longer than others; nil: none.
func (u *update) secondLease() *lease {
	var longest *lease
	for _, t := range u.units {
		if l := t.lease; l != nil && l.follows() && (longest == nil || t.leaves() > longest.unit.leaves()) {
			longest = l
		}
	}
	return longest
}

// follows reports whether the lease's holder computes another lease of the
// update before, and has done so for a while.
func (l *lease) follows() bool {
	if at := l.member.Heartbeat(); at != nil && at.Lease == l.id {
		return false // the push of the other one is on its way
	}
	for _, o := range l.member.leases {
		if o.id < l.id && o.unit.update == l.unit.update && time.Since(o.given) > robAfter {
			return true
		}
	}
	return false
}
