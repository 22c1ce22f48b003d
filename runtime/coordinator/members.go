package coordinator

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// member is one connected worker. A worker is a connection: when that ends, so
// does the membership.
type member struct {
	index   int
	pid     int
	hello   wire.Hello
	conn    *wire.Conn
	leases  map[int64]*lease // owned by loop
	leaving bool             // owned by loop
	heard   atomic.Int64     // nanoseconds since 1970
	at      atomic.Pointer[wire.Heartbeat]
}

func (m *member) lastHeard() time.Time { return time.Unix(0, m.heard.Load()) }

// The events that a worker's connection causes.
type (
	joined struct{ member *member }
	left   struct {
		member *member
		err    error
	}
	reported struct {
		member *member
		wire.Report
	}
	// higherTerm is one that a worker has heard of.
	higherTerm int64
	broken     struct {
		hello wire.Hello
		wire.Failure
		log    []string // last lines of its log
		answer func(wire.Leave)
	}
)

// acceptWorkers serves connections until ctx is done.
func (c *coordinator) acceptWorkers(ctx context.Context) {
	err := c.Credentials.Serve(ctx, c.Workers, func(conn *wire.Conn, hello wire.Hello) { c.serveWorker(ctx, conn, hello) }, func(err error) {
		c.Log.Warn("connection refused", "error", err)
	})
	if err != nil {
		c.Log.Error("cannot accept connections", "error", err)
	}
}

