package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/history"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// journal is what a run has written down: the history of its events, and the
// ledger of its updates. loop adds to both.
type journal struct {
	history *history.File
	ledger  *ledger.Log

	term       int64      // highest in it
	generation int64      // likewise
	restores   []point    // where terms went on from, by term
	saved      int64      // newest step of the run's history that was saved; 0: none
	reached    int64      // newest step of the run's history
	evaluation spec.Event // the newest one of the run's history
	loss       float64    // of its newest update
}

// openJournal reads what earlier coordinators wrote.
func openJournal(f run.Folder) (*journal, error) {
	j := new(journal)
	var err error
	if j.history, err = history.Open(f.Metrics(), j.follow); err != nil {
		return nil, err
	}
	if j.ledger, err = ledger.OpenLog(f.Ledger()); err != nil {
		return nil, errors.Join(err, j.history.Close())
	}
	// Runs of earlier versions have no ledger, and a damaged line of the history
	// may have been one of these.
	j.ledger.Terms(func(term, from int64) {
		j.term = max(j.term, term)
		if at := (point{term, from}); !slices.Contains(j.restores, at) {
			j.restores = append(j.restores, at)
		}
	})
	slices.SortStableFunc(j.restores, func(a, b point) int { return cmp.Compare(a.term, b.term) })
	if end, ok := j.ledger.End(); ok {
		j.reached = end
	}
	return j, nil
}

// follow keeps what an event says about the run's history.
func (j *journal) follow(e spec.Event) {
	at := point{spec.TermOf(e.Term, e.Generation), e.Step}
	j.term, j.generation = max(j.term, at.term), max(j.generation, e.Generation)
	switch e.Type {
	case spec.EventUpdate, spec.EventUpdates:
		j.reached = e.Step
		if !e.Skipped {
			j.loss = float64(e.Loss)
		}
	case spec.EventEvaluation:
		j.evaluation = e
	case spec.EventRestore:
		if j.evaluation.Step > e.Step {
			j.evaluation = spec.Event{}
		}
		j.restores = append(j.restores, at)
		j.saved, j.reached = min(j.saved, e.Step), e.Step
	case spec.EventCheckpoint:
		if _, err := fmt.Sscanf(e.Message, savedMessage, &at.version); err == nil {
			j.saved = at.version
		}
	}
}

// savedMessage says in an event which step was saved.
const savedMessage = "step %d"

// add writes an event.
func (j *journal) add(e spec.Event) error {
	if err := j.history.Add(e); err != nil {
		return err
	}
	j.follow(e)
	return nil
}

// commit writes an update to the ledger.
func (j *journal) commit(r ledger.Record) error { return j.ledger.Add(r) }

// begin lets a term write, behind what check allows, and returns how many lines
// of the history could not be read.
func (j *journal) begin(check func() error) (damaged int, err error) { return j.history.Renew(check) }

// goOn begins the ledger of a term that goes on from a step.
func (j *journal) goOn(at point) error {
	return errors.Join(j.history.Sync(), j.ledger.Begin(at.term, at.version))
}

// sync makes the ledger durable.
func (j *journal) sync() error { return j.ledger.Sync() }

func (j *journal) close() error { return errors.Join(j.history.Close(), j.ledger.Close()) }
