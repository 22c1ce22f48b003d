package wire

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// localPair returns both ends of a greeted connection within this machine.
func localPair(t testing.TB) (a, b *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := func(fd int) *Conn {
		file := os.NewFile(uintptr(fd), "socket")
		defer file.Close()
		raw, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(raw)
		c.begin()
		t.Cleanup(func() { c.Close() })
		return c
	}
	return end(fds[0]), end(fds[1])
}

// values has n values that follow from the number of the frame.
func values(n, frame int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(frame + i)
	}
	return v
}

// receives checks the next frame of a connection.
func receives(t *testing.T, c *Conn, n, frame int) {
	t.Helper()
	m, err := c.Receive(0)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, m.Values)
	if err := c.Body(m, v); err != nil {
		t.Fatal(err)
	}
	if m.Type != TypePush || !slices.Equal(v, values(n, frame)) {
		t.Fatalf("frame %d is %s with %d values, or other ones than %d", frame, m.Type, len(v), n)
	}
}

func sends(t *testing.T, c *Conn, n, frame int) {
	t.Helper()
	if err := c.Send(TypePush, Push{}, values(n, frame)); err != nil {
		t.Fatal(err)
	}
}

// counts returns the bodies that went through shared memory, by the sender and by
// the receiver.
func counts(from, to *Conn) [2]uint64 { return [2]uint64{from.outbox.bodies, to.inbox.bodies} }

func TestBodiesTravelThroughSharedMemory(t *testing.T) {
	a, b := localPair(t)
	const n = leastShared / 4
	frame, before := 0, mapped(t)
	exchange := func(values int) {
		frame++
		sends(t, a, values, frame)
		receives(t, b, values, frame)
	}
	exchange(n - 1)
	if got := counts(a, b); got != [2]uint64{} {
		t.Errorf("a short body: %v in shared memory", got)
	}
	for range 3 {
		exchange(n)
	}
	exchange(n - 1)
	if got := counts(a, b); got != [2]uint64{3, 3} {
		t.Errorf("3 bodies: %v in shared memory", got)
	}
	exchange(3 * n) // in a new segment
	exchange(2 * n)
	if got := counts(a, b); got != [2]uint64{2, 2} {
		t.Errorf("2 bodies: %v in the new segment", got)
	}
	if got := mapped(t) - before; got != 2 {
		t.Errorf("%d mappings, want one on each side", got)
	}
	frame++
	done := make(chan error, 1)
	go func() { done <- a.Send(TypePush, Push{}, values(mostShared/4+1, frame)) }()
	receives(t, b, mostShared/4+1, frame)
	if err := <-done; err != nil || counts(a, b) != [2]uint64{2, 2} {
		t.Errorf("a long body: %v in shared memory, %v", counts(a, b), err)
	}
}

