package sshtest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Wire is what a server does to its connections.
type Wire struct {
	// CutRead and CutWrite break a connection after so many bytes that came from
	// the client or went to it. 0: never.
	CutRead, CutWrite atomic.Int64
	// Still blocks all traffic in both directions without closing the connections.
	Still atomic.Bool
	// Drip is how long each byte takes to the client, in nanoseconds.
	Drip atomic.Int64
}

// wired is a connection that something happens to.
type wired struct {
	net.Conn
	wire     *Wire
	mu       sync.Mutex
	in, out  int64 // bytes left; negative for no end
	closed   chan struct{}
	closeOne sync.Once
}

func (w *Wire) wrap(conn net.Conn) net.Conn {
	left := func(n int64) int64 {
		if n == 0 {
			return -1
		}
		return n
	}
	return &wired{Conn: conn, wire: w, in: left(w.CutRead.Load()), out: left(w.CutWrite.Load()), closed: make(chan struct{})}
}

func (c *wired) Close() error {
	c.closeOne.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// take takes n bytes out of what is left and says how many may pass, and
// whether those are the last.
func (c *wired) take(left *int64, n int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *left < 0 {
		return n, false
	}
	if int64(n) < *left {
		*left -= int64(n)
		return n, false
	}
	n, *left = int(*left), 0
	return n, true
}

func (c *wired) stand() {
	for c.wire.Still.Load() {
		select {
		case <-c.closed:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c *wired) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.stand()
	if n, last := c.take(&c.in, n); last {
		c.Close()
		return n, io.EOF
	}
	return n, err
}

func (c *wired) Write(p []byte) (int, error) {
	c.stand()
	n, last := c.take(&c.out, len(p))
	sent, err := c.send(p[:n])
	if last {
		c.Close()
		return sent, io.ErrClosedPipe
	}
	return sent, err
}

func (c *wired) send(p []byte) (int, error) {
	pause := time.Duration(c.wire.Drip.Load())
	if pause == 0 {
		return c.Conn.Write(p)
	}
	for i := range p {
		time.Sleep(pause)
		if _, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}
