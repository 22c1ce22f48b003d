package ps

import (
	"context"
	"fmt"

	"github.com/stokehq/stoke/runtime/wire"
)

// prepareAll makes the sums of an update. A member of a group makes the updates that follow
// as well, up to one that is skipped.
func prepareAll(ctx context.Context, s *Server, p wire.Prepare) wire.Answer {
	if n := len(p.Then); n >= wire.MostAhead || n > 0 && s.group == nil {
		return wire.Answer{Error: fmt.Sprintf("%d updates at once are too many", n+1)}
	}
	a := s.prepare(ctx, p)
	var before []wire.Answer
	for _, next := range p.Then {
		if !a.Finite {
			break
		}
		before = append(before, a)
		a = s.prepare(ctx, next)
	}
	return redeemAll(s, p, before, a)
}

// redeemAll returns the answer to a request for updates, once the numbers of all of them
// are known.
func redeemAll(s *Server, p wire.Prepare, before []wire.Answer, last wire.Answer) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := s.resident.redeem(s)
	norms := s.resident.norms
	s.resident.norms = nil
	if refused != nil {
		return *refused
	}
	made := int64(len(before))
	if p.Alone != nil && last.Error == "" && last.Refused == "" && last.Missing == 0 {
		made++
	}
	if made > 0 && (s.term != p.Term || s.version < p.Version+made) { // another request has found an update that is not finite
		return refuse("now at version %d of term %d", s.version, s.term)
	}
	norm := func(i int, a wire.Answer) float64 {
		if known, ok := norms[point{p.Term, p.Version + int64(i)}]; ok {
			return known
		}
		return a.SquaredNorm
	}
	last.SquaredNorm = norm(len(before), last)
	if len(before) > 0 {
		last.Series = &wire.Series{}
		for i, a := range before {
			last.Series.SquaredNorms = append(last.Series.SquaredNorms, norm(i, a))
		}
	}
	return last
}

// remember keeps the decision about an update that is made. A member of a group keeps the
// decisions before it, too: the ledger may lack these updates. Called with mu held.
func remember(s *Server, d decision) {
	if s.group != nil {
		s.past = appendPast(s.past, s.decided)
	}
	s.decided = &d
}

// appendPast adds an update to those that a member remembers; nil: there is none to add.
func appendPast(past []wire.Past, d *decision) []wire.Past {
	if d == nil {
		return past
	}
	if len(past) >= wire.MostPast {
		past = past[1:]
	}
	return append(past, wire.PastOf(d.apply.Skip, d.taken))
}
