package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/workload"
)

// judge tells which checkpoints the run can go back to. It is a copy of what
// that depends on, to be used beside loop: the place may answer slowly.
type judge struct {
	place    *checkpoint.Place
	hash     string
	workload *workload.Workload
	restores []point
	damaged  map[string]string
}

// errOtherModel is about a checkpoint that the trainer's model cannot go on
// from; errForeign about one that is not of this run's history.
var (
	errOtherModel = errors.New("its model has other layers than this stoke-trainer's")
	errForeign    = errors.New("not of this run")
)

// usable reads a checkpoint's manifest and checks it against the run. Errors
// that are none of the two above, nor checkpoint.Unusable, are about the place.
func (j *judge) usable(ctx context.Context, name string) (checkpoint.Manifest, *ledger.Book, error) {
	m, err := j.place.Manifest(ctx, name)
	if err != nil {
		return m, nil, err
	}
	if m.Run != j.hash || m.Records != j.workload.Train.Info().Records {
		return m, nil, fmt.Errorf("%w: it belongs to another one", errForeign)
	}
	if !equalData(m.Model, j.workload.Model) || !equalData(m.Vars, j.workload.Vars) {
		return m, nil, errOtherModel
	}
	if j.void(m) {
		return m, nil, fmt.Errorf("%w: the run went back behind it", errForeign)
	}
	book, err := ledger.Load(m.Records, m.Whole, m.Ledger)
	if err != nil {
		err = fmt.Errorf("%w: %w", checkpoint.ErrDamaged, err)
	}
	return m, book, err
}

// passOver reports whether an error is about one checkpoint, so that an older
// one may do.
func passOver(err error) bool { return errors.Is(err, errForeign) || checkpoint.Unusable(err) }

// equalData reports whether two values are the same as data.
func equalData(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// void reports whether the run has gone back behind a checkpoint since it was
// cut: then its updates are no part of the run's history.
func (j *judge) void(m checkpoint.Manifest) bool {
	for _, r := range j.restores {
		if r.term > spec.TermOf(m.Term, m.Generation) && r.version < m.Step {
			return true
		}
	}
	return false
}

// checkParts checks that a checkpoint has all its parts.
func (j *judge) checkParts(ctx context.Context, name string, m checkpoint.Manifest) error {
	ok, err := j.place.Complete(ctx, name, m)
	switch {
	case err != nil:
		return session.PlaceFailed(err)
	case !ok:
		return fmt.Errorf("%w: it lacks a part", checkpoint.ErrDamaged)
	}
	return nil
}

// recount returns the newest checkpoint's manifest, with the book and the number
// of skipped updates of the step where the ledger ends. Where it cannot be read
// the error is ledger.ErrUnreadable.
func (j *judge) recount(ctx context.Context, log *ledger.Log, end int64) (checkpoint.Manifest, *ledger.Book, error) {
	m, book := checkpoint.Manifest{Evaluated: -1}, ledger.NewBook(j.workload.Train.Info().Records)
	names, err := j.place.Names(ctx, spec.StepPrefix)
	if err != nil {
		return m, nil, session.PlaceFailed(err)
	}
	for _, name := range slices.Backward(names) {
		if is, at, err := j.usable(ctx, name); err == nil && is.Step <= end {
			m, book = is, at
			break
		}
	}
	for r, err := range log.Records(m.Step, end) {
		if err != nil {
			return m, nil, err
		}
		if err := book.Commit(spec.Contribution{Epoch: r.Epoch, Start: r.Start, End: r.End}); err != nil {
			return m, nil, fmt.Errorf("%w: %w", ledger.ErrUnreadable, err)
		}
		if r.Skipped {
			m.Skipped++
		}
	}
	return m, book, nil
}

// intact reports whether the run could go back to a checkpoint, as far as can
// be seen without reading its parts.
func (j *judge) intact(ctx context.Context, name string) (bool, error) {
	m, _, err := j.usable(ctx, name)
	if errors.Is(err, checkpoint.ErrNewer) {
		return true, nil // a newer stoke-trainer can
	}
	if passOver(err) || errors.Is(err, errOtherModel) {
		return false, nil
	}
	if err != nil || j.damaged[name] == m.Checksum {
		return false, err
	}
	return j.place.Complete(ctx, name, m)
}

// removeFinals removes finished models that were followed by another one.
func (j *judge) removeFinals(ctx context.Context, but string) error {
	found, err := j.place.Names(ctx, spec.FinalPrefix)
	for _, name := range found {
		if name < but { // names sort by age
			err = errors.Join(err, j.place.Remove(ctx, name))
		}
	}
	return err
}

// prune removes all but the newest checkpoints. Damaged ones do not count among
// those to keep.
func (j *judge) prune(ctx context.Context, keep int) error {
	found, err := j.place.Names(ctx, spec.StepPrefix)
	if err != nil {
		return err
	}
	kept := 0
	for _, name := range slices.Backward(found) {
		if kept < keep {
			ok, err := j.intact(ctx, name)
			if err != nil {
				return err
			}
			if ok {
				kept++
			}
			continue
		}
		if err := j.place.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
