package wire

import (
	"slices"
	"testing"
)

// A lent body stays as it is while others travel through the socket, and after the
// connection's end, until it is given back.
func TestLentBodies(t *testing.T) {
	a, b := localPair(t)
	before := mapped(t)
	const n = leastShared / 4
	lend := func() ([]float32, func()) {
		t.Helper()
		m, err := b.Receive(0)
		if err != nil {
			t.Fatal(err)
		}
		return b.Lend(m)
	}
	sends(t, a, n-1, 1)
	if v, _ := lend(); v != nil {
		t.Fatal("a body of the socket is lent")
	}
	for i := range n - 1 { // which is still to be read
		if v := make([]float32, 1); b.readValues(&Message{}, v) != nil || v[0] != values(n-1, 1)[i] {
			t.Fatal("a body that was not lent is lost")
		}
	}
	sends(t, a, n, 2)
	first, giveBack := lend()
	for frame := 3; frame < 6; frame++ {
		sends(t, a, n, frame)
		receives(t, b, n, frame)
	}
	sends(t, a, 2*n, 6) // there is no larger memory as long as the present one is in use
	receives(t, b, 2*n, 6)
	if !slices.Equal(first, values(n, 2)) || a.outbox.bodies != 2 {
		t.Errorf("%d bodies in shared memory while the first one is lent, or it has changed", a.outbox.bodies)
	}
	giveBack()
	sends(t, a, n, 7)
	receives(t, b, n, 7)
	sends(t, a, n, 8)
	second, giveBack := lend()
	if !slices.Equal(second, values(n, 8)) || a.outbox.bodies != 4 {
		t.Errorf("%d bodies in shared memory, want 4", a.outbox.bodies)
	}
	if _, err := a.conn.Write(forged(flagShared, leastShared)); err != nil { // into the other slot
		t.Fatal(err)
	}
	if m, err := b.Receive(0); err != nil || b.Skip(m) != nil {
		t.Fatal(err)
	}
	if _, err := a.conn.Write(forged(flagShared, leastShared)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Receive(0); err == nil {
		t.Error("a body takes the place of a lent one")
	}
	a.Close()
	b.Close()
	if !slices.Equal(second, values(n, 8)) || mapped(t) != before+1 {
		t.Errorf("the end of a connection takes a lent body, or %d mappings are left", mapped(t)-before)
	}
	if giveBack(); mapped(t) != before {
		t.Errorf("%d mappings are left", mapped(t)-before)
	}
}
