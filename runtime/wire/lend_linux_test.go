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

// A body that is made where it is reserved travels without a copy; until then, other bodies
// travel through the socket. The memory stays until all of its users have released it.
func TestReservedBodies(t *testing.T) {
	a, b := localPair(t)
	before := mapped(t)
	const n = leastShared / 4
	if a.Reserve(n-1) != nil || a.Reserve(mostShared/4+1) != nil {
		t.Fatal("a body of the socket is reserved")
	}
	dropped := a.Reserve(n) // and never sent
	if dropped == nil || a.Reserve(n) != nil {
		t.Fatal("no memory is reserved, or twice")
	}
	sends(t, a, n, 1)
	receives(t, b, n, 1)
	if counts(a, b) != [2]uint64{} {
		t.Errorf("%d bodies in reserved memory", counts(a, b))
	}
	dropped.Release()
	for frame := 1; frame <= 6; frame += 2 {
		p := a.Reserve(n)
		if p == nil {
			t.Fatalf("body %d: no memory", frame)
		}
		copy(p.Values, values(n, frame))
		if err := a.Send(TypePush, Push{}, p.Values); err != nil {
			t.Fatal(err)
		}
		p.Hold()
		p.Release()
		receives(t, b, n, frame)
		sends(t, a, n, frame+1) // into the other slot
		receives(t, b, n, frame+1)
		if a.Reserve(n) != nil || counts(a, b) != [2]uint64{uint64(frame + 1), uint64(frame + 1)} {
			t.Errorf("body %d: memory that is still used is reserved, or %d bodies are shared", frame, counts(a, b))
		}
		p.Release()
	}
	last := a.Reserve(n)
	if last == nil {
		t.Fatal("no memory")
	}
	a.Close()
	b.Close()
	last.Values[0] = 1
	if a.Reserve(n) != nil || mapped(t) != before+1 {
		t.Errorf("memory of a closed connection is reserved, or %d mappings are left", mapped(t)-before)
	}
	if last.Release(); mapped(t) != before {
		t.Errorf("%d mappings are left", mapped(t)-before)
	}
}
