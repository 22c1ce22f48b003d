package ps

import (
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// decision is about the newest update. A coordinator that attaches repeats it on
// servers that have only prepared the update.
type decision struct {
	apply wire.Apply
	taken []spec.Contribution
}

// answerHold answers the state of the server's parameters. From then on no
// coordinator of a lower term changes it.
func (s *Server) answerHold(h wire.Hold) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.checkTerm(h.Term); a != nil {
		return *a
	}
	s.resident.redeem(s) // after a refusal the version is the one before the update
	held := &wire.Holding{Term: s.term, Version: s.version, From: s.from, To: s.from + len(s.values.v), Prepared: s.sum != nil}
	decided, past := s.decided, s.past
	if w := findFollowed(s); w != nil {
		held = &wire.Holding{Term: w.at.term, Version: w.at.version, To: len(w.sums), Follows: !w.over}
		decided, past = w.decided, w.past
	}
	if d := decided; d != nil {
		held.Decision, held.Taken, held.Before = &d.apply, d.taken, past
	}
	return wire.Answer{Held: held}
}

// attach begins a term with the parameters that are here. A server that is one
// update behind the others, and has prepared that update, makes it first.
func (s *Server) attach(a wire.Attach) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.begins(a.Term); refused != nil {
		return *refused
	}
	if refused := takeOver(s, a); refused != nil {
		return *refused
	}
	if err := checkGroup(a.Group, len(s.values.v)); err != nil {
		return wire.Answer{Error: err.Error()}
	}
	if s.term != a.Held || s.term == 0 {
		return refuse("restored in term %d, not %d", s.term, a.Held)
	}
	if answer := s.resident.fetch(s); answer != nil {
		return *answer
	}
	s.resident.current = false
	if prepared := s.sum != nil; a.Redo != nil && s.version+1 == a.Version && (prepared || a.Redo.Skip) {
		if answer := s.decide(*a.Redo); answer != (wire.Answer{}) {
			return answer
		}
	}
	if s.version != a.Version || s.fence != a.Term {
		return refuse("at version %d, not %d", s.version, a.Version)
	}
	for id := range s.pending {
		s.drop(id)
	}
	if s.sum != nil {
		s.sum.letGo(s)
	}
	s.sum = nil
	clear(s.void)
	clear(s.coming)
	clear(s.failed)
	if a.Group == nil { // a request of an earlier term to write it is refused
		s.letSnapshotGo(s.snapshot)
		s.snapshot = nil
	}
	stopFollowing(s)
	s.term, s.present = a.Term, new(version)
	tellFollowersTerm(s)
	s.spans.freed.ring()
	if a.Group != nil {
		layOut(s, a.Group, s.vars)
	}
	s.crowd = s.workers
	s.changed.ring()
	s.log.Info("attached", "term", s.term, "version", s.version)
	return wire.Answer{}
}
