package coordinator

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// attachment is the state of the servers that a coordinator attaches to.
type attachment struct {
	version int64         // of the parameters
	term    int64         // of the parameters
	redo    *wire.Apply   // of the newest update, for servers that have only prepared it; nil: all have made it
	last    *wire.Holding // has the newest update, where the ledger lacks it; nil: it has it
}

// findAttachment decides whether the servers hold one version of n parameters.
// The ledger, which ends at step end, must have all its updates, except the
// newest one at most. terms are the terms that may have made it.
func findAttachment(held []wire.Holding, n int, terms []int64, end int64) (a attachment, ok bool) {
	var newest *wire.Holding
	for i, h := range held {
		from, to := span(n, i, len(held))
		if !slices.Contains(terms, h.Term) || h.Term != held[0].Term || h.From != from || h.To != to {
			return a, false
		}
		if newest == nil || h.Version > newest.Version {
			newest = &held[i]
		}
	}
	if newest == nil {
		return a, false
	}
	a.version, a.term = newest.Version, newest.Term
	known := newest.Decision != nil && len(newest.Taken) > 0
	for _, h := range held {
		if h.Version == a.version {
			continue
		}
		if h.Version != a.version-1 || !known || !h.Prepared && !newest.Decision.Skip {
			return a, false
		}
		a.redo = newest.Decision
	}
	if end == a.version-1 && known {
		a.last = newest
	}
	return a, end == a.version || a.last != nil
}

// attach begins a term with the parameters that the servers hold, so that no
// committed update is computed again. It reports false where they have no common
// version, or the ledger lacks updates of it: then a checkpoint is restored.
func (c *coordinator) attach(ctx context.Context) (attached bool, err error) {
	if _, begun := c.journal.ledger.End(); !begun {
		return false, nil
	}
	if err := c.meet(ctx); err != nil {
		return false, err
	}
	c.spoken = true
	held, err := c.strategy.askHeld(c.term)
	if errors.Is(err, errLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := c.journal.ledger.Refresh(); err != nil { // from now on no other coordinator commits anything
		return false, full(err)
	}
	end, _ := c.journal.ledger.End()
	a, ok := findAttachment(held, engine.Length(c.Workload.Vars), c.journal.ledger.Heads(), end)
	if !ok {
		return false, nil
	}
	m, book, err := c.judge().recount(ctx, c.journal.ledger, end)
	if errors.Is(err, ledger.ErrUnreadable) {
		c.Log.Error("cannot attach to the parameter servers", "error", err)
		c.note(spec.Event{Type: spec.EventDamage, Message: err.Error()})
		return false, nil
	}
	if err != nil {
		return false, err
	}
	from := ledger.Record{Step: end}
	if a.last != nil {
		from = recordOf(a.last)
		if err := book.Commit(spec.Contribution{Epoch: from.Epoch, Start: from.Start, End: from.End}); err != nil {
			c.Log.Error("cannot attach to the parameter servers", "error", err)
			return false, nil
		}
		if from.Skipped {
			m.Skipped++
		}
	}
	c.version = end
	c.note(spec.Event{Type: spec.EventRestore, Message: "attached to the parameter servers"})
	if err := c.journal.goOn(c.at()); err != nil {
		return false, full(err)
	}
	if err := c.strategy.attach(point{c.term, a.version}, a.term, a.redo); errors.Is(err, errLost) {
		c.Log.Warn("cannot attach to the parameter servers", "error", err)
		return false, nil
	} else if err != nil {
		return false, err
	}
	if a.last != nil {
		c.enter(from)
	}
	c.Log.Info("attached to the parameter servers", "step", a.version)
	saved := m.Step
	m.Step = a.version
	if e := c.journal.evaluation; e.Type != "" && e.Step > m.Evaluated && e.Step <= a.version {
		m.Evaluated, m.Metrics = e.Step, e.Metrics
	}
	m.Loss, m.Class = spec.Number(c.journal.loss), cmp.Or(c.class, c.recalled.Class, m.Class)
	m.Training = max(m.Training, c.recalled.Metrics["training_seconds"])
	c.resume(ctx, m, book, saved)
	return true, nil
}

// recordOf returns the ledger's record of the update that a server made last.
func recordOf(h *wire.Holding) ledger.Record {
	r := ledger.Record{Step: h.Version, Epoch: h.Taken[0].Epoch, Start: h.Taken[0].Start, End: h.Taken[0].End, Skipped: h.Decision.Skip}
	for _, t := range h.Taken {
		r.Start, r.End = min(r.Start, t.Start), max(r.End, t.End)
	}
	return r
}
