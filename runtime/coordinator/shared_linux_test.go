package coordinator

import (
	"testing"

	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/spec"
)

// Two members of one machine add up each other's contributions in shared memory; members that
// exchange over a network copy them, to the same bits.
func TestMembersOfAMachineShareMemory(t *testing.T) {
	var bits [2]string
	for i, network := range []bool{false, true} {
		b := unserved(t, reduceSpec(2, 20), linear{size: 5000})
		b.options.Credentials.Network, b.members = network, make(chan ps.Member, 2)
		b.serve()
		st := b.run()
		if st.Phase != spec.Succeeded || st.Step != 240 {
			t.Fatalf("status %+v", st)
		}
		for range 2 { // a member that is slow to add up two contributions gets the third one through the socket
			if loans, all := (<-b.members).Loans(); all < 240 || network && loans > 0 || !network && loans < all/2 {
				t.Errorf("network %v: %d of %d contributions were added up in shared memory", network, loans, all)
			}
		}
		bits[i] = hashed(b.parameters(), 0)
	}
	if bits[0] != bits[1] {
		t.Errorf("the parameters are %s, over a network %s", bits[0], bits[1])
	}
}
