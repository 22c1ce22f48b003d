package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Times of every connection once it is greeted. Each side sends a ping when it
// has sent nothing for a while, so that a peer that says nothing for longer is
// gone: unplugged, or stopped.
const (
	pulse   = time.Second
	Silence = 10 * time.Second
)

// writeTime bounds how long a peer may take nothing of what is sent to it, in
// pieces of writePiece bytes.
const (
	writeTime  = 30 * time.Second
	writePiece = 4 << 20
)

// Conn is one authenticated connection. Send may be called by several
// goroutines; receiving belongs to one. A peer that has vanished ends it: the
// error is then a timeout (net.Error).
type Conn struct {
	conn     net.Conn
	unix     *net.UnixConn // of one machine, once it is greeted; nil: it is none
	inbox    segment       // for the bodies that are received through it
	outbox   segment       // for those that are sent
	patience atomic.Int64  // nanoseconds, with a peer that says nothing
	late     atomic.Int64  // likewise, by which this process gets a core too late
	r        io.Reader
	until    time.Time         // that a frame must have begun to arrive by; zero: any time
	header   [headerBytes]byte // of the frame being received
	head     []byte            // reused from frame to frame

	send    sync.Mutex
	out     []byte      // header and head of the frame being sent
	buffers net.Buffers // room for its pieces
	began   time.Time
	sent    atomic.Int64 // nanoseconds since then, when the newest frame was begun

	closed chan struct{}
	once   sync.Once
}

func newConn(c net.Conn) *Conn {
	widen(c)
	conn := &Conn{conn: c, began: time.Now(), closed: make(chan struct{})}
	conn.SetPatience(Silence)
	conn.r = arriving{conn} // unbuffered, so that a stranger costs nothing
	return conn
}

// begin goes on from the handshake to the exchange of frames.
func (c *Conn) begin() {
	c.until = time.Time{}
	c.unix, _ = c.conn.(*net.UnixConn)
	c.r = bufio.NewReaderSize(arriving{c}, 64<<10)
	go c.beat()
}

// beat sends a ping whenever nothing else was sent for a pulse, until Close.
func (c *Conn) beat() {
	timer := time.NewTimer(pulse)
	defer timer.Stop()
	for wait := pulse; ; {
		armed := time.Now()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.closed:
			return
		}
		c.noteLateness(time.Since(armed) - wait)
		if wait = pulse - (time.Since(c.began) - time.Duration(c.sent.Load())); wait > 0 {
			continue
		}
		if wait = pulse; !c.send.TryLock() {
			continue // something is being sent: that says as much
		}
		c.noteSent()
		err := c.write(ping)
		c.send.Unlock()
		if err != nil {
			c.Close() // whoever receives says so
			return
		}
	}
}

// noteSent notes that a frame is begun.
func (c *Conn) noteSent() { c.sent.Store(int64(time.Since(c.began))) }

// arriving reads what the peer sends as long as it sends anything.
type arriving struct{ *Conn }

// Read looks for what has come until the peer has been silent for too long. Where the end of
// a look was noticed late there is another one: what has come meanwhile counts.
func (a arriving) Read(p []byte) (int, error) {
	patience := time.Duration(a.patience.Load())
	wait := patience + extend(patience, time.Duration(a.late.Load()))
	for looks := 0; ; looks++ {
		deadline := time.Now().Add(wait)
		if !a.until.IsZero() && a.until.Before(deadline) {
			return a.readUntil(p, a.until)
		}
		n, err := a.readUntil(p, deadline)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if wait = extend(patience, time.Since(deadline)); wait == 0 || looks == moreLooks {
			return n, err
		}
	}
}

func (a arriving) readUntil(p []byte, deadline time.Time) (int, error) {
	if err := a.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	if a.unix != nil {
		return readShared(a.unix, p, &a.inbox)
	}
	return a.conn.Read(p)
}

// SetPatience sets the longest silence of the peer, in place of ten seconds, from the next
// bytes on: more than a second, because a peer sends something every second. A process that
// does not get a core in time waits longer.
func (c *Conn) SetPatience(d time.Duration) { c.patience.Store(int64(d)) }

