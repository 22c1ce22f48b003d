package ps

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/stokehq/stoke/runtime/wire"
)

// Serve answers until ctx is done, then closes the listener and every
// connection, and returns after the last request.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.credentials.Serve(ctx, l, func(c *wire.Conn, hello wire.Hello) { s.answer(ctx, c, hello) }, func(err error) {
		s.log.Warn("connection refused", "error", err)
	})
}

// answer serves one connection to its end.
func (s *Server) answer(ctx context.Context, c *wire.Conn, hello wire.Hello) {
	log := s.log.With("role", hello.Role, "index", hello.Index)
	log.Info("connected")
	handle := s.forCoordinator
	switch hello.Role {
	case wire.RoleCoordinator:
		s.presence.countConnected()
		defer s.presence.countDisconnected()
	case wire.RoleMember:
		handle = Member{s}.answer
	default:
		handle = s.forWorker
		s.meet(hello.Session, 1)
		defer s.meet(hello.Session, -1)
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &link{Conn: c, closed: ctx.Done(), pulls: make(chan pull, 1), member: hello.Address}
	var sending sync.WaitGroup
	defer sending.Wait()
	defer c.Close()
	defer cancel()
	if hello.Role != wire.RoleCoordinator {
		sending.Go(func() { s.sendValues(l) })
	}
	for {
		m, err := c.Receive(0)
		if err == nil {
			err = handle(ctx, l, m)
		}
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				log.Warn("connection lost", "error", err)
			} else {
				log.Info("disconnected")
			}
			return
		}
	}
}

// meet notes that connections of a worker's session were made or have ended.
func (s *Server) meet(session string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[session] += n; s.sessions[session] == 0 {
		delete(s.sessions, session)
	}
	s.workers += n
	s.crowd = max(s.crowd, s.workers)
	s.limitCores()
	if n < 0 {
		s.arrived.ring()
	}
}

func (s *Server) forWorker(_ context.Context, l *link, m *wire.Message) error {
	switch m.Type {
	case wire.TypePull:
		var p wire.Pull
		if err := m.Decode(&p); err != nil {
			return err
		}
		l.pull(pull{p, false})
		return nil
	case wire.TypePush:
		return s.push(l, m)
	}
	return l.answer(wire.Answer{Error: "a worker may not ask for " + m.Type.String()})
}

// redeemPromises waits until no update is promised.
func redeemPromises(s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resident.redeem(s) // after a refusal the request finds the version before the update
}

// push reads a contribution straight into the buffer that is kept.
func (s *Server) push(l *link, m *wire.Message) error {
	var p wire.Push
	if err := m.Decode(&p); err != nil {
		return err
	}
	s.mu.Lock()
	ours := func() bool { return p.Term == s.term && s.term == s.fence && m.Values == s.sums.length }
	if ours() {
		s.expect(p.ID)
		if s.group == nil {
			s.room(1, l.closed)
		}
	}
	c := &contribution{Push: p}
	var merged *merge
	if ours() && s.group != nil && s.group.Whole {
		c.sums, c.lent = l.Lend(m)
	} else if ours() {
		merged = beginMerge(s, p)
	}
	if merged != nil {
		c.sums, c.lent = merged.room.Into, func() {}
	} else if ours() && c.sums == nil {
		c.sums = s.sums.take()
	}
	s.mu.Unlock()
	if c.sums == nil {
		if err := l.Skip(m); err != nil {
			return err
		}
		return l.answerPush(p, s.refuseUnread(p))
	}
	s.pushes.Add(1)
	var err error
	whole := true
	switch {
	case merged != nil:
		err = l.BodyParts(m, &merged.room)
		if whole = merged.end(s, err == nil); whole {
			s.merges.Add(1)
		}
	case c.lent != nil:
		s.loans.Add(1)
	default:
		err = l.Body(m, c.sums)
	}
	if err != nil {
		s.mu.Lock()
		c.giveBack(s)
		if p.Term == s.term {
			s.settle(p.ID, false)
		}
		s.mu.Unlock()
		return err
	}
	if !whole {
		return l.answerPush(p, s.refuseUnread(p))
	}
	a := accept(s, c)
	err = l.answerPush(p, a)
	if p.Next && a.Refused == "" {
		l.pull(pull{wire.Pull{Term: p.Term, Version: p.Version + 1, Have: -1}, true})
	}
	return err
}

// answerPush answers a push, unless its worker waits for a refusal only.
func (l *link) answerPush(p wire.Push, a wire.Answer) error {
	if a.Quiet = p.Quiet; a == (wire.Answer{Quiet: true}) {
		return nil
	}
	return l.answer(a)
}

// refuseUnread refuses a push whose values were not read, or do not count.
func (s *Server) refuseUnread(p wire.Push) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.checkTerm(p.Term); a != nil {
		return *a
	}
	if p.Term == s.term {
		s.settle(p.ID, false)
	}
	return refuse("of another term, of another length, or of an update that is not made")
}

func (s *Server) forCoordinator(ctx context.Context, l *link, m *wire.Message) error {
	var a wire.Answer
	var err error
	redeemPromises(s) // another coordinator may have named them
	switch m.Type {
	case wire.TypeLeave:
		var how wire.Leave
		if err = m.Decode(&how); err == nil {
			if a = s.leave(how); a.Refused == "" {
				defer s.presence.dismiss(how) // once it is answered
			}
		}
	case wire.TypeHold:
		var h wire.Hold
		if err = m.Decode(&h); err == nil {
			a = s.answerHold(h)
		}
	case wire.TypeAttach:
		var h wire.Attach
		if err = m.Decode(&h); err == nil {
			a = s.attach(h)
		}
	case wire.TypeRestore:
		var r wire.Restore
		if err = m.Decode(&r); err != nil {
			return err
		}
		values := make([]float32, m.Values)
		if err = l.Body(m, values); err != nil {
			return err
		}
		a, err = s.restore(ctx, r, values, l)
	case wire.TypeFollow:
		var f wire.Follow
		if err = m.Decode(&f); err != nil {
			return err
		}
		return Member{s}.follow(ctx, l, f)
	case wire.TypePrepare:
		var p wire.Prepare
		if err = m.Decode(&p); err == nil {
			a = prepareAll(ctx, s, p)
		}
	case wire.TypeDiscard:
		var d wire.Discard
		if err = m.Decode(&d); err == nil {
			a = s.forget(d)
		}
	case wire.TypeApply:
		var p wire.Apply
		if err = m.Decode(&p); err == nil {
			a = s.apply(p)
		}
	case wire.TypeCut:
		var c wire.CutRequest
		if err = m.Decode(&c); err == nil {
			a = s.keep(c)
		}
	case wire.TypeWrite:
		var w wire.Write
		if err = m.Decode(&w); err == nil {
			a, err = s.write(ctx, w, l)
		}
	default:
		a.Error = "the coordinator may not ask for " + m.Type.String()
	}
	if err != nil {
		return err
	}
	if a.Error != "" {
		s.log.Error("request failed", "request", m.Type.String(), "error", a.Error)
	}
	return l.answer(tellTerm(s, a))
}

// tellTerm returns an answer to a coordinator. A refusal carries the highest term that the
// server has heard of, whatever its reason is: a restore may have come while the request
// was being answered, and that coordinator has been superseded.
func tellTerm(s *Server, a wire.Answer) wire.Answer {
	if a.Refused != "" {
		s.mu.Lock()
		a.Term = s.fence
		s.mu.Unlock()
	}
	return a
}
