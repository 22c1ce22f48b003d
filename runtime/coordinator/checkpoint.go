package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/spec"
)

// The longest that a checkpoint may take to be written, and that tidying up may
// take.
const (
	writeTime   = 10 * time.Minute
	restoreTime = 30 * time.Minute // the longest that it may take to be loaded
	tidyTime    = 30 * time.Second
)

// written is the event of a checkpoint's end.
type written struct {
	manifest checkpoint.Manifest
	final    bool
	err      error
}

// due reports whether a checkpoint is to be made for the time that has passed.
func (c *coordinator) due() bool {
	every := time.Duration(c.Spec.Checkpoint.EverySeconds) * time.Second
	return every > 0 && !c.saving && c.version > max(c.kept, 0) && time.Since(c.keptAt) >= every
}

// checkpoint keeps the present version, to be written while training goes on.
func (c *coordinator) checkpoint(ctx context.Context, final bool) error {
	if err := c.strategy.hold(c.at()); err != nil {
		return err
	}
	c.kept, c.keptAt, c.saving, c.final = c.version, time.Now(), true, c.final || final
	m := c.manifest()
	name := spec.StepName(m.Step, m.Term)
	if final {
		name = spec.FinalName(m.Term)
	}
	c.saves.Go(func() {
		writing, cancel := context.WithTimeout(ctx, writeTime)
		defer cancel()
		err := c.write(writing, name, &m)
		if err != nil {
			err = fmt.Errorf("write checkpoint: %w", err)
			if !final { // else it may be there already, whatever failed behind that
				if rerr := c.Checkpoints.Remove(writing, name); rerr != nil {
					c.Log.Warn("cannot remove what was left half written", "error", rerr)
				}
			}
		}
		c.post(ctx, written{m, final, err})
	})
	return nil
}

// write makes a checkpoint of what the strategy holds, unless somebody else
// speaks for the run by the time that all of it is durable.
func (c *coordinator) write(ctx context.Context, name string, m *checkpoint.Manifest) error {
	var err error
	if m.Parts, err = c.strategy.write(ctx, m.Term, name); err != nil {
		return err
	}
	if err := c.terms.check(m.Term); err != nil {
		return err
	}
	if err := c.journal.sync(); err != nil { // behind a checkpoint, nothing of it is lost
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	ok, err := c.Checkpoints.Complete(ctx, name, *m)
	if err == nil && !ok {
		err = fmt.Errorf("what the servers have written is not in %s: give all of them the same --checkpoints as the coordinator, or none", c.Checkpoints)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	if err := c.unfollowed(ctx, m.Term); errors.Is(err, errSuperseded) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	if err := c.Checkpoints.Finish(ctx, name, m); err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	return nil
}

// manifest says what the run is at now.
func (c *coordinator) manifest() checkpoint.Manifest {
	whole, open := c.book.Save()
	return checkpoint.Manifest{
		Step: c.version, Term: c.term, Generation: c.generation, Run: c.hash, Seed: c.Spec.Seed,
		Model: c.Workload.Model, Vars: c.Workload.Vars, Recipe: c.recipe(c.Spec.Worker.Replicas),
		Class: c.class, Records: c.records(), Whole: whole, Ledger: open, Skipped: c.skipped, Training: c.clock.read().Seconds(),
		Metrics: c.status.Load().Metrics, Evaluated: c.evaluated, Loss: spec.Number(c.loss), Saved: time.Now(),
	}
}

// checkpointed notes that a checkpoint is on disk and lets old ones go.
func (c *coordinator) checkpointed(w written) error {
	c.saving = false
	if errors.Is(w.err, errSuperseded) {
		if err := c.ours(); err != nil { // else by a term of its own
			return err
		}
		var by supersededError
		if errors.As(w.err, &by) && by.by > c.term { // by one that has another folder
			return w.err
		}
	}
	switch {
	case w.err != nil && w.final:
		return c.finalFailed(w.err)
	case w.err != nil:
		c.Log.Error("checkpoint failed; training goes on", "error", w.err)
		c.note(spec.Event{Type: spec.EventCheckpoint, Message: w.err.Error()})
		return nil
	case w.final:
		// Whatever has become of the servers meanwhile: the run is done.
		c.Log.Info("final model saved", "step", w.manifest.Step)
		j, name := c.judge(), spec.FinalName(w.manifest.Term)
		c.beside("remove earlier finished models", func(ctx context.Context) error { return j.removeFinals(ctx, name) })
		return c.conclude(w.manifest)
	case c.judge().void(w.manifest):
		c.beside("remove a void checkpoint", func(ctx context.Context) error {
			return c.Checkpoints.Remove(ctx, spec.StepName(w.manifest.Step, w.manifest.Term))
		})
		return nil
	}
	c.saved = w.manifest.Step
	c.note(spec.Event{Type: spec.EventCheckpoint, Epoch: c.epoch(), Message: fmt.Sprintf(savedMessage, w.manifest.Step)})
	c.Log.Info("checkpoint saved", "step", w.manifest.Step)
	j, keep := c.judge(), c.Spec.Checkpoint.Keep
	c.beside("remove old checkpoints", func(ctx context.Context) error { return j.prune(ctx, keep) })
	return nil
}

// beside tidies up where checkpoints lie, one thing at a time and beside loop:
// the place may be slow. It may also fail: the run goes on.
func (c *coordinator) beside(what string, do func(ctx context.Context) error) {
	c.saves.Go(func() {
		c.tidying.Lock()
		defer c.tidying.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), tidyTime)
		defer cancel()
		if err := do(ctx); err != nil {
			c.Log.Warn("cannot "+what, "error", err)
		}
	})
}

// maxFinals is how often the final model is tried to be saved; finalPatience,
// how long what cannot be written is tried again.
const (
	maxFinals     = 10
	finalPatience = 15 * time.Second
)

// finalFailed decides what follows when the final model could not be saved: a
// lost server costs the way from the newest checkpoint, a full disk a few
// seconds or, if there is no room by then, the run's rest until there is.
func (c *coordinator) finalFailed(err error) error {
	c.Log.Error("final model not saved", "error", err)
	if c.finals++; c.finals == 1 {
		c.finalFirst = time.Now()
	}
	pause := time.Duration(0)
	if errors.Is(err, errStorage) {
		pause = 500 * time.Millisecond << c.finals
	}
	if c.finals >= maxFinals || time.Since(c.finalFirst)+pause > min(finalPatience, c.PlacePatience) {
		return stopped{spec.CauseDisk, fmt.Sprintf("the final model could not be saved: %v", err)}
	}
	c.note(spec.Event{Type: spec.EventCheckpoint, Message: err.Error()})
	c.final, c.finalAfter, c.kept = false, time.Now().Add(pause), c.saved
	return nil
}
