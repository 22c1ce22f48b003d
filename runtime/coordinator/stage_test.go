package coordinator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// staging is an engine whose evaluations need the next micro-batch to be staged
// while they run, and which bears nothing else beside Stage.
type staging struct {
	linear
	broken *atomic.Int64 // calls beside Stage, and steps beside which nothing was staged
}

type stagingReplica struct {
	engine.Replica
	staging
	calls   atomic.Int64  // of Stage
	running atomic.Int64  // of those
	called  chan struct{} // by each
}

type numbered struct {
	engine.Staged
	number int64
}

func (e staging) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := e.linear.Build(m, o)
	return &stagingReplica{Replica: r, staging: e, called: make(chan struct{}, 1<<16)}, err
}

func (r *stagingReplica) Stage(ctx context.Context, b *engine.Batch, rows []model.Rows) (engine.Staged, error) {
	n := r.calls.Add(1)
	r.called <- struct{}{}
	r.running.Add(1)
	defer r.running.Add(-1)
	s, err := r.Replica.Stage(ctx, b, rows)
	return numbered{s, n}, err
}

func (r *stagingReplica) Put(vector, offset int, v []float32) error {
	if r.running.Load() > 0 {
		r.broken.Add(1)
	}
	return r.Replica.Put(vector, offset, v)
}

func (r *stagingReplica) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	return r.Replica.Step(ctx, s.(numbered).Staged, p)
}

func (r *stagingReplica) Evaluate(ctx context.Context, s engine.Staged, p engine.Pass, out []float32) (engine.Result, error) {
	for !p.Last && r.calls.Load() <= s.(numbered).number {
		select {
		case <-r.called:
		case <-time.After(30 * time.Second):
			r.broken.Add(1)
			return engine.Result{}, errors.New("nothing is staged beside the evaluation")
		}
	}
	return r.Replica.Evaluate(ctx, s.(numbered).Staged, p, out)
}

// The next micro-batch is staged beside the running one, and beside nothing else.
func TestNextMicroBatchIsStagedBesideTheStep(t *testing.T) {
	broken := new(atomic.Int64)
	s := pointsSpec()
	s.Worker.Replicas = 2
	b := newBench(t, s, linear{})
	b.engine = staging{broken: broken}
	if st := b.run(); st.Phase != spec.Succeeded || st.Records != 1800 || broken.Load() != 0 {
		t.Errorf("status %+v, %d calls that must not be", st, broken.Load())
	}
}
