package session

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Member is one connected process. A membership is a connection: when that ends,
// so does the membership.
type Member struct {
	Index   int
	Hello   wire.Hello
	conn    *wire.Conn
	leaving bool         // owned by the loop
	heard   atomic.Int64 // nanoseconds since 1970
	beat    atomic.Pointer[wire.Heartbeat]
}

// NewMember returns the member of a connection.
func NewMember(conn *wire.Conn, hello wire.Hello) *Member {
	m := &Member{Index: hello.Index, Hello: hello, conn: conn}
	m.heard.Store(time.Now().UnixNano())
	return m
}

// Leaving reports whether the member was dismissed.
func (m *Member) Leaving() bool { return m.leaving }

// Heartbeat returns the member's newest heartbeat; nil: there was none yet.
func (m *Member) Heartbeat() *wire.Heartbeat { return m.beat.Load() }

// Beat takes a heartbeat.
func (m *Member) Beat(b *wire.Heartbeat) { m.beat.Store(b) }

// Send sends a message without values. Where that fails, the connection is
// closed: the member then leaves.
func (m *Member) Send(t wire.Type, head any) {
	if err := m.conn.Send(t, head, nil); err != nil {
		m.conn.Close()
	}
}

// Disconnect closes the member's connection: the member then leaves.
func (m *Member) Disconnect() { m.conn.Close() }

// Seat is a member's place in a session: there is at most one process in each.
type Seat struct {
	Role  string // wire.RoleWorker or wire.RoleServer
	Index int
}

// seatOf returns the seat that a process asks for.
func seatOf(h wire.Hello) Seat {
	if h.Role == wire.RoleServer {
		return Seat{wire.RoleServer, h.Index}
	}
	return Seat{wire.RoleWorker, h.Index}
}

// String returns the name of the role, such as worker-1.
func (s Seat) String() string { return run.RoleName(s.Role, s.Index) }

// event returns an event of the history about the seat.
func (s Seat) event(message string) spec.Event {
	if s.Role == wire.RoleServer {
		return spec.Event{Type: spec.EventServer, Worker: &s.Index, Message: message}
	}
	return spec.Event{Type: spec.EventWorker, Worker: &s.Index, Message: message}
}

// hung returns the report to the supervisor that the seat's process hangs.
func (s Seat) hung(pid int) spec.Control {
	if s.Role == wire.RoleServer {
		return spec.Control{Hung: &spec.Hung{Server: &s.Index, PID: pid}}
	}
	return spec.Control{Hung: &spec.Hung{Worker: &s.Index, PID: pid}}
}

// isIn reports whether a run has the seat.
func (s Seat) isIn(run *spec.Spec) bool {
	n := 0
	switch s.Role {
	case wire.RoleServer:
		n = run.ParameterServer.Replicas
	case wire.RoleWorker:
		n = run.Worker.Replicas
	}
	return s.Index >= 0 && s.Index < n
}

// Seat returns the member's seat.
func (m *Member) Seat() Seat { return seatOf(m.Hello) }

// Process returns a name of the member's process that no other process has.
func (m *Member) Process() string {
	if m.Hello.Instance != "" {
		return m.Hello.Instance
	}
	return fmt.Sprintf("%d/%d", m.Index, m.Hello.PID)
}

// Inability is the report of a process that cannot work.
type Inability struct {
	Hello wire.Hello
	wire.Failure
	Workers int // that are in the session
}

// The events that a connection causes.
type (
	joined     struct{ member *Member }
	memberLeft struct {
		member *Member
		err    error
	}
	received struct {
		member  *Member
		message any
	}
	// higherTerm is a term that a member obeys.
	higherTerm int64
	brokenLink struct {
		hello wire.Hello
		wire.Failure
		log    []string // last lines of its log
		answer func(wire.Leave)
	}
)

// roll is who is in a session.
type roll struct {
	members    map[Seat]*Member
	silent     map[Seat]missing
	away       map[Seat]time.Time // when a member's connection was lost that has not come back
	instances  map[Seat]string    // instance that joined last
	replaced   map[string]bool    // instances whose place another one has taken
	generation int64              // of the memberships
}

func newRoll() roll {
	return roll{members: make(map[Seat]*Member), silent: make(map[Seat]missing), away: make(map[Seat]time.Time),
		instances: make(map[Seat]string), replaced: make(map[string]bool)}
}

