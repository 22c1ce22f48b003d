package coordinator

import (
	"maps"

	"github.com/stokehq/stoke/runtime/spec"
)

// epoch is the first one with records left to commit.
func (c *coordinator) epoch() int {
	if c.book == nil {
		return 0
	}
	return min(c.book.Epochs(), c.Spec.Epochs)
}

// Report adds progress, loss and metrics to a status.
func (c *coordinator) Report(s *spec.Status) {
	s.Step, s.Epoch, s.Epochs = c.version, c.epoch(), c.Spec.Epochs
	s.Skipped, s.Loss, s.Class = c.skipped, spec.Number(c.loss), c.class
	s.Evaluated, s.Saved = c.evaluated, c.save.written
	if c.queue != nil {
		s.Steps = c.steps
		s.Records = c.book.Records()
	}
	maps.Copy(s.Metrics, c.metrics)
	training := c.clock.Read().Seconds()
	s.Metrics["training_seconds"] = training
	s.Metrics["steps"] = float64(s.Step)
	s.Metrics["records"] = float64(s.Records)
	if training > 0 {
		s.Metrics["samples_per_second"] = float64(s.Records) / training
	}
}

// Sync makes the ledger durable.
func (c *coordinator) Sync() error { return c.journal.ledger.Sync() }
