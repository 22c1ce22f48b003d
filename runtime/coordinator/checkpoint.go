package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
)

// The longest that a checkpoint may take to be written, and that tidying up may
// take.
const (
	writeTime   = 10 * time.Minute
	restoreTime = 30 * time.Minute // the longest that it may take to be loaded
	tidyTime    = 30 * time.Second
)

// checkpointWritten is the event of a checkpoint's end.
type checkpointWritten struct {
	manifest checkpoint.Manifest
	final    bool
	err      error
}

// saving is how far the checkpoints have got.
type saving struct {
	writing bool      // one is being written
	written int64     // version of the newest one, 0: none
	cut     int64     // version that was cut last, written or not
	cutAt   time.Time // when that was, or when training began
}

// finishing is how far the finished model has got.
type finishing struct {
	saving  bool
	tries   int // that failed
	since   time.Time
	retryAt time.Time
}

// saver writes checkpoints and tidies up in their place, beside the loop.
type saver struct {
	session    *session.Session
	place      *checkpoint.Place
	parameters parameters
	ledger     *ledger.Log
	log        *slog.Logger
	saves      sync.WaitGroup
	tidying    sync.Mutex
}

// isDue reports whether a version needs a checkpoint because of the time since the
// last one.
func (s *saving) isDue(seconds int, version int64) bool {
	every := time.Duration(seconds) * time.Second
	return every > 0 && !s.writing && version > max(s.cut, 0) && time.Since(s.cutAt) >= every
}

// checkpoint lets the holders of the parameters keep the present version, to be
// written while training goes on.
func (c *coordinator) checkpoint(ctx context.Context, final bool) {
	at := c.currentPoint()
	c.begin(ctx, func(ctx context.Context) error { return c.parameters.hold(ctx, at) }, func(err error) error {
		if err != nil {
			return err
		}
		c.save.cut, c.save.cutAt, c.save.writing, c.final.saving = at.version, time.Now(), true, c.final.saving || final
		m := c.manifest()
		name := spec.StepName(m.Step, m.Term)
		if final {
			name = spec.FinalName(m.Term)
		}
		c.saver.save(ctx, name, &m, final)
		return nil
	})
}

// save writes a checkpoint beside the loop, which then takes a written.
func (s *saver) save(ctx context.Context, name string, m *checkpoint.Manifest, final bool) {
	s.saves.Go(func() {
		writing, cancel := context.WithTimeout(ctx, writeTime)
		defer cancel()
		err := s.write(writing, name, m)
		if err != nil {
			err = fmt.Errorf("write checkpoint: %w", err)
			if !final { // else it may be there already, whatever failed behind that
				if rerr := s.place.Remove(writing, name); rerr != nil {
					s.log.Warn("cannot remove what was left half written", "error", rerr)
				}
			}
		}
		s.session.Post(ctx, checkpointWritten{*m, final, err})
	})
}

