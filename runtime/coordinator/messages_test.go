package coordinator

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// tap counts the frames that pass through connections.
type tap struct {
	mu             sync.Mutex
	received, sent map[wire.Type]traffic
	prepared       []time.Time // when Prepare was received
}

type traffic struct{ frames, values int64 }

func newTap() *tap {
	return &tap{received: make(map[wire.Type]traffic), sent: make(map[wire.Type]traffic)}
}

// stream is one direction of a connection.
type stream struct {
	tap    *tap
	counts map[wire.Type]traffic
	header []byte
	skip   int64 // of the frame that passes
}

func (s *stream) pass(p []byte) {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	for len(p) > 0 {
		if n := min(s.skip, int64(len(p))); n > 0 {
			p, s.skip = p[n:], s.skip-n
			continue
		}
		n := min(16-len(s.header), len(p))
		s.header, p = append(s.header, p[:n]...), p[n:]
		if len(s.header) < 16 {
			return
		}
		head, body := binary.LittleEndian.Uint32(s.header[4:]), binary.LittleEndian.Uint32(s.header[8:])
		if wire.Type(s.header[3]) == wire.TypePrepare {
			s.tap.prepared = append(s.tap.prepared, time.Now())
		}
		c := s.counts[wire.Type(s.header[3])]
		s.counts[wire.Type(s.header[3])] = traffic{c.frames + 1, c.values + int64(body)/4}
		s.skip, s.header = int64(head)+int64(body), s.header[:0]
	}
}

type tapped struct {
	net.Listener
	tap *tap
}

type tappedConn struct {
	net.Conn
	in, out *stream
}

func (l *tapped) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &tappedConn{c, &stream{tap: l.tap, counts: l.tap.received}, &stream{tap: l.tap, counts: l.tap.sent}}, err
}

func (c *tappedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.pass(p[:n])
	return n, err
}

func (c *tappedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.pass(p[:n])
	return n, err
}

// An update costs a lease, a report and a push for each part, one request to
// the server, and each worker gets each version once: nothing else.
func TestMessagesOfAnUpdate(t *testing.T) {
	const workers, size = 2, 1000
	s := pointsSpec()
	s.Worker.Replicas, s.BatchSize, s.MicroBatch, s.Epochs, s.MaxSteps = workers, 24, 12, 1000, 200
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	server, coordinator := newTap(), newTap()
	b := unserved(t, s, linear{size: size})
	b.tapped = server
	b.options.Workers = &tapped{b.options.Workers, coordinator}
	b.serve()
	st := b.run()
	if st.Phase != spec.Succeeded || st.Step != 200 {
		t.Fatalf("status %+v", st)
	}
	for _, tapped := range []*tap{server, coordinator} { // which may still say goodbye
		tapped.mu.Lock()
		defer tapped.mu.Unlock()
	}
	updates, vector := st.Step, int64(size+6)
	leases := 2 * updates // of which there are two in an update
	evaluation := int64(1)
	for _, c := range []struct {
		what        string
		got         int64
		least, most int64
	}{
		{"leases", coordinator.sent[wire.TypeLease].frames, leases + evaluation, leases + evaluation},
		{"reports", coordinator.received[wire.TypeReport].frames, leases + evaluation, leases + evaluation},
		{"word of turning to a lease", coordinator.received[wire.TypeHeartbeat].frames, workers, updates},
		{"word of commits", coordinator.sent[wire.TypeApplied].frames, 0, workers},
		{"pushes", server.received[wire.TypePush].frames, leases, leases},
		{"values pushed", server.received[wire.TypePush].values, leases * vector, leases * vector},
		{"answers to the coordinator, not to pushes", server.sent[wire.TypeAnswer].frames, updates, updates + 20},
		{"requests to commit", server.received[wire.TypePrepare].frames, updates, updates},
		{"requests to apply", server.received[wire.TypeApply].frames, 0, 0},
		{"requests to discard", server.received[wire.TypeDiscard].frames, 0, 0},
		// Asked for with a push, or where a worker made none for this version.
		{"versions sent", server.sent[wire.TypeValues].values / vector, updates, workers * (updates + 1)},
		{"versions made", b.ps[0].Frames(), updates, updates + 1},
	} {
		if c.got < c.least || c.got > c.most {
			t.Errorf("%s: %d, want %d to %d", c.what, c.got, c.least, c.most)
		}
	}
}
