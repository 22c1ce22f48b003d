package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
)

var errClosed = errors.New("the replica is closed")

// replica is one model with its values and buffers.
type replica struct {
	model   *model.Model
	options engine.Options
	vars    []model.Var
	shapes  [][]int

	factor float32      // of the input's values
	bytes  [256]float32 // each byte times the factor

	threads *threads
	vector  []float32
	sums    [][]float32 // per part; the first is the total once merged
	ownSums []float32   // memory of the first; nil: it is borrowed
	extents []extent    // of the layers' parameters in these vectors
	layers  []layer
	spans   [][2]int  // of each layer's trained variables
	learns  []bool    // layers that have any, or that read such a layer
	gathers []*gather // of layers with several readers
	input   []float32
	outputs []float32 // of the last layer
	loss    *loss

	slots    [][]float32 // the optimizer's, as many as were needed so far
	staged   *staged     // under way
	current  pass
	total    engine.Result // of the pass so far
	convert  job
	merge    job
	mergedAt int
	finite   []bool

	borrowed   bool // the caller's memory has the parameters
	dirty      bool // parameters changed since prepare
	stepping   bool // a pass of Steps is under way
	evaluating bool // a pass of Evaluates is under way
	closed     bool

	buffers buffers
}

func (r *replica) Layout() ([]model.Var, []model.Table) { return r.vars, nil }

func (r *replica) Needs(*engine.Batch) [][]int64 { return nil }

func (r *replica) Put(vector, offset int, v []float32) error {
	if err := r.check(vector, offset, len(v)); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if vector > 0 {
		r.keepSlots(vector)
		copy(r.slots[vector-1][offset:], v)
		return nil
	}
	if r.borrowed && len(v) == len(r.vector) { // the borrowed ones may be changing
		r.keepParameters(make([]float32, len(v)))
	}
	r.copyBorrowed()
	copy(r.vector[offset:], v)
	r.dirty = true
	return nil
}

func (r *replica) Get(vector, offset int, v []float32) error {
	if err := r.check(vector, offset, len(v)); err != nil {
		return fmt.Errorf("get: %w", err)
	}
	switch {
	case vector == 0:
		copy(v, r.vector[offset:])
	case vector > len(r.slots):
		clear(v)
	default:
		copy(v, r.slots[vector-1][offset:])
	}
	return nil
}

// keepSlots makes the optimizer's first n slots, which begin as zeros.
func (r *replica) keepSlots(n int) {
	for len(r.slots) < n {
		r.slots = append(r.slots, make([]float32, len(r.vector)))
	}
}

// Update implements engine.Updater.
func (r *replica) Update(sums []float32, weight float64, recipe optimizer.Recipe) error {
	err := engine.CheckUpdate(sums, weight, recipe, len(r.vector), r.stepping)
	if r.closed {
		err = errClosed
	}
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	own := sums == nil
	if own {
		r.finish(0, len(r.vector), nil)
		sums = r.sums[0]
	}
	r.copyBorrowed()
	r.keepSlots(recipe.Slots())
	scale := 1.0
	if recipe.ClipNorm > 0 {
		scale = recipe.ClipScale(optimizer.SquaredNorm(sums, weight, r.vars))
	}
	r.threads.run(len(r.vector), func(_, from, to int) {
		slots := make([][]float32, len(r.slots))
		for i, v := range r.slots {
			slots[i] = v[from:to]
		}
		vector := r.vector[from:to]
		optimizer.UpdateScaled(vector, vector, slots, sums[from:to], weight, model.Slice(r.vars, from, to), recipe, scale)
	})
	r.dirty = true
	if own {
		for _, part := range r.sums {
			clear(part)
		}
	}
	return nil
}

func (r *replica) check(vector, offset, n int) error {
	if r.closed {
		return errClosed
	}
	return engine.CheckSpan(vector, offset, n, len(r.vector))
}

// Step implements engine.Replica. LossScale is not needed in this precision
// and ignored: sums are always unscaled.
func (r *replica) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	if err := r.begin(ctx, s, p, &r.stepping); err != nil {
		return engine.Result{}, fmt.Errorf("step: %w", err)
	}
	if p.First {
		for _, sums := range r.sums {
			clear(sums)
		}
	}
	r.current.training = true
	if err := r.runForward(ctx); err != nil {
		return engine.Result{}, fmt.Errorf("step: %w", err)
	}
	if p.Keep {
		p.Ready = nil
	}
	if p.Last {
		// The moments are complete before anything else.
		trained := model.TrainedLength(r.vars)
		if trained < len(r.vector) {
			r.finish(trained, len(r.vector), p.Ready)
		}
	}
	for i := len(r.layers) - 1; i >= 0; i-- {
		if !r.learns[i] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return engine.Result{}, fmt.Errorf("step: %w", err)
		}
		if r.current.n > 0 {
			if g := r.gathers[i]; g != nil {
				g.run(&r.current)
			}
			r.layers[i].backward(&r.current)
		}
		if span := r.spans[i]; p.Last && span[0] >= 0 {
			r.finish(span[0], span[1], p.Ready)
		}
	}
	if p.Last && p.Keep {
		return r.keep(), nil
	}
	return r.end(p, &r.stepping), nil
}

