package ps

import (
	"sync"

	"github.com/stokehq/stoke/runtime/wire"
)

// version is what is sent to whoever pulls one version: one frame with one
// checksum for all of them.
type version struct {
	once  sync.Once
	frame *wire.Frame
	err   error
}

// answerOf makes the frame, the first time. The values are held by the caller.
func (s *Server) answerOf(v *version, head wire.Values, values []float32) (*wire.Frame, error) {
	v.once.Do(func() {
		s.frames.Add(1)
		v.frame, v.err = wire.NewFrame(wire.TypeValues, head, values)
	})
	return v.frame, v.err
}

// link is one connection.
type link struct {
	*wire.Conn
	closed <-chan struct{} // ends whatever waits for the server
	pulls  chan pull       // the newest one that nobody has looked at yet
}

// pull is a request for values. One that came with a push is answered only
// where the version was not sent before: a worker has several pushes in an
// update.
type pull struct {
	wire.Pull
	pushed bool
}

func (l *link) answer(a wire.Answer) error { return l.Send(wire.TypeAnswer, a, nil) }

// pull replaces the pull that waits.
func (l *link) pull(p pull) {
	for {
		select {
		case l.pulls <- p:
			return
		case <-l.pulls:
		}
	}
}

// sendValues answers a worker's pulls, beside what else it asks for: a pull may
// wait for an update that takes long.
func (s *Server) sendValues(l *link) {
	var sent point
	for {
		var p pull
		select {
		case p = <-l.pulls:
		case <-l.closed:
			return
		}
		if p.pushed && p.Term == sent.term && p.Version <= sent.version {
			continue
		}
		var err error
		if sent, err = s.sendVersion(l, p.Pull); err != nil {
			l.Close() // whoever receives says so
			return
		}
	}
}

// sendVersion returns the version that was sent.
func (s *Server) sendVersion(l *link, p wire.Pull) (sent point, err error) {
	head, held, made, refused := s.await(p, l)
	if refused != nil {
		return sent, l.Send(wire.TypeValues, wire.Values{Term: head.Term, Refused: refused.Refused}, nil)
	}
	sent = point{head.Term, head.Version}
	if held == nil {
		return sent, l.Send(wire.TypeValues, head, nil)
	}
	defer func() {
		s.mu.Lock()
		s.letGo(held)
		s.mu.Unlock()
	}()
	f, err := s.answerOf(made, head, held.v)
	if err != nil {
		return sent, err
	}
	return sent, l.SendFrame(f)
}

// await waits until the server is at the wanted version and holds its values
// for the caller; nothing is held (nil) when the worker has them. A newer pull
// takes the place of one that waits.
func (s *Server) await(p wire.Pull, l *link) (wire.Values, *vector, *version, *wire.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		head := wire.Values{Term: p.Term, Version: s.version, From: s.from}
		if a := s.heed(p.Term); a != nil {
			return head, nil, nil, a
		}
		if p.Term != s.term || s.term == 0 {
			a := refuse("term is %d", s.term)
			return head, nil, nil, &a
		}
		if s.version >= p.Version {
			if p.Have == s.version {
				return head, nil, nil, nil
			}
			return head, s.values.hold(), s.present, nil
		}
		changed := s.changed
		s.mu.Unlock()
		over := false
		select {
		case <-changed:
		case newer := <-l.pulls:
			p = newer.Pull
		case <-l.closed:
			over = true
		}
		s.mu.Lock()
		if over {
			a := refuse("the connection is closing")
			return head, nil, nil, &a
		}
	}
}
