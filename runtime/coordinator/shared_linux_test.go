package coordinator

import (
	"testing"

	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/spec"
)

// Two members of one machine add up each other's contributions in shared memory, and their own
// ones too where the engine makes them there; members that exchange over a network copy them,
// to the same bits.
func TestMembersOfAMachineShareMemory(t *testing.T) {
	for _, computes := range []bool{false, true} {
		var bits [2]string
		for i, network := range []bool{false, true} {
			s := reduceSpec(2, 20)
			if computes { // the sums of several leases are made in a tree
				s.MicroBatch = s.BatchSize / 2
			}
			b := unserved(t, s, linear{size: 5000})
			if b.options.Credentials.Network, b.members = network, make(chan ps.Member, 2); computes {
				hidden(b, 1500)
			}
			b.serve()
			st := b.run()
			if st.Phase != spec.Succeeded || st.Step != 240 {
				t.Fatalf("status %+v", st)
			}
			borrows := computes && !network
			for range 2 { // a member that is slow to add up two contributions gets the third one through the socket
				loans, own, all := (<-b.members).Loans()
				if all < 240 || network && loans > 0 || !network && loans < all/2 {
					t.Errorf("engine of CPUs %v, network %v: %d of %d contributions were added up in shared memory", computes, network, loans, all)
				}
				if !borrows && own > 0 || borrows && own < all/2 {
					t.Errorf("engine of CPUs %v, network %v: %d of %d own contributions were made in shared memory", computes, network, own, all)
				}
			}
			bits[i] = hashed(b.parameters(), 0)
		}
		if bits[0] != bits[1] {
			t.Errorf("engine of CPUs %v: the parameters are %s, over a network %s", computes, bits[0], bits[1])
		}
	}
}

// A worker lends its member the own share of a contribution in larger groups, too.
func TestMembersBorrowTheirShares(t *testing.T) {
	const workers = 3
	b := unserved(t, reduceSpec(workers, 4), linear{size: 5000})
	b.members = make(chan ps.Member, workers)
	hidden(b, 1500)
	b.serve()
	st := b.run()
	if st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	for range workers {
		if _, own, _ := (<-b.members).Loans(); own < st.Step/2 {
			t.Errorf("%d own contributions of %d updates were lent", own, st.Step)
		}
	}
}