// Closed returns a channel that is closed when this side closes the connection.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Close ends the connection; whoever is sending or receiving returns.
func (c *Conn) Close() error {
	err := c.conn.Close()
	c.once.Do(func() {
		close(c.closed)
		c.inbox.close()
		c.outbox.close()
	})
	return err
}

// Message is a received frame without its body, valid until the next Receive.
type Message struct {
	Type   Type
	Values int // elements of the body, to be read with Body next
	head   []byte
	header header
	shared bool // the connection's segment has the body
}

// Decode reads the head.
func (m *Message) Decode(v any) error {
	if err := json.Unmarshal(m.head, v); err != nil {
		return fmt.Errorf("read %s: %w", m.Type, err)
	}
	return nil
}

// ping shows that the sender is there.
var ping = func() *Frame {
	f, err := NewFrame(TypePing, struct{}{})
	if err != nil {
		panic(err) // a constant
	}
	return f
}()

// Frame is a message that may be sent to several. Its body must stay as it is until
// the last one has it.
type Frame struct {
	kind Type
	head []byte
	body [][]byte // pieces that follow one another
	size int      // of the body
}

// NewFrame makes a frame. Its body is the parts, one behind the other; there
// may be none.
func NewFrame(t Type, head any, parts ...[]float32) (*Frame, error) {
	data, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("send %s: %w", t, err)
	}
	f := &Frame{kind: t, head: data}
	values := 0
	for _, p := range parts {
		values += len(p)
	}
	if len(data) > MaxHead || values > MaxBody {
		return nil, fmt.Errorf("send %s: %d bytes and %d values are over the limit", t, len(data), values)
	}
	for _, p := range parts {
		for piece := range slices.Chunk(raw(p), writePiece) {
			f.body = append(f.body, piece)
		}
	}
	f.size = 4 * values
	return f, nil
}

// Send writes one frame. body may be nil; it is not kept.
func (c *Conn) Send(t Type, head any, body []float32) error {
	f, err := NewFrame(t, head, body)
	if err != nil {
		return err
	}
	return c.SendFrame(f)
}

// SendFrame is Send for a frame that was made before.
func (c *Conn) SendFrame(f *Frame) error {
	c.send.Lock()
	defer c.send.Unlock()
	c.noteSent()
	return c.write(f)
}

// write is SendFrame with the send lock held. A frame that was not written
// whole leaves the connection useless.
func (c *Conn) write(f *Frame) error {
	rest, kind, memory := f.body, f.kind, (*handle)(nil)
	if c.unix != nil {
		var flags Type
		if flags, memory = c.outbox.put(f); flags != 0 {
			rest, kind = nil, kind|flags
		}
	}
	c.out = append(append(c.out[:0], make([]byte, headerBytes)...), f.head...)
	header{kind, uint32(len(f.head)), uint32(f.size), crc32.Checksum(f.head, castagnoli)}.put(c.out)
	first := c.out
	if memory != nil {
		n, err := writeShared(c.unix, first, memory)
		if err != nil {
			return fmt.Errorf("send %s: %w", f.kind, err)
		}
		first = first[n:]
	}
	pending, size := append(c.buffers[:0], first), len(first)
	for {
		for len(rest) > 0 && (len(pending) == 0 || size+len(rest[0]) <= writePiece) {
			pending, size, rest = append(pending, rest[0]), size+len(rest[0]), rest[1:]
		}
		c.buffers = pending
		if err := c.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return fmt.Errorf("send %s: %w", f.kind, err)
		}
		if _, err := pending.WriteTo(c.conn); err != nil { // which empties it
			return fmt.Errorf("send %s: %w", f.kind, err)
		}
		if len(rest) == 0 {
			return nil
		}
		pending, size = c.buffers[:0], 0
	}
}

// Receive reads the next frame's head, waiting at most within for it to begin
// (0: as long as the peer is there), and checks it.
func (c *Conn) Receive(within time.Duration) (*Message, error) {
	return c.receive(within, MaxHead, 4*MaxBody)
}