// keep ends the results of a pass whose sums go on, all of them in the first part.
func (r *replica) keep() engine.Result {
	for _, part := range r.sums[1:] {
		clear(part)
	}
	result := r.total
	result.Squares = optimizer.SquaredNorm(r.sums[0], 1, r.vars)
	r.total, r.stepping = r.noRecords(), true
	return result
}

// noRecords is the result of a pass that begins.
func (r *replica) noRecords() engine.Result {
	return engine.Result{Finite: true, Metrics: make([]float64, len(r.model.Metrics))}
}

// Evaluate implements engine.Replica. Predictions are what the last layer gives, for
// classes logits; predictions for records of weight 0 are zeros.
func (r *replica) Evaluate(ctx context.Context, s engine.Staged, p engine.Pass, out []float32) (engine.Result, error) {
	if out != nil && len(out) != len(r.outputs) {
		return engine.Result{}, fmt.Errorf("evaluate: room for %d predictions, want %d", len(out), len(r.outputs))
	}
	if err := r.begin(ctx, s, p, &r.evaluating); err != nil {
		return engine.Result{}, fmt.Errorf("evaluate: %w", err)
	}
	r.current.training = false
	if err := r.runForward(ctx); err != nil {
		return engine.Result{}, fmt.Errorf("evaluate: %w", err)
	}
	if out != nil {
		clear(out)
		k := len(r.outputs) / r.options.MicroBatch
		for i, place := range r.staged.places {
			copy(out[place*k:(place+1)*k], r.outputs[i*k:(i+1)*k])
		}
	}
	return r.end(p, &r.evaluating), nil
}

// begin loads a batch and brings the layers up to date. The pass is not under
// way again before end.
func (r *replica) begin(ctx context.Context, s engine.Staged, p engine.Pass, kind *bool) error {
	goesOn := *kind
	r.stepping, r.evaluating = false, false
	if r.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	batch, ok := s.(*staged)
	if !ok {
		return fmt.Errorf("batch of type %T was not staged by the cpu engine", s)
	}
	if batch.released.Load() {
		return errors.New("the batch has been released")
	}
	if batch.pass.n > r.options.MicroBatch || len(batch.features) != batch.pass.n*product(r.model.Input.Shape)*r.model.Input.Type.Size() {
		return errors.New("the batch was staged for another model")
	}
	if p.First {
		r.total = r.noRecords()
	} else if !goesOn {
		return errors.New("no pass is under way: the first call must say First")
	}
	if r.dirty {
		for _, l := range r.layers {
			l.prepare()
		}
		r.dirty = false
	}
	r.current = batch.pass
	r.load(batch)
	return nil
}

// end gives the pass's result with its last call.
func (r *replica) end(p engine.Pass, kind *bool) engine.Result {
	*kind = !p.Last
	if !p.Last {
		return engine.Result{}
	}
	return r.total
}

// runForward runs the layers and the loss.
func (r *replica) runForward(ctx context.Context) error {
	if r.current.n == 0 {
		return nil
	}
	for _, l := range r.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.forward(&r.current)
	}
	loss := r.loss.run(&r.current, r.total.Metrics)
	r.total.Weight += r.current.total
	r.total.Loss += loss
	r.total.Finite = r.total.Finite && !math.IsNaN(loss) && !math.IsInf(loss, 0)
	return nil
}

// finish adds the parts of a span of the sums and reports it.
func (r *replica) finish(from, to int, ready func(int, []float32)) {
	r.mergedAt = from
	for i := range r.finite {
		r.finite[i] = true
	}
	r.threads.run(to-from, r.merge)
	for _, ok := range r.finite {
		r.total.Finite = r.total.Finite && ok
	}
	if ready != nil {
		ready(from, r.sums[0][from:to])
	}
}

func (r *replica) mergePart(part, from, to int) {
	total := r.sums[0][r.mergedAt+from : r.mergedAt+to]
	for _, sums := range r.sums[1:] {
		for i, v := range sums[r.mergedAt+from : r.mergedAt+to] {
			total[i] += v
		}
	}
	r.finite[part] = optimizer.Finite(total)
}

// Fork makes a replica with buffers of its own and this one's values.
func (r *replica) Fork() (engine.Replica, error) {
	if r.closed {
		return nil, fmt.Errorf("fork: %w", errClosed)
	}
	f, err := maker{}.Build(r.model, r.options)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	return f, f.Put(0, 0, r.vector)
}

func (r *replica) Close() error {
	if !r.closed {
		r.closed = true
		r.threads.close()
	}
	return nil
}
