package coordinator

import (
	"maps"
	"math"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// shard is the number of test records in one lease, rounded up to whole
// micro-batches.
const shard = 500

// evaluation is one measurement of the current version on the test records.
// Training pauses, so that the servers hold exactly this version; a worker that
// sees another refuses.
type evaluation struct {
	units []*unit
	open  int
	began time.Time
}

func (e *evaluation) isComplete() bool { return e.open == 0 }

func (c *coordinator) beginEvaluation() {
	c.clock.Pause()
	e := &evaluation{began: time.Now()}
	micro := int64(c.Spec.MicroBatchSize())
	size := (shard + micro - 1) / micro * micro
	for at, n := int64(0), c.Workload.Test.Info().Records; at < n; at += size {
		part := spec.Contribution{Start: at, End: min(at+size, n), Sequence: len(e.units)}
		e.units = append(e.units, &unit{Contribution: part})
	}
	e.open = len(e.units)
	c.evaluation = e
}

// concludeEvaluation merges the shards' sums, in their order.
func (c *coordinator) concludeEvaluation() {
	e := c.evaluation
	c.evaluation = nil
	var weight, loss float64
	sums := make([]float64, len(c.Workload.Model.Metrics))
	finite := true
	for _, u := range e.units {
		weight += u.report.Weight
		if u.report.Loss == nil {
			finite = false
		} else {
			loss += *u.report.Loss
		}
		for i := range min(len(sums), len(u.report.Metrics)) {
			sums[i] += u.report.Metrics[i]
		}
	}
	found := make(map[string]float64)
	if weight > 0 {
		for i, name := range c.Workload.Model.Metrics {
			if v := model.MetricValue(name, sums[i], weight); !math.IsInf(v, 0) && !math.IsNaN(v) {
				found[name] = v
			}
		}
		if finite {
			found["loss"] = loss / weight
		}
	}
	delete(c.metrics, "loss")
	maps.Copy(c.metrics, found)
	c.session.Note(spec.Event{Type: spec.EventEvaluation, Metrics: found, Records: int64(weight), Epoch: c.epoch()})
	c.Log.Info("evaluated", "step", c.version, "metrics", found, "seconds", time.Since(e.began).Seconds())
	c.session.Publish()
}
