package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// attachment is the state of the servers that a coordinator attaches to.
type attachment struct {
	version int64           // of the parameters
	terms   []int64         // of the parameters, by server: a coordinator may have died while it attached
	redo    *wire.Apply     // of the newest update, for servers that have only prepared it; nil: all have made it
	lacking []ledger.Record // of updates that the ledger lacks
	source  int             // index of the group's member with the parameters; holders of term 0 fetch them
}

// findAttachment decides whether the servers hold one version of n parameters.
// The ledger, which ends at step end, must have all its updates, except the
// newest one at most. terms are the terms that may have made it.
func findAttachment(held []wire.Holding, n int, terms []int64, end int64) (a attachment, ok bool) {
	var newest *wire.Holding
	for i, h := range held {
		from, to := span(n, i, len(held))
		if !slices.Contains(terms, h.Term) || h.From != from || h.To != to {
			return a, false
		}
		a.terms = append(a.terms, h.Term)
		if newest == nil || h.Version > newest.Version {
			newest = &held[i]
		}
	}
	if newest == nil {
		return a, false
	}
	a.version = newest.Version
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
	a.lacking, ok = findLacking(newest, end)
	return a, ok
}

// findLacking returns the records of the updates that a holder has made since step end; ok
// reports whether the holder remembers all of them.
func findLacking(h *wire.Holding, end int64) (records []ledger.Record, ok bool) {
	var made []wire.Past
	if h.Decision != nil {
		made = append(slices.Clone(h.Before), wire.PastOf(h.Decision.Skip, h.Taken))
	}
	n := h.Version - end
	if n < 0 || n > int64(len(made)) {
		return nil, false
	}
	for i, u := range made[int64(len(made))-n:] {
		if u.Start == u.End {
			return nil, false
		}
		records = append(records, recordOf(end+1+int64(i), u))
	}
	return records, true
}

// attach begins a term with the parameters that the servers hold, so that no
// committed update is computed again. It reports false where they have no common
// version, or the ledger lacks updates of it: then a checkpoint is restored.
func (r *restorer) attach(ctx context.Context) (attached bool, err error) {
	log := r.journal.ledger
	if _, begun := log.End(); !begun {
		return false, nil
	}
	if err := r.meet(ctx); err != nil {
		return false, err
	}
	r.session.Do(ctx, r.session.UseTerm)
	held, err := r.parameters.askHeld(ctx, r.session.Term())
	if errors.Is(err, errLost) && !r.reduces() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := log.Refresh(); err != nil { // from now on no other coordinator commits anything
		return false, session.Full(err)
	}
	end, _ := log.End()
	a, ok := r.parameters.attachable(held, log.Heads(), end)
	if !ok && end > 0 && r.parameters.awaitMore(ctx, r.spec.Worker.Replicas) {
		return false, fmt.Errorf("%w: the newest parameters are not there yet", errLost)
	}
	if !ok {
		return false, nil
	}
	s, err := r.recount(ctx, a, end)
	if errors.Is(err, ledger.ErrUnreadable) {
		r.Log.Error("cannot attach", "error", err)
		return false, r.onLoop(ctx, func() error {
			r.session.Note(spec.Event{Type: spec.EventDamage, Message: err.Error()})
			return nil
		})
	}
	if err != nil {
		return false, err
	}
	at, err := r.declare(ctx, a.version, end, "attached to "+r.parameters.names())
	if err != nil {
		return false, err
	}
	var c restoreSource
	if err = r.onLoop(ctx, func() error { c.recipe = recipeOf(&r.Spec, r.Spec.Worker.Replicas); return nil }); err != nil {
		return false, err
	}
	err = r.parameters.attach(ctx, at, a, c)
	if errors.Is(err, errLost) && !r.reduces() {
		r.Log.Warn("cannot attach", "error", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.Log.Info("attached", "to", r.parameters.names(), "step", a.version)
	err = r.onLoop(ctx, func() error {
		for _, lacking := range a.lacking {
			r.record(lacking)
		}
		r.complete(&s.manifest)
		return nil
	})
	r.state = s
	r.clean(ctx)
	return true, err
}

// reduces reports whether the workers hold the parameters: one worker is enough to go
// on without a checkpoint.
func (r *restorer) reduces() bool { return r.spec.Strategy == spec.StrategyAllReduce }

// recount returns the state of an attachment. Its book also has the updates that the
// ledger lacks.
func (r *restorer) recount(ctx context.Context, a attachment, end int64) (s state, err error) {
	j, err := r.judge(ctx)
	if err != nil {
		return s, err
	}
	m, book, err := j.recount(ctx, r.journal.ledger, end)
	if err != nil {
		return s, err
	}
	s = state{m, book, m.Step}
	s.manifest.Step = a.version
	for _, lacking := range a.lacking {
		if err := book.Commit(spec.Contribution{Epoch: lacking.Epoch, Start: lacking.Start, End: lacking.End}); err != nil {
			return s, fmt.Errorf("%w: %w", ledger.ErrUnreadable, err)
		}
		if lacking.Skipped {
			s.manifest.Skipped++
		}
	}
	return s, nil
}

// complete adds what history and status say of the run to the manifest of an
// older checkpoint.
func (r *restorer) complete(m *checkpoint.Manifest) {
	c := r.coordinator
	if e := c.journal.evaluation; e.Type != "" && e.Step > m.Evaluated && e.Step <= m.Step {
		m.Evaluated, m.Metrics = e.Step, e.Metrics
	}
	before := c.session.Recalled()
	m.Loss, m.Class = spec.Number(c.journal.loss), cmp.Or(c.class, before.Class, m.Class)
	m.Training = max(m.Training, before.Metrics["training_seconds"])
}

// recordOf returns the ledger's record of an update that a holder has made.
func recordOf(step int64, u wire.Past) ledger.Record {
	return ledger.Record{Step: step, Epoch: u.Epoch, Start: u.Start, End: u.End, Skipped: u.Skip}
}
