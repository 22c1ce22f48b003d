package coordinator

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// journal is what history and ledger say of a run of updates.
type journal struct {
	ledger *ledger.Log

	term       int64      // highest in the ledger
	restores   []point    // where terms went on from, by term
	saved      int64      // newest step of the run's history that was saved; 0: none
	evaluation spec.Event // the newest one of the run's history
	loss       float64    // of its newest update
}

// open reads the ledger. The events of the history have been followed before.
func (j *journal) open(f run.Folder) (err error) {
	if j.ledger, err = ledger.OpenLog(f.Ledger()); err != nil {
		return err
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
	return nil
}

// follow keeps what an event says about the run's history.
func (j *journal) follow(e spec.Event) {
	at := point{spec.TermOf(e.Term, e.Generation), e.Step}
	switch e.Type {
	case spec.EventUpdate, spec.EventUpdates:
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
		j.saved = min(j.saved, e.Step)
	case spec.EventCheckpoint:
		if _, err := fmt.Sscanf(e.Message, savedMessage, &at.version); err == nil {
			j.saved = at.version
		}
	}
}

// savedMessage says in an event which step was saved.
const savedMessage = "step %d"

func (j *journal) close() error { return j.ledger.Close() }
