package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Pauses before the agent connects again, doubled each time.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// link is the agent's connection to the coordinator, which is made again whenever it
// is lost. Messages of the coordinator are events of the agent's loop.
type link struct {
	credentials wire.Credentials
	address     string
	hello       wire.Hello
	patience    time.Duration
	log         *slog.Logger
	events      chan any

	mu     sync.Mutex
	conn   *wire.Conn // nil: there is none
	closed bool
}

// The events of a link, except messages of the coordinator.
type (
	connected struct{}
	// abandoned ends the agent: it finds no coordinator, or is refused.
	abandoned struct{ err error }
)

// run connects again and again until the context ends.
func (l *link) run(ctx context.Context) {
	pause, met := firstPause, time.Now()
	for {
		err := l.converse(ctx, &pause, &met)
		switch {
		case ctx.Err() != nil || l.isClosed():
			return
		case errors.Is(err, wire.ErrRefused):
			l.post(ctx, abandoned{err})
			return
		case l.patience > 0 && time.Since(met) > l.patience:
			l.post(ctx, abandoned{wire.Leave{End: spec.EndNoCoordinator,
				Reason: fmt.Sprintf("no coordinator at %s for %v: %v", l.address, l.patience, err)}})
			return
		}
		l.log.Warn("not connected; connecting again", "error", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// converse connects, and passes on the coordinator's messages until the connection
// ends.
func (l *link) converse(ctx context.Context, pause *time.Duration, met *time.Time) error {
	hello := l.hello
	hello.Session = rand.Text()
	c, err := l.credentials.Dial(ctx, l.address, hello)
	if err != nil {
		return fmt.Errorf("connect to the coordinator: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	l.use(c)
	defer func() {
		l.use(nil)
		c.Close()
		*met = time.Now()
	}()
	l.post(ctx, connected{})
	for {
		m, err := c.Receive(0)
		if err != nil {
			return fmt.Errorf("coordinator: %w", err)
		}
		*pause = firstPause
		event, err := decode(m)
		if err != nil {
			return err
		}
		if event != nil {
			l.post(ctx, event)
		}
	}
}

// decode returns the event of a message; nil: it is none.
func decode(m *wire.Message) (any, error) {
	var err error
	switch m.Type {
	case wire.TypeBegin:
		var v wire.Begin
		err = m.Decode(&v)
		return v, err
	case wire.TypeHalt:
		var v wire.Halt
		err = m.Decode(&v)
		return v, err
	case wire.TypeLeave:
		var v wire.Leave
		err = m.Decode(&v)
		return v, err
	case wire.TypeHeartbeat:
		return nil, nil
	}
	return nil, fmt.Errorf("the coordinator sent %s", m.Type)
}

func (l *link) post(ctx context.Context, event any) {
	select {
	case l.events <- event:
	case <-ctx.Done():
	}
}

func (l *link) use(c *wire.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
}

func (l *link) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *link) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil
}

// send sends a message where there is a connection. A connection that fails is
// closed: on the next one the agent announces all that matters.
func (l *link) send(t wire.Type, head any) {
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c != nil && c.Send(t, head, nil) != nil {
		c.Close()
	}
}

// close closes the connection for good.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.conn != nil {
		l.conn.Close()
	}
}

// outgoing returns this machine's address for connections to the coordinator. The
// other members reach it there, too.
func outgoing(coordinator string) string {
	conn, err := net.Dial("udp", coordinator) // nothing is sent
	if err != nil {
		return "127.0.0.1"
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return "127.0.0.1"
	}
	return host
}
