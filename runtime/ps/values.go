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
	pulls  chan pull       // the newest unanswered one
	member string          // address of a member of an all-reduce, which pulls sums; "": it is not one
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
		case before := <-l.pulls:
			if before.Term > p.Term {
				p = before
			}
		}
	}
}

// sendValues answers a worker's pulls, beside what else it asks for: a pull may
// wait for an update that takes long.
func (s *Server) sendValues(l *link) {
	var sent point
	var p pull
	for {
		if p.Follow && sent.term != 0 { // 0: it was refused
			p.Term, p.Version = sent.term, sent.version+1 // a newer one may have taken its place
		} else {
			select {
			case p = <-l.pulls:
			case <-l.closed:
				return
			}
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
	a := s.await(p, l)
	if a.refused != nil {
		return sent, l.Send(wire.TypeValues, wire.Values{Term: a.head.Term, Refused: a.refused.Refused}, nil)
	}
	sent = point{a.head.Term, a.head.Version}
	if a.held == nil {
		return sent, l.Send(wire.TypeValues, a.head, nil)
	}
	defer func() {
		s.mu.Lock()
		s.letGo(a.held)
		s.mu.Unlock()
	}()
	f, err := s.answerOf(a.made, a.head, a.values)
	if err != nil {
		return sent, err
	}
	return sent, l.SendFrame(f)
}

// pulled is the answer to a pull: held is nil where the worker has the values.
type pulled struct {
	head    wire.Values
	held    *vector
	values  []float32 // of held, to be sent
	made    *version
	refused *wire.Answer
}

// valuesFor returns the answer to a pull and holds its values for the caller; known
// reports whether the server has the version. Called with mu held.
func (s *Server) valuesFor(p wire.Pull) (a pulled, known bool) {
	a.head = wire.Values{Term: p.Term, Version: s.version, From: s.from}
	if a.refused = s.checkTerm(p.Term); a.refused != nil {
		return a, true
	}
	if p.Term != s.term || s.term == 0 {
		why := refuse("term is %d", s.term)
		a.refused = &why
		return a, true
	}
	if s.version >= p.Version && p.Have != s.version {
		a.held, a.values, a.made = s.values.hold(), s.values.v, s.present
	}
	return a, s.version >= p.Version
}

// await waits until a pull can be answered. A newer pull takes the place of one
// that waits.
func (s *Server) await(p wire.Pull, l *link) pulled {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		a, known := pulled{}, false
		if l.member == "" {
			a, known = s.valuesFor(p)
		} else {
			extendPatience(s, l) // its pull may have come before this member's own group
			a, known = s.shareFor(p, l.member)
		}
		if known {
			return a
		}
		changed := s.changed
		s.mu.Unlock()
		over := false
		select {
		case <-changed:
		case newer := <-l.pulls:
			if newer.Term >= p.Term {
				p = newer.Pull
			}
		case <-l.closed:
			over = true
		}
		s.mu.Lock()
		if over {
			why := refuse("the connection is closing")
			return pulled{refused: &why}
		}
	}
}