// missing is a member that fell silent: its machine may be busy, so that it gets
// some time to come back before it is replaced.
type missing struct {
	pid   int
	since time.Time
}

// CountWorkers returns how many members are workers.
func (r *roll) CountWorkers() (n int) {
	for at := range r.members {
		if at.Role == wire.RoleWorker {
			n++
		}
	}
	return n
}

// Generation returns the number of the present membership.
func (r *roll) Generation() int64 { return r.generation }

// Attended reports whether there are as many workers as the run needs.
func (s *Session) Attended() bool { return s.CountWorkers() >= s.Spec.Worker.MinReplicas }

// door serves the connections of members.
type door struct{ *Session }

// accept serves connections until ctx is done.
func (s door) accept(ctx context.Context) {
	serve := func(conn *wire.Conn, hello wire.Hello) { s.serveMember(ctx, conn, hello) }
	err := s.Credentials.Serve(ctx, s.Workers, serve, func(err error) {
		s.Log.Warn("connection refused", "error", err)
	})
	if err != nil {
		s.Log.Error("cannot accept connections", "error", err)
	}
}

// serveMember reads from one process until its connection ends.
func (s door) serveMember(ctx context.Context, conn *wire.Conn, hello wire.Hello) {
	m := NewMember(conn, hello)
	if how := s.over.Load(); how != nil {
		conn.Send(wire.TypeLeave, *how, nil) // at once: it may find no server, and never join
	}
	r := reader{session: s.Session, member: m}
	for {
		msg, err := conn.Receive(0)
		if err != nil {
			if r.known {
				s.Post(ctx, memberLeft{m, err})
			}
			return
		}
		m.heard.Store(time.Now().UnixNano())
		if !r.known && msg.Type != wire.TypeFailure && msg.Type != wire.TypeLog { // every member beats at once
			r.known = true
			if !s.Post(ctx, joined{m}) {
				return
			}
		}
		event, err := r.read(msg)
		if event != nil && !s.Post(ctx, event) {
			return
		}
		if err != nil || msg.Values > 0 {
			s.Log.Warn("member does not keep to the protocol", "worker", m.Index, "error", err)
			conn.Close()
		}
	}
}

// reader reads the messages of one connection.
type reader struct {
	session *Session
	member  *Member
	known   bool // its joined event was posted
	log     []string
}

// read returns the event of a message; nil: it is none.
func (r *reader) read(msg *wire.Message) (event any, err error) {
	s, m := r.session, r.member
	switch msg.Type {
	case wire.TypeHeartbeat:
		beat := new(wire.Heartbeat)
		if err := msg.Decode(beat); err != nil {
			return nil, err
		}
		m.Beat(beat)
		if beat.Term > s.status.Load().Term {
			return higherTerm(beat.Term), nil
		}
	case wire.TypeFailure:
		e := brokenLink{hello: m.Hello, log: r.log, answer: func(l wire.Leave) { m.conn.Send(wire.TypeLeave, l, nil) }}
		if err := msg.Decode(&e.Failure); err != nil {
			return nil, err
		}
		return e, nil
	case wire.TypeLog:
		var l wire.Log
		if err := msg.Decode(&l); err != nil {
			return nil, err
		}
		r.log = bounded(l.Lines)
		s.output.printLog(m.Index, r.log)
	default:
		message, err := s.work.Decode(msg)
		if err != nil {
			return nil, err
		}
		return received{m, message}, nil
	}
	return nil, nil
}

