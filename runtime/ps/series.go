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
	var made wire.Series
	for _, next := range p.Then {
		if !a.Finite {
			break
		}
		made.SquaredNorms = append(made.SquaredNorms, a.SquaredNorm)
		a = s.prepare(ctx, next)
	}
	if len(made.SquaredNorms) > 0 {
		a.Series = &made
	}
	return a
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
