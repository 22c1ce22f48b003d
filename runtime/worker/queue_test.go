package worker

import (
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

func leaseOf(term, version, id int64) wire.Lease {
	return wire.Lease{ID: id, Version: version, Contribution: spec.Contribution{Term: term}}
}

// Leases are read by their versions; one that comes late waits for no buffer.
func TestQueueIsByVersions(t *testing.T) {
	var q queue
	first := leaseOf(1, 3, 1)
	first.Then = []wire.Lease{leaseOf(1, 4, 2), leaseOf(1, 5, 3), leaseOf(1, 6, 4)}
	q.add(first)
	var got []int64
	take := func() { got = append(got, q.next().ID) }
	take()
	q.add(leaseOf(1, 3, 5))
	if q.isLate() {
		t.Error("a lease of the version that is read is late")
	}
	take()
	take()
	take()
	q.add(leaseOf(1, 4, 6))
	if !q.isLate() {
		t.Error("a lease of an earlier version is not late")
	}
	take()
	if q.isLate() {
		t.Error("the next lease is late")
	}
	q.add(leaseOf(2, 0, 7)) // those of term 1 are void
	take()
	if want := []int64{1, 5, 2, 3, 6, 7}; !slices.Equal(got, want) || len(q.leases) > 0 || q.isLate() {
		t.Errorf("leases %v are read, want %v; %d are left", got, want, len(q.leases))
	}
}