// The third of some frames takes the socket until the first one's body is copied.
func TestOccupiedMemoryIsLeftAlone(t *testing.T) {
	a, b := localPair(t)
	const n = leastShared / 4
	for frame := range 4 {
		sends(t, a, n, frame)
	}
	for frame := range 4 {
		receives(t, b, n, frame)
	}
	if got := counts(a, b); got != [2]uint64{2, 2} {
		t.Errorf("%v bodies in shared memory, want the first two", got)
	}
	for frame := range 2 { // a skipped body makes room as well
		sends(t, a, n, frame)
		m, err := b.Receive(0)
		if err == nil {
			err = b.Skip(m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sends(t, a, n, 9)
	receives(t, b, n, 9)
	if got := counts(a, b); got != [2]uint64{5, 5} {
		t.Errorf("%v bodies in shared memory, want 5", got)
	}
}

// mapped counts this process' mappings of shared memory.
func mapped(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "memfd:stoke")
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A sender that ends at any step leaves neither half a body nor memory.
func TestSenderEndsWithinAnExchange(t *testing.T) {
	const n = leastShared / 4
	frame, err := NewFrame(TypePush, Push{}, values(n, 2))
	if err != nil {
		t.Fatal(err)
	}
	before, open := mapped(t), descriptors(t)
	for name, step := range map[string]func(a *Conn){
		"before the first body":  func(*Conn) {},
		"with memory not sent":   func(a *Conn) { _, h := a.outbox.put(frame); h.close() },
		"with memory, no frame":  func(a *Conn) { _, h := a.outbox.put(frame); writeShared(a.unix, []byte{0x53}, h) },
		"with a second body":     func(a *Conn) { sends(t, a, n, 1); a.outbox.put(frame) },
		"with half a head":       func(a *Conn) { sends(t, a, n, 1); a.conn.Write([]byte{0x53, 0x6b, protocol}) },
		"with a body not copied": func(a *Conn) { sends(t, a, n, 1); sends(t, a, n, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := localPair(t)
			step(a)
			a.Close()
			for {
				m, err := b.Receive(0)
				if err != nil {
					if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("the receiver's error is %v", err)
					}
					break
				}
				v := make([]float32, m.Values)
				if err := b.Body(m, v); err != nil || !slices.Equal(v[1:], values(n, int(v[0]))[1:]) {
					t.Errorf("half a body came, or %v", err)
				}
			}
			b.Close()
			if got := mapped(t); got != before {
				t.Errorf("%d mappings are left", got-before)
			}
		})
	}
	if got := descriptors(t); got > open {
		t.Errorf("%d descriptors are left", got-open)
	}
}

// memory returns memory of a size with seals, as a peer may send it.
func memory(t testing.TB, size int64, seals int) *handle {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &handle{fd}
}

// forged is the header and the head of a frame with flags.
func forged(flags Type, body int) []byte {
	frame, err := NewFrame(TypePush, Push{})
	if err != nil {
		panic(err)
	}
	text := append(make([]byte, headerBytes), frame.head...)
	header{TypePush | flags, uint32(len(frame.head)), uint32(body), crc32.Checksum(frame.head, castagnoli)}.put(text)
	return text
}

func TestForgedMemoryIsRefused(t *testing.T) {
	const whole = segmentHead + slots*leastShared
	for name, c := range map[string]struct {
		flags Type
		body  int
		size  int64 // of the memory; 0: none comes
		seals int
		want  string
	}{
		"no memory":         {flagShared | flagSegment, leastShared, 0, 0, "did not come"},
		"no segment yet":    {flagShared, leastShared, 0, 0, "shared memory of 0"},
		"not for a body":    {flagSegment, leastShared, whole, seals, "shared memory of"},
		"size not sealed":   {flagShared | flagSegment, leastShared, whole, unix.F_SEAL_GROW, "not sealed"},
		"too small":         {flagShared | flagSegment, leastShared, segmentHead, seals, "64 bytes: want"},
		"too large":         {flagShared | flagSegment, leastShared, segmentHead + slots*mostShared + 1, seals, "want 32832 to"},
		"body larger":       {flagShared | flagSegment, leastShared + 4, whole, seals, "a body of 16388 bytes"},
		"body of no length": {flagShared | flagSegment, 0, whole, seals, "a body of 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := localPair(t)
			text := forged(c.flags, c.body)
			var err error
			if c.size > 0 {
				_, err = writeShared(a.unix, text, memory(t, c.size, c.seals))
			} else {
				_, err = a.conn.Write(text)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Receive(0); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one about %q", err, c.want)
			}
		})
	}
}

// Memory that no frame tells of is not collected.
func TestMemoryComesOnce(t *testing.T) {
	a, b := localPair(t)
	before := descriptors(t)
	for range 3 {
		if _, err := writeShared(a.unix, []byte{0x53}, memory(t, segmentHead+leastShared, seals)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Receive(0); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the error is %v", err)
	}
	b.Close()
	a.Close()
	if got := descriptors(t); got > before {
		t.Errorf("%d descriptors are left", got-before)
	}
}

// A connection over a network has no shared memory.
func TestSharedMemoryStaysOnTheMachine(t *testing.T) {
	c := newConn(source{Reader: bytes.NewReader(forged(flagShared, leastShared))})
	c.begin()
	defer c.Close()
	if _, err := c.Receive(0); err == nil || !strings.Contains(err.Error(), "does not have") {
		t.Errorf("the error is %v", err)
	}
}

// FuzzSegment receives frames about shared memory with any flags and sizes.
func FuzzSegment(f *testing.F) {
	f.Add(byte(flagShared|flagSegment), uint32(leastShared), uint32(segmentHead+slots*leastShared), true)
	f.Add(byte(flagShared), uint32(1<<20), uint32(0), false)
	f.Add(byte(flagSegment), uint32(4), uint32(segmentHead-1), true)
	f.Fuzz(func(t *testing.T, flags byte, body, size uint32, sealed bool) {
		var s segment
		defer s.close()
		if size %= 4 << 20; size > 0 {
			with := 0
			if sealed {
				with = seals
			}
			if err := s.give(memory(t, int64(size), with)); err != nil {
				t.Fatal(err)
			}
		}
		if s.announce(Type(flags), int(body)) == nil {
			if err := s.take(make([]byte, body)); err != nil || int(body) > (int(size)-segmentHead)/slots || !sealed {
				t.Errorf("a body of %d bytes was taken from memory of %d (sealed: %v): %v", body, size, sealed, err)
			}
		}
	})
}
