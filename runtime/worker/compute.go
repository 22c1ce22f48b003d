package worker

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// compute works off the leases, one at a time.
func (s *session) compute(ctx context.Context, batches <-chan *batch) error {
	for {
		var b *batch
		select {
		case b = <-batches:
		case <-ctx.Done():
			return ctx.Err()
		}
		report, err := s.lease(ctx, b)
		if err != nil {
			return err
		}
		report.ID, report.Generation, report.Evaluate = b.ID, b.Generation, b.Evaluate
		if err := s.coordinator.Send(wire.TypeReport, report, nil); err != nil {
			return err
		}
		if b.Exact || b.Evaluate {
			continue
		}
		// Asynchronously, the next pull must contain this worker's own push.
		select {
		case s.least = <-s.applied:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lease computes one lease. An error ends the session; what is wrong with the
// lease alone is in the report.
func (s *session) lease(ctx context.Context, b *batch) (wire.Report, error) {
	if b.err != nil {
		if ctx.Err() != nil {
			return wire.Report{}, ctx.Err()
		}
		return wire.Report{Error: fmt.Sprintf("read records: %v", b.err)}, nil
	}
	version := b.Version
	if s.least.Generation == b.Generation && !b.Exact {
		version = max(version, s.least.Version)
	}
	err := s.servers.pull(s.replica, b.Generation, version, b.Exact, &s.held)
	if errors.As(err, new(refusedError)) {
		return wire.Report{Dropped: true}, nil
	}
	if err != nil {
		return wire.Report{}, err
	}
	var r wire.Report
	var fatal bool
	if b.Evaluate {
		r, err = s.evaluate(ctx, b)
	} else {
		r, fatal, err = s.train(ctx, b)
	}
	switch {
	case err != nil && (fatal || ctx.Err() != nil):
		return wire.Report{}, err
	case errors.As(err, new(refusedError)):
		return wire.Report{Dropped: true}, nil
	case err != nil:
		return wire.Report{Error: err.Error()}, nil
	}
	r.Version = s.held.version
	return r, nil
}

// total adds up the results of micro-batches.
type total struct {
	engine.Result
	any bool
}

func (t *total) add(r engine.Result) {
	if !t.any {
		t.any, t.Finite = true, true
		t.Metrics = make([]float64, len(r.Metrics))
	}
	t.Weight += r.Weight
	t.Loss += r.Loss
	for i, m := range r.Metrics {
		t.Metrics[i] += m
	}
	t.Finite = t.Finite && r.Finite
}

func (t *total) report() wire.Report {
	r := wire.Report{Weight: t.Weight, Metrics: t.Metrics, Finite: t.Finite}
	if math.IsNaN(t.Loss) || math.IsInf(t.Loss, 0) {
		r.Finite = false
	} else {
		r.Loss = &t.Loss
	}
	for i, m := range r.Metrics {
		if math.IsNaN(m) || math.IsInf(m, 0) {
			r.Finite, r.Metrics[i] = false, 0
		}
	}
	return r
}

// train computes the lease's sums and pushes them; fatal tells an error of the
// connections from one of the records.
func (s *session) train(ctx context.Context, b *batch) (r wire.Report, fatal bool, err error) {
	var t total
	for i := range b.micro {
		staged, err := s.replica.Stage(ctx, &b.micro[i], nil)
		if err != nil {
			return r, false, fmt.Errorf("stage records: %w", err)
		}
		p := engine.Pass{First: i == 0, Last: i == len(b.micro)-1, LossScale: 1}
		if p.Last {
			p.Ready = func(offset int, sums []float32) { copy(s.sums[offset:], sums) }
		}
		result, err := s.replica.Step(ctx, staged, p)
		if err != nil {
			return r, false, fmt.Errorf("compute gradients: %w", err)
		}
		t.add(result)
	}
	if r = t.report(); !r.Finite {
		return r, false, nil // the update will be skipped: nothing to push
	}
	push := wire.Push{ID: b.ID, Version: s.held.version, Exact: b.Exact, Weight: t.Weight, Contribution: b.Contribution}
	push.Worker = s.Index
	if err := s.servers.push(push, s.sums); err != nil {
		return r, !errors.As(err, new(refusedError)), err
	}
	return r, false, nil
}

func (s *session) evaluate(ctx context.Context, b *batch) (wire.Report, error) {
	var t total
	for i := range b.micro {
		staged, err := s.replica.Stage(ctx, &b.micro[i], nil)
		if err != nil {
			return wire.Report{}, fmt.Errorf("stage records: %w", err)
		}
		result, err := s.replica.Evaluate(ctx, staged, nil)
		if err != nil {
			return wire.Report{}, fmt.Errorf("evaluate: %w", err)
		}
		t.add(result)
	}
	return t.report(), nil
}
