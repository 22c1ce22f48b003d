package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// attachment is how a coordinator goes on from what the servers hold.
type attachment struct {
	version int64       // of the parameters
	term    int64       // of the parameters
	redo    *wire.Apply // of the newest update, for servers that have only prepared it; nil: all have made it
	last    *wire.Held  // has the newest update, where the ledger lacks it; nil: it has it
}

// findAttachment decides whether the servers hold one version of n parameters
// that the ledger, which ends at step end, knows all updates of, but for the
// newest one at most. terms are those that may have made it.
func findAttachment(held []wire.Held, n int, terms []int64, end int64) (a attachment, ok bool) {
	var newest *wire.Held
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

// attach goes on from what the servers hold, so that no committed update is
// computed again. It reports false where that is not one version that the ledger
// has all updates of: the run then goes back to a checkpoint.
func (c *coordinator) attach(ctx context.Context) (attached bool, err error) {
	if _, begun := c.journal.ledger.End(); !begun {
		return false, nil
	}
	if err := c.meet(ctx); err != nil {
		return false, err
	}
	c.spoken = true
	held, err := c.strategy.held(c.term)
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
	m, book, err := c.recount(ctx, end)
	if err != nil || book == nil {
		return false, err
	}
	from := ledger.Record{Step: end}
	if a.last != nil {
		from = recordOf(a.last)
		if err := book.Commit(spec.Contribution{Epoch: from.Epoch, Start: from.Start, End: from.End}); err != nil {
			c.Log.Error("cannot go on from what the servers hold", "error", err)
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
		c.Log.Warn("cannot go on from what the servers hold", "error", err)
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
	m.Loss, m.Class = spec.Number(c.journal.loss), max(m.Class, c.recalled.Class, c.class)
	m.Training = max(m.Training, c.recalled.Metrics["training_seconds"])
	c.resume(ctx, m, book, saved)
	return true, nil
}

// recordOf returns the ledger's record of the update that a server made last.
func recordOf(h *wire.Held) ledger.Record {
	r := ledger.Record{Step: h.Version, Epoch: h.Taken[0].Epoch, Start: h.Taken[0].Start, End: h.Taken[0].End, Skipped: h.Decision.Skip}
	for _, t := range h.Taken {
		r.Start, r.End = min(r.Start, t.Start), max(r.End, t.End)
	}
	return r
}

// recount returns the newest checkpoint's manifest, with the book and the number
// of skipped updates of the step where the ledger ends. The book is nil where the
// ledger cannot be read.
func (c *coordinator) recount(ctx context.Context, end int64) (checkpoint.Manifest, *ledger.Book, error) {
	m, book := checkpoint.Manifest{Evaluated: -1}, ledger.NewBook(c.records())
	names, err := c.Checkpoints.Names(ctx, spec.StepPrefix)
	if err != nil {
		return m, nil, placeError{err}
	}
	for _, name := range slices.Backward(names) {
		if is, at, err := c.judge().usable(ctx, name); err == nil && is.Step <= end {
			m, book = is, at
			break
		}
	}
	for r, err := range c.journal.ledger.Records(m.Step, end) {
		if err == nil {
			err = book.Commit(spec.Contribution{Epoch: r.Epoch, Start: r.Start, End: r.End})
		}
		if err != nil {
			c.Log.Error("cannot go on from what the servers hold", "error", err)
			c.note(spec.Event{Type: spec.EventDamage, Message: fmt.Sprintf("the ledger: %v", err)})
			return m, nil, nil
		}
		if r.Skipped {
			m.Skipped++
		}
	}
	return m, book, nil
}