// post hands an event to loop; false when the run is over.
func (c *coordinator) post(ctx context.Context, e any) bool {
	select {
	case c.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// serveWorker reads from one worker until its connection ends.
func (c *coordinator) serveWorker(ctx context.Context, conn *wire.Conn, hello wire.Hello) {
	m := &member{index: hello.Index, hello: hello, pid: hello.PID, conn: conn, leases: make(map[int64]*lease)}
	m.heard.Store(time.Now().UnixNano())
	if how := c.over.Load(); how != nil {
		conn.Send(wire.TypeLeave, *how, nil) // at once: it may find no server, and never join
	}
	known := false
	var log []string
	for {
		msg, err := conn.Receive(0)
		if err != nil {
			if known {
				c.post(ctx, left{m, err})
			}
			return
		}
		m.heard.Store(time.Now().UnixNano())
		if !known && msg.Type != wire.TypeFailure && msg.Type != wire.TypeLog { // every worker beats at once
			known = true
			if !c.post(ctx, joined{m}) {
				return
			}
		}
		switch msg.Type {
		case wire.TypeHeartbeat:
			at := new(wire.Heartbeat)
			if err = msg.Decode(at); err == nil {
				m.at.Store(at)
				if at.Term > c.status.Load().Term && !c.post(ctx, higherTerm(at.Term)) {
					return
				}
			}
		case wire.TypeReport:
			e := reported{member: m}
			if err = msg.Decode(&e.Report); err == nil && !c.post(ctx, e) {
				return
			}
		case wire.TypeFailure:
			var f wire.Failure
			if err = msg.Decode(&f); err == nil {
				c.post(ctx, broken{hello, f, log, func(l wire.Leave) { conn.Send(wire.TypeLeave, l, nil) }})
			}
		case wire.TypeLog:
			var l wire.Log
			if err = msg.Decode(&l); err == nil {
				log = bounded(l.Lines)
				c.output.printLog(hello.Index, log)
			}
		default:
			err = fmt.Errorf("unexpected %s", msg.Type)
		}
		if err != nil || msg.Values > 0 {
			c.Log.Warn("worker does not keep to the protocol", "worker", m.index, "error", err)
			conn.Close()
		}
	}
}

// join takes a worker in. One of the same index that is still known has been
// replaced: its connection is dead or about to be, or it is another process.
// That one is told to leave, and again should it come back, so that the two do
// not replace each other for ever.
func (c *coordinator) join(m *member) error {
	if h := m.hello; h.Instance != "" {
		if c.followed[h.Instance] {
			c.Log.Warn("two workers have one index; the older one is told to leave", "worker", m.index, "pid", m.pid)
			c.dismiss(m, followed(m.index))
			return nil
		}
		if last := c.holders[m.index]; last != "" && last != h.Instance {
			c.followed[last] = true
		}
		c.holders[m.index] = h.Instance
	}
	if old := c.members[m.index]; old != nil {
		c.evidence.lose(old)
		c.release(old)
		if c.followed[old.hello.Instance] {
			c.Log.Warn("two workers have one index; the older one is told to leave", "worker", m.index, "pid", old.pid)
			c.dismiss(old, followed(m.index))
			time.AfterFunc(farewellTime, func() { old.conn.Close() }) // should it not hang up
		} else {
			old.conn.Close()
		}
	}
	if why := c.otherClass(m); why != "" {
		delete(c.members, m.index)
		c.Log.Error("worker is given up", "worker", m.index, "reason", why)
		c.dismiss(m, wire.Leave{End: spec.EndGivenUp, Reason: why})
		return nil
	}
	if m.index < 0 || m.index >= c.Spec.Worker.Replicas {
		c.dismiss(m, fewer)
		return nil
	}
	if err := c.evidence.take(m); err != nil {
		return err
	}
	c.members[m.index] = m
	c.generation++
	delete(c.silent, m.index)
	delete(c.away, m.index)
	c.Log.Info("worker joined", "worker", m.index, "pid", m.pid)
	message := "joined"
	if m.hello.Class != "" {
		message = fmt.Sprintf("joined: %s, %d threads", m.hello.Class, m.hello.Threads)
	}
	c.note(spec.Event{Type: spec.EventWorker, Worker: &m.index, Message: message})
	c.publish(spec.Running)
	return nil
}

// leave takes a worker out; its leases go back.
func (c *coordinator) leave(m *member, why error) error {
	if c.members[m.index] != m {
		return nil
	}
	delete(c.members, m.index)
	if !m.leaving {
		c.away[m.index] = time.Now()
		c.evidence.lose(m)
	}
	c.generation++
	c.release(m)
	err := c.strategy.flush(c.at()) // what some servers took must not keep others out
	c.Log.Info("worker left", "worker", m.index, "pid", m.pid, "reason", why)
	c.note(spec.Event{Type: spec.EventWorker, Worker: &m.index, Message: "left"})
	c.publish(spec.Running)
	return err
}

// followed dismisses a worker whose place another process has.
func followed(index int) wire.Leave {
	return wire.Leave{End: spec.EndAsked, Reason: fmt.Sprintf("another process has joined as worker %d since: give each worker an --index of its own", index)}
}

// otherClass says why a worker may not compute for a deterministic run: what
// has been computed so far was computed by machines of another class. The first
// worker of a run decides.
func (c *coordinator) otherClass(m *member) string {
	if !c.Spec.Deterministic || m.hello.Class == "" || m.hello.Class == c.class {
		return ""
	}
	if c.class == "" || c.version == 0 && len(c.members) == 0 {
		c.class = m.hello.Class
		return ""
	}
	return fmt.Sprintf("the run is deterministic and has been computed on %q; this machine is %q, whose results differ in the last bits: run it on the former, or begin a new run without deterministic", c.class, m.hello.Class)
}

// fewer dismisses a worker that the run does not need.
var fewer = wire.Leave{End: spec.EndAsked, Reason: "the run needs fewer workers"}

// dismiss tells a worker to go.
func (c *coordinator) dismiss(m *member, how wire.Leave) {
	m.leaving, how.Term = true, c.term
	if err := m.conn.Send(wire.TypeLeave, how, nil); err != nil {
		m.conn.Close()
	}
}

// release gives back the leases of a member.
func (c *coordinator) release(m *member) {
	for id, l := range m.leases {
		delete(m.leases, id)
		delete(c.leases, id)
		c.strategy.discard(id)
		l.unit.lease = nil
	}
}
