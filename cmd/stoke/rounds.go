package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
)

// maxRounds bounds an apply whose rounds go on finding more to do.
const maxRounds = 100

// rounds is how far an apply has come that plans and applies again until
// nothing is deferred.
type rounds struct {
	n     int        // the round at hand, from 1 on
	more  bool       // the plan at hand leaves something for the next
	total run.Report // of all rounds
	left  string     // what the round before has left over
}

// converge plans, asks and applies, round after round, until a plan leaves
// nothing over.
func (o *operation) converge(ctx context.Context, approved bool) error {
	for o.rounds.n = 1; ; o.rounds.n++ {
		pl, err := o.planned(ctx)
		if err != nil {
			return o.explainRounds(err)
		}
		o.rounds.more = len(pl.Deferred) > 0
		if err := o.progress(pl); err != nil {
			return o.explainRounds(err)
		}
		if pl.Changed() && !approved {
			if err := o.approve(pl); err != nil {
				return o.explainRounds(err)
			}
		}
		if err := o.carryOut(ctx, pl); err != nil {
			return err
		}
		if !o.rounds.more {
			return nil
		}
		o.flags.replace = stillToReplace(o.flags.replace, pl)
	}
}

// explainRounds says, when earlier rounds were applied, that something is left.
func (o *operation) explainRounds(err error) error {
	if o.rounds.n > 1 {
		o.s.display().round(o.rounds.n-1, &o.rounds.total, false)
	}
	return err
}

// progress refuses a plan after which the next one would leave the same over.
func (o *operation) progress(pl *plan.Plan) error {
	if !o.rounds.more {
		return nil
	}
	left := leftOver(pl)
	switch {
	case !pl.Changed() && len(pl.Ops) == 0:
		o.s.complain(problem("Deferred changes cannot be decided",
			"Nothing is left to apply that could make known what these wait for:\n%s\n\nGive values that are known while planning, or find out why a provider leaves them over.", undecided(pl)))
		return failed
	case left == o.rounds.left:
		o.s.complain(problem("Round made no progress",
			"The round before this one has left the same changes undecided, so that another would not help:\n%s\n\nSomething that they depend on changes with every apply, or a provider waits for what takes longer; in that case run the command again later.", undecided(pl)))
		return failed
	case o.rounds.n >= maxRounds:
		o.s.complain(problem("Too many rounds", "After %d rounds something is still left:\n%s\n\nRun the command again to go on.", maxRounds, undecided(pl)))
		return failed
	}
	o.rounds.left = left
	return nil
}

// leftOver returns a text that identifies the deferred changes of a round.
func leftOver(pl *plan.Plan) string {
	var b strings.Builder
	for _, d := range pl.Deferred {
		fmt.Fprintf(&b, "%s %s %s %d\n", d.Change.Addr, d.Change.Deposed, d.Reason, d.Change.Action)
	}
	return b.String()
}

// undecided names the deferred changes, a line each.
func undecided(pl *plan.Plan) string {
	const most = 10
	var b strings.Builder
	for i, d := range pl.Deferred {
		if i == most {
			fmt.Fprintf(&b, "\n  - and %d more", len(pl.Deferred)-i)
			break
		}
		fmt.Fprintf(&b, "\n  - %s (%s)", d.Change.Addr, d.Reason)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// stillToReplace keeps of -replace what the plan has left for later.
func stillToReplace(replace []string, pl *plan.Plan) []string {
	if len(replace) == 0 {
		return nil
	}
	planned := make(map[string]bool, len(pl.Changes))
	for _, c := range pl.Changes {
		planned[c.Addr.String()] = true
	}
	return slices.DeleteFunc(slices.Clone(replace), func(addr string) bool { return planned[addr] })
}
