package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"time"
)

// Conn is one authenticated connection. Send may be called by several
// goroutines; receiving belongs to one.
type Conn struct {
	conn   net.Conn
	r      *bufio.Reader
	header [headerBytes]byte // of the frame being received
	head   []byte            // reused from frame to frame

	send sync.Mutex
	out  []byte        // header and head of the frame being sent
	wait time.Duration // the longest that one Send may take
}

func newConn(c net.Conn) *Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetNoDelay(true) // the default; said because latency is the point
		// A machine that vanishes is noticed though nobody sends anything.
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 4})
	}
	return &Conn{conn: c, r: bufio.NewReaderSize(c, 64<<10), wait: time.Minute}
}

// Close ends the connection; whoever is sending or receiving returns.
func (c *Conn) Close() error { return c.conn.Close() }

// Message is a received frame without its body, valid until the next Receive.
type Message struct {
	Type   Type
	Values int // elements of the body, to be read with Body next
	head   []byte
	header header
}

// Decode reads the head.
func (m *Message) Decode(v any) error {
	if err := json.Unmarshal(m.head, v); err != nil {
		return fmt.Errorf("read %s: %w", m.Type, err)
	}
	return nil
}

// Send writes one frame. body may be nil; it is not kept.
func (c *Conn) Send(t Type, head any, body []float32) error {
	data, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("send %s: %w", t, err)
	}
	if len(data) > MaxHead || len(body) > MaxBody {
		return fmt.Errorf("send %s: %d bytes and %d values are over the limit", t, len(data), len(body))
	}
	values := raw(body)
	sum := crc32.Update(crc32.Checksum(data, castagnoli), castagnoli, values)

	c.send.Lock()
	defer c.send.Unlock()
	c.out = append(append(c.out[:0], make([]byte, headerBytes)...), data...)
	header{t, uint32(len(data)), uint32(len(values)), sum}.put(c.out)
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.wait)); err != nil {
		return fmt.Errorf("send %s: %w", t, err)
	}
	buffers := net.Buffers{c.out}
	if len(values) > 0 {
		buffers = append(buffers, values)
	}
	if _, err := buffers.WriteTo(c.conn); err != nil {
		return fmt.Errorf("send %s: %w", t, err)
	}
	return nil
}

// Receive reads the next frame up to its body. within bounds the wait for the
// whole frame; 0 waits for ever. When Values is not 0, Body must follow.
func (c *Conn) Receive(within time.Duration) (*Message, error) {
	return c.receive(within, MaxHead, 4*MaxBody)
}

func (c *Conn) receive(within time.Duration, maxHead, maxBody uint32) (*Message, error) {
	var deadline time.Time
	if within > 0 {
		deadline = time.Now().Add(within)
	}
	if err := c.conn.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	h, err := readHeader(c.r, c.header[:], maxHead, maxBody)
	if err != nil {
		return nil, err
	}
	if cap(c.head) < int(h.head) {
		c.head = make([]byte, h.head)
	}
	c.head = c.head[:h.head]
	if _, err := io.ReadFull(c.r, c.head); err != nil {
		return nil, fmt.Errorf("read %s: %w", h.kind, broken(err))
	}
	m := &Message{Type: h.kind, Values: int(h.body / 4), head: c.head, header: h}
	if h.body == 0 && crc32.Checksum(m.head, castagnoli) != h.sum {
		return nil, fmt.Errorf("read %s: checksum does not match", m.Type)
	}
	return m, nil
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
	values := raw(into)
	if _, err := io.ReadFull(c.r, values); err != nil {
		return fmt.Errorf("read %s: %w", m.Type, broken(err))
	}
	if crc32.Update(crc32.Checksum(m.head, castagnoli), castagnoli, values) != m.header.sum {
		return fmt.Errorf("read %s: checksum does not match", m.Type)
	}
	return nil
}

// Skip reads past the values of a message that nobody wants.
func (c *Conn) Skip(m *Message) error {
	_, err := io.CopyN(io.Discard, c.r, 4*int64(m.Values))
	return err
}

// broken tells a frame that was cut off from a connection closed between two.
func broken(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