// write makes a checkpoint of the parameters that their holders keep for it,
// unless another coordinator speaks for the run by the time that all of it is
// durable.
func (s *saver) write(ctx context.Context, name string, m *checkpoint.Manifest) error {
	var err error
	if m.Parts, err = s.parameters.write(ctx, m.Term, name); err != nil {
		return err
	}
	if err := s.session.CheckOutside(); err != nil { // terms of this coordinator go on from the checkpoint, or make it void
		return err
	}
	if err := s.ledger.Sync(); err != nil { // behind a checkpoint, nothing of it is lost
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	ok, err := s.place.Complete(ctx, name, *m)
	if err == nil && !ok {
		err = fmt.Errorf("what the servers have written is not in %s: give all of them the same --checkpoints as the coordinator, or none", s.place)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	if err := s.session.CheckPlace(ctx, s.session.Term()); errors.Is(err, session.ErrSuperseded) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	if err := s.place.Finish(ctx, name, m); err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	return nil
}

// manifest says what the run is at now.
func (c *coordinator) manifest() checkpoint.Manifest {
	whole, open := c.book.Save()
	return checkpoint.Manifest{
		Step: c.version, Term: c.session.Term(), Generation: c.session.Generation(), Run: c.session.Hash(), Seed: c.Spec.Seed,
		Model: c.Workload.Model, Vars: c.Workload.Vars, Recipe: recipeOf(&c.Spec, c.Spec.Worker.Replicas),
		Class: c.class, Records: c.records(), Whole: whole, Ledger: open, Skipped: c.skipped, Training: c.clock.Read().Seconds(),
		Metrics: c.session.Status().Metrics, Evaluated: c.evaluated, Loss: spec.Number(c.loss), Saved: time.Now(),
	}
}

// checkpointed notes that a checkpoint is on disk and lets old ones go.
func (c *coordinator) checkpointed(w checkpointWritten) error {
	c.save.writing = false
	if errors.Is(w.err, session.ErrSuperseded) {
		if err := c.session.CheckTerm(c.session.Term()); err != nil { // else by a term of its own
			return err
		}
		var by session.SupersededError
		if errors.As(w.err, &by) && by.By > c.session.Term() { // by one that has another folder
			return w.err
		}
	}
	switch {
	case w.err != nil && w.final:
		c.Log.Error("final model not saved", "error", w.err)
		if err := c.final.retry(w.err, c.PlacePatience); err != nil {
			return err
		}
		c.session.Note(spec.Event{Type: spec.EventCheckpoint, Message: w.err.Error()})
		c.save.cut = c.save.written
		return nil
	case w.err != nil:
		c.Log.Error("checkpoint failed; training goes on", "error", w.err)
		c.session.Note(spec.Event{Type: spec.EventCheckpoint, Message: w.err.Error()})
		return nil
	case w.final:
		// Whatever has become of the servers meanwhile: the run is done.
		c.Log.Info("final model saved", "step", w.manifest.Step)
		j, name := judgeOf(c), spec.FinalName(w.manifest.Term)
		c.saver.runBeside("remove earlier finished models", func(ctx context.Context) error { return j.removeFinals(ctx, name) })
		return c.conclude(w.manifest)
	case judgeOf(c).void(w.manifest):
		c.saver.runBeside("remove a void checkpoint", func(ctx context.Context) error {
			return c.Checkpoints.Remove(ctx, spec.StepName(w.manifest.Step, w.manifest.Term))
		})
		return nil
	}
	c.save.written = w.manifest.Step
	c.session.Note(spec.Event{Type: spec.EventCheckpoint, Epoch: c.epoch(), Message: fmt.Sprintf(savedMessage, w.manifest.Step)})
	c.Log.Info("checkpoint saved", "step", w.manifest.Step)
	j, keep := judgeOf(c), c.Spec.Checkpoint.Keep
	c.saver.runBeside("remove old checkpoints", func(ctx context.Context) error { return j.prune(ctx, keep) })
	return nil
}

// runBeside tidies up where checkpoints lie, one thing at a time and beside loop:
// the place may be slow. It may also fail: the run goes on.
func (s *saver) runBeside(what string, do func(ctx context.Context) error) {
	s.saves.Go(func() {
		s.tidying.Lock()
		defer s.tidying.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), tidyTime)
		defer cancel()
		if err := do(ctx); err != nil {
			s.log.Warn("cannot "+what, "error", err)
		}
	})
}

// maxFinals is how often the final model is tried to be saved; finalPatience,
// how long what cannot be written is tried again.
const (
	maxFinals     = 10
	finalPatience = 15 * time.Second
)

// retry decides about a finished model that could not be saved: a lost server
// costs the updates since the newest checkpoint, a full disk a few seconds or, if
// it is still full then, the rest of the run until it has room. The error stops
// the run.
func (f *finishing) retry(err error, patience time.Duration) error {
	if f.tries++; f.tries == 1 {
		f.since = time.Now()
	}
	pause := time.Duration(0)
	if errors.Is(err, session.ErrStorage) {
		pause = 500 * time.Millisecond << f.tries
	}
	if f.tries >= maxFinals || time.Since(f.since)+pause > min(finalPatience, patience) {
		return session.Stopped{Cause: spec.CauseDisk, Text: fmt.Sprintf("the final model could not be saved: %v", err)}
	}
	f.saving, f.retryAt = false, time.Now().Add(pause)
	return nil
}
