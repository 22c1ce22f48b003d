package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

const writeTime = 10 * time.Minute // the longest that writing may take

// written is the event of a checkpoint's end.
type written struct {
	manifest Manifest
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
	name := stepName(m.Step, m.Term)
	if final {
		name = c.store.finalName()
	}
	c.saves.Go(func() {
		writing, cancel := context.WithTimeout(ctx, writeTime)
		defer cancel()
		err := c.store.write(name, &m, func(folder string) ([]wire.File, error) {
			return c.strategy.write(writing, m.Term, folder)
		}, func() error { return c.terms.check(m.Term) })
		if err != nil {
			err = fmt.Errorf("write checkpoint: %w", err)
		}
		c.post(ctx, written{m, final, err})
	})
	return nil
}

// manifest says what the run is at now.
func (c *coordinator) manifest() Manifest {
	whole, open := c.book.Save()
	return Manifest{
		Step: c.version, Term: c.term, Generation: c.generation, Run: c.hash, Seed: c.Spec.Seed,
		Model: c.Workload.Model, Vars: c.Workload.Vars, Recipe: c.recipe(c.Spec.Worker.Replicas),
		Records: c.records(), Whole: whole, Ledger: open, Skipped: c.skipped, Training: c.clock.read().Seconds(),
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
		return c.conclude(w.manifest)
	case c.void(w.manifest):
		if err := c.store.remove(stepName(w.manifest.Step, w.manifest.Term)); err != nil {
			c.Log.Warn("cannot remove a void checkpoint", "error", err)
		}
		return nil
	}
	c.saved = w.manifest.Step
	c.note(spec.Event{Type: spec.EventCheckpoint, Epoch: c.epoch(), Message: fmt.Sprintf("step %d", w.manifest.Step)})
	c.Log.Info("checkpoint saved", "step", w.manifest.Step)
	c.prune()
	return nil
}

// maxFinals is how often the final model is tried to be saved.
const maxFinals = 10

// finalFailed decides what follows when the final model could not be saved: a
// lost server costs the way from the newest checkpoint, a full disk the run's
// rest until there is room.
func (c *coordinator) finalFailed(err error) error {
	c.Log.Error("final model not saved", "error", err)
	if c.finals++; errors.Is(err, errStorage) || c.finals >= maxFinals {
		return stopped{spec.CauseDisk, fmt.Sprintf("the final model could not be saved: %v", err)}
	}
	c.final = false
	return nil
}

// prune removes old checkpoints. Damaged ones do not count among those to keep.
func (c *coordinator) prune() {
	found := c.store.names()
	for i, intact := len(found)-1, 0; i >= 0; i-- {
		if intact < c.Spec.Checkpoint.Keep {
			if c.intact(found[i]) {
				intact++
			}
			continue
		}
		if err := c.store.remove(found[i]); err != nil {
			c.Log.Warn("cannot remove an old checkpoint", "error", err)
		}
	}
}

// intact reports whether the run could go back to a checkpoint, as far as can
// be seen without reading it.
func (c *coordinator) intact(name string) bool {
	m, _, err := c.usable(name)
	return err == nil && c.damaged[name] != m.Checksum && c.store.complete(name, m)
}