// join takes a member in. An earlier one of the same index has been replaced: its
// connection is dead or will be soon, or it is another process. That process is
// dismissed, also when it connects later: else the two replace each other for ever.
func (s *Session) join(m *Member) error {
	at := m.Seat()
	if h := m.Hello; h.Instance != "" {
		if s.replaced[h.Instance] {
			s.dismissReplaced(m)
			return nil
		}
		if last := s.instances[at]; last != "" && last != h.Instance {
			s.replaced[last] = true
		}
		s.instances[at] = h.Instance
	}
	if old := s.members[at]; old != nil {
		delete(s.members, at)
		if err := s.work.Leave(old); err != nil {
			return err
		}
		if s.replaced[old.Hello.Instance] {
			s.dismissReplaced(old)
			time.AfterFunc(farewellTime, old.Disconnect) // should it not hang up
		} else {
			old.Disconnect()
		}
	}
	if !at.isIn(&s.Spec) && !s.work.Keeps(at) {
		s.Dismiss(m, fewer)
		return nil
	}
	if taken, err := s.work.Join(m); err != nil || !taken {
		return err
	}
	s.members[at] = m
	s.generation++
	delete(s.silent, at)
	delete(s.away, at)
	s.Log.Info(at.Role+" joined", "index", at.Index, "pid", m.Hello.PID)
	message := "joined"
	if m.Hello.Class != "" {
		message = fmt.Sprintf("joined: %s, %d threads", m.Hello.Class, m.Hello.Threads)
	}
	s.Note(at.event(message))
	s.Publish()
	return nil
}

// leave takes a member out.
func (s *Session) leave(m *Member, why error) error {
	at := m.Seat()
	if s.members[at] != m {
		return nil
	}
	delete(s.members, at)
	if !m.leaving {
		s.away[at] = time.Now()
	}
	s.generation++
	err := s.work.Leave(m)
	s.Log.Info(at.Role+" left", "index", at.Index, "pid", m.Hello.PID, "reason", why)
	s.Note(at.event("left"))
	s.Publish()
	return err
}

// dismissReplaced dismisses a process whose place another one has.
func (s *Session) dismissReplaced(m *Member) {
	s.Log.Warn("two processes have one index; the older one is dismissed", "role", m.Seat().Role, "index", m.Index, "pid", m.Hello.PID)
	s.Dismiss(m, wire.Leave{
		End:    spec.EndAsked,
		Reason: fmt.Sprintf("another process has joined as %s %d since: give each one an --index of its own", m.Seat().Role, m.Index),
	})
}

// fewer dismisses a member that the run does not need.
var fewer = wire.Leave{End: spec.EndAsked, Reason: "the run needs fewer workers"}

// DismissSurplus sends the workers away that the specification does not need.
func (s *Session) DismissSurplus() {
	for at, m := range s.members {
		if at.Role == wire.RoleWorker && at.Index >= s.Spec.Worker.Replicas && !m.leaving {
			s.work.Dismissed(m)
			s.Dismiss(m, fewer)
		}
	}
}

// Dismiss sends a member away.
func (s *Session) Dismiss(m *Member, how wire.Leave) {
	m.leaving, how.Term = true, s.Term()
	m.Send(wire.TypeLeave, how)
}

// GiveUp dismisses a member that cannot work for the run: it is not replaced.
func (s *Session) GiveUp(m *Member, why string) {
	s.Log.Error("worker is given up", "worker", m.Index, "reason", why)
	s.Dismiss(m, wire.Leave{End: spec.EndGivenUp, Reason: why})
}

// findSilent closes the connections of members that have fallen silent. It
// reports members that do not come back to the supervisor.
func (s *Session) findSilent(now time.Time) {
	for at, m := range s.members {
		if now.Sub(time.Unix(0, m.heard.Load())) > silence {
			s.Log.Warn("a member is silent", "role", at.Role, "index", at.Index)
			s.silent[at] = missing{m.Hello.PID, now}
			m.Disconnect() // its reader then reports it as gone
		}
	}
	for at, w := range s.silent {
		if now.Sub(w.since) > patience {
			delete(s.silent, at)
			s.TellSupervisor(at.hung(w.pid))
		}
	}
}

// unable answers a process that cannot work.
func (s *Session) unable(e brokenLink) error {
	s.Log.Error("a worker cannot work", "worker", e.hello.Index, "fault", e.Fault, "error", e.Error)
	if len(s.members) == 0 {
		s.whyLog = strings.Join(e.log, "\n")
	}
	var how wire.Leave
	var err error
	if e.Fault == spec.FaultGPU {
		how, err = server{s}.refuseGPUs(e.hello.Index, e.Error)
	} else {
		how, err = s.work.Unable(Inability{e.hello, e.Failure, s.CountWorkers()})
	}
	if err != nil {
		how = wire.Leave{End: spec.EndOtherwise, Reason: err.Error()}
	}
	how.Term = s.Term()
	e.answer(how)
	return err
}
