package coordinator

import (
	"slices"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Blocks begin at multiples of their lengths, there are no more of them than
// may be, and no worker gets far more than its share.
func TestBlocksAreBranches(t *testing.T) {
	for n := range 200 {
		for workers := 1; workers <= 40; workers++ {
			most := mostBlocks(workers)
			got := blocks(n, most)
			at, last := 0, n+1
			for i, k := range got {
				if k < 1 || at%powerOf2(k) != 0 || k != powerOf2(k) && i != len(got)-1 || k > last {
					t.Fatalf("%d leases for %d workers: %v", n, workers, got)
				}
				at, last = at+k, k
			}
			if at != n || len(got) > most || len(got) > 0 && got[0] > powerOf2((n+most-1)/most) {
				t.Fatalf("%d leases for %d workers: %v", n, workers, got)
			}
		}
	}
	for _, tt := range []struct {
		n, workers int
		want       []int
	}{{32, 2, []int{8, 8, 8, 8}}, {64, 3, []int{16, 16, 8, 8, 8, 8}}, {7, 1, []int{4, 3}}, {2, 2, []int{1, 1}}, {1, 5, []int{1}}} {
		if got := blocks(tt.n, mostBlocks(tt.workers)); !slices.Equal(got, tt.want) {
			t.Errorf("%d leases for %d workers: %v, want %v", tt.n, tt.workers, got, tt.want)
		}
	}
}

// assigning is a coordinator with an open update of so many leases of one
// record, and members that take what they get.
func assigning(t *testing.T, leases int64, cutFor int) (*coordinator, *update, func(index int) *member) {
	t.Helper()
	b := newBench(t, pointsSpec(), linear{})
	c := b.opened()
	u := &update{Contribution: spec.Contribution{End: leases}, leaf: 1}
	for at, all := int64(0), blocks(int(leases), mostBlocks(cutFor)); len(all) > 0; all = all[1:] {
		u.units = append(u.units, u.block(at, at+int64(all[0])))
		at += int64(all[0])
	}
	u.missing = len(u.units)
	c.updates, c.queue = []*update{u}, &queue{}
	return c, u, func(index int) *member { return b.enlist(c, index) }
}

// enlist makes a member of a coordinator that is not run.
func (b *bench) enlist(c *coordinator, index int) *member {
	b.t.Helper()
	go func() {
		credentials.Serve(b.ctx, b.options.Workers, func(peer *wire.Conn, _ wire.Hello) { peer.Receive(time.Hour) }, func(error) {})
	}()
	m := session.NewMember(b.dial(index), wire.Hello{Role: "worker", Index: index})
	if taken, err := c.Join(m); !taken || err != nil {
		b.t.Fatal(taken, err)
	}
	return c.members[index]
}

// holds lists the first leases of the blocks that a member has, in the order in
// which it got them.
func (m *member) holds() (firsts []int) {
	var ids []int64
	for id := range m.leases {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		firsts = append(firsts, m.leases[id].unit.Sequence)
	}
	return firsts
}

// A worker that joins gets a part of what nobody computes, cut where the sums
// allow it, and no update has more than two blocks for each worker.
func TestJoiningWorkersGetHalves(t *testing.T) {
	c, u, join := assigning(t, 22, 1) // blocks of 16 and 6
	first := join(0)
	c.assign()
	if got := first.holds(); !slices.Equal(got, []int{0, 16}) {
		t.Fatalf("the first worker has %v", got)
	}
	c.release(first)
	delete(c.members, 0)
	second, third, fourth := join(1), join(2), join(3)
	c.assign()
	var got []int
	for _, t := range u.units {
		got = append(got, t.Sequence)
	}
	if !slices.Equal(got, []int{0, 8, 16}) || u.missing != 3 {
		t.Errorf("blocks begin at %v, %d are missing", got, u.missing)
	}
	for i, m := range []*member{second, third, fourth} {
		if !slices.Equal(m.holds(), got[i:i+1]) {
			t.Errorf("worker %d has %v", m.Index, m.holds())
		}
	}
}

// Where no worker could get another one's second block in time, each has one block, unless
// another number of blocks shares the leases better.
func TestShortUpdatesHaveOneBlockForEachWorker(t *testing.T) {
	for _, tt := range []struct {
		workers int
		each    time.Duration
		want    int
	}{{2, 2*robAfter - 1, 2}, {2, 2 * robAfter, 4}, {2, 0, 4}, {1, robAfter, 2}, {3, robAfter, 6}} {
		c, _, join := assigning(t, 32, tt.workers)
		for i := range tt.workers {
			join(i)
		}
		c.pace.each, c.shape = tt.each, shape{tt.workers, 32, 1}
		c.queue = &queue{epochs: 1, gaps: ledger.Ranges{{0, 100}}}
		if u := c.open(); len(u.units) != tt.want || u.missing != tt.want {
			t.Errorf("%d workers, %v for an update: %d blocks, want %d", tt.workers, tt.each, len(u.units), tt.want)
		}
	}
}

// A worker that has nothing to do gets what a slower one holds behind what it
// computes, and no other lease.
func TestSlowWorkersAreRobbed(t *testing.T) {
	c, _, join := assigning(t, 32, 2)
	fast, slow := join(0), join(1)
	c.assign()
	if !slices.Equal(fast.holds(), []int{0, 16}) || !slices.Equal(slow.holds(), []int{8, 24}) {
		t.Fatalf("the workers have %v and %v", fast.holds(), slow.holds())
	}
	done := func(m *member) {
		t.Helper()
		var ids []int64
		for id := range m.leases {
			ids = append(ids, id)
		}
		if err := c.report(m, wire.Report{ID: slices.Min(ids), Weight: 8, Finite: true, Loss: new(float64)}); err != nil {
			t.Fatal(err)
		}
	}
	done(fast)
	done(fast)
	for _, l := range slow.leases {
		l.given = l.given.Add(-time.Minute)
	}
	c.assign()
	if !slices.Equal(fast.holds(), []int{24}) || !slices.Equal(slow.holds(), []int{8}) {
		t.Errorf("the workers have %v and %v", fast.holds(), slow.holds())
	}
	done(fast)
	for _, l := range slow.leases {
		l.given = l.given.Add(-time.Minute)
	}
	c.assign()
	if len(fast.holds()) != 0 || len(slow.leases) != 1 {
		t.Errorf("the lease that is being computed was taken: %v, %v", fast.holds(), slow.holds())
	}
}