func (c *Conn) receive(within time.Duration, maxHead, maxBody uint32) (*Message, error) {
	c.until = time.Time{}
	if within > 0 {
		c.until = time.Now().Add(within)
	}
	for {
		m, err := c.next(maxHead, maxBody)
		if err != nil || m.Type != TypePing {
			c.until = time.Time{} // what has begun may take its time, as long as it comes
			return m, err
		}
		if err := c.Skip(m); err != nil {
			return nil, err
		}
	}
}

// next reads one frame's head.
func (c *Conn) next(maxHead, maxBody uint32) (*Message, error) {
	h, err := readHeader(c.r, c.header[:], maxHead, maxBody)
	if err != nil {
		return nil, err
	}
	if err := c.readHead(int(h.head)); err != nil {
		return nil, fmt.Errorf("read %s: %w", h.kind, asUnexpectedEOF(err))
	}
	m := &Message{Type: h.kind &^ (flagShared | flagSegment), Values: int(h.body / 4), head: c.head, header: h}
	m.shared = m.Type != h.kind
	if m.shared {
		if c.unix == nil {
			return nil, fmt.Errorf("read %s: shared memory, which this connection does not have", m.Type)
		}
		if err := c.inbox.announce(h.kind, int(h.body)); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.Type, err)
		}
	}
	if crc32.Checksum(m.head, castagnoli) != h.sum {
		return nil, fmt.Errorf("read %s: checksum does not match", m.Type)
	}
	return m, nil
}

// readHead reads a head of n bytes, in pieces: memory grows with the received
// bytes, not with the length in a header.
func (c *Conn) readHead(n int) error {
	const piece = 64 << 10
	for c.head = c.head[:0]; len(c.head) < n; {
		at := len(c.head)
		c.head = slices.Grow(c.head, min(piece, n-at))[:at+min(piece, n-at)]
		if _, err := io.ReadFull(c.r, c.head[at:]); err != nil {
			return err
		}
	}
	return nil
}

// Body reads the values of the message just received; into must have exactly
// as many elements. After an error its content is undefined and the connection
// must be closed.
func (c *Conn) Body(m *Message, into []float32) error {
	if len(into) != m.Values {
		return fmt.Errorf("read %s: %d values, expected %d", m.Type, m.Values, len(into))
	}
	if m.Values == 0 {
		return nil
	}
	if m.shared {
		if err := c.inbox.take(raw(into)); err != nil {
			return fmt.Errorf("read %s: %w", m.Type, err)
		}
		return nil
	}
	return c.readValues(m, into)
}

// readValues reads the next values of a body that comes through the socket.
func (c *Conn) readValues(m *Message, into []float32) error {
	if _, err := io.ReadFull(c.r, raw(into)); err != nil {
		return fmt.Errorf("read %s: %w", m.Type, asUnexpectedEOF(err))
	}
	return nil
}

// Room is where the values of a message belong whose reader uses each part of them while it
// is in the processor's caches.
type Room struct {
	Into []float32
	Ends []int              // of the parts; they rise to the length of Into
	Here func(from, to int) // is called once a part has come
}

// BodyParts is Body for a room.
func (c *Conn) BodyParts(m *Message, room *Room) error {
	if m.shared || len(room.Into) != m.Values {
		if err := c.Body(m, room.Into); err != nil {
			return err
		}
	}
	from := 0
	for _, to := range room.Ends {
		if !m.shared {
			if err := c.readValues(m, room.Into[from:to]); err != nil {
				return err
			}
		}
		room.Here(from, to)
		from = to
	}
	return nil
}

// Skip reads past the values of a message that nobody wants.
func (c *Conn) Skip(m *Message) error {
	if m.shared {
		return c.inbox.take(nil)
	}
	_, err := io.CopyN(io.Discard, c.r, 4*int64(m.Values))
	return err
}

// asUnexpectedEOF tells a frame that was cut off from a connection closed between two.
func asUnexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
