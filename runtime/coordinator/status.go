package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/stokehq/stoke/runtime/durable"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
)

// epoch is the first one with records left to commit.
func (c *coordinator) epoch() int {
	if c.book == nil {
		return 0
	}
	return min(c.book.Epochs(), c.Spec.Epochs)
}

// publish sets what the API tells.
func (c *coordinator) publish(phase spec.Phase) {
	if c.Turn != nil {
		c.Turn()
	}
	now := time.Now()
	s := &spec.Status{
		Run: c.Name, Hash: c.hash, Trainer: c.Credentials.Version, Phase: phase, Message: c.message,
		Step: c.version, Epoch: c.epoch(), Epochs: c.Spec.Epochs,
		Skipped: c.skipped, Loss: spec.Number(c.loss), Resumed: c.resumed,
		Workers: len(c.members), Wanted: c.Spec.Worker.Replicas, Class: c.class,
		Evaluated: c.evaluated, Saved: c.saved, Term: c.term, Generation: c.generation, Ran: c.ran().Seconds(), Started: c.started, Updated: now,
	}
	if c.reason != nil {
		s.Message = "ending: " + c.reason.Error()
	}
	if c.queue != nil {
		s.Steps = c.steps
		s.Records = c.book.Records()
	}
	s.Metrics = maps.Clone(c.metrics)
	training := c.clock.read().Seconds()
	s.Metrics["training_seconds"] = training
	s.Metrics["elapsed_seconds"] = now.Sub(c.started).Seconds()
	s.Metrics["steps"] = float64(s.Step)
	s.Metrics["records"] = float64(s.Records)
	if training > 0 {
		s.Metrics["samples_per_second"] = float64(s.Records) / training
	}
	c.status.Store(s)
}

// forecast sets how many updates the run will have had in the end.
func (c *coordinator) forecast() {
	c.steps = c.version + int64(len(c.updates)) + c.queue.slices(c.Spec.GlobalBatch(c.Spec.Worker.Replicas))
	if limit := int64(c.Spec.MaxSteps); limit > 0 {
		c.steps = min(c.steps, limit)
	}
}

// keepStatus writes status.json twice a second until ctx is done: beside the
// loop, because a disk may be slow.
func (c *coordinator) keepStatus(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	ours := func() error {
		c.claiming.Lock()
		defer c.claiming.Unlock()
		return c.ours()
	}
	for turn := 0; ; turn++ {
		c.saveStatus(cancel)
		if turn%2 == 0 { // the ledger is made durable once a second
			if err := errors.Join(c.journal.sync(), c.journal.history.Thin(ours)); err != nil && !errors.Is(err, errSuperseded) {
				c.Log.Error("cannot tidy up the ledger", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.saveStatus(cancel) // what was written last may be older
			return
		}
	}
}

// saveStatus writes the newest status.
func (c *coordinator) saveStatus(cancel context.CancelCauseFunc) {
	c.keeping.Lock()
	err := c.writeStatus(c.status.Load())
	c.keeping.Unlock()
	switch {
	case errors.Is(err, errSuperseded):
		// Perhaps by a term of its own, which this status is not of yet.
		if c.claiming.Lock(); errors.Is(c.ours(), errSuperseded) {
			cancel(c.ours()) // whatever it waits for
		}
		c.claiming.Unlock()
	case err != nil:
		c.Log.Error("cannot write the status", "error", err)
	}
}

// writeStatus replaces status.json, unless another coordinator speaks for the
// run by now.
func (c *coordinator) writeStatus(s *spec.Status) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	draft, err := durable.Create(c.Folder.StatusFile())
	if err != nil {
		return err
	}
	defer draft.Abort()
	if _, err = draft.Write(append(data, '\n')); err == nil {
		err = draft.Sync()
	}
	if err == nil {
		err = c.terms.check(s.Term) // writing may take long
	}
	if err == nil {
		err = draft.Commit()
	}
	return err
}

// note writes an event to the history. Where it cannot be written the run stops.
func (c *coordinator) note(e spec.Event) {
	e.Term, e.Generation, e.Step = c.term, c.generation, c.version
	if c.unwritten {
		return // it ends at what it has
	}
	c.endUnwritten(c.journal.add(e))
}

// enter writes a committed update to the ledger.
func (c *coordinator) enter(r ledger.Record) {
	if !c.unwritten {
		c.endUnwritten(c.journal.commit(r))
	}
}

// endUnwritten ends the run where the journal could not be written.
func (c *coordinator) endUnwritten(err error) {
	if err != nil {
		c.unwritten = true
		c.Log.Error("cannot write the journal", "error", err)
		c.finish(full(err))
	}
}

// tell sends a line to the supervisor.
func (c *coordinator) tell(line spec.Control) {
	if c.Control == nil {
		return
	}
	data, err := json.Marshal(line)
	if err == nil {
		_, err = c.Control.Write(append(data, '\n'))
	}
	if err != nil {
		c.Log.Error("cannot reach the supervisor", "error", err)
	}
}
