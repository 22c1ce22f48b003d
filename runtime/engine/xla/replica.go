package xla

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
)

var errClosed = errors.New("the replica is closed")

// replica is one model on the device. The vector's home is the host until an update on
// the device: what travels is the whole vector, what programs read is a buffer for each
// variable.
type replica struct {
	*programs
	options engine.Options
	group   int // micro-batches of a batch, at most

	mu       sync.Mutex // of all below; Stage needs none of it
	deferred *deferred  // nil: every step has begun
	begun    int        // steps since the newest update of the pass, or since its begin
	single   bool       // that update was of one step
	newest   updateKind // that update
	apart    bool       // steps and updates are runs of their own

	vector []float32   // the parameters as the host knows them
	slots  [][]float32 // the optimizer's, likewise
	stale  bool        // the device has older parameters than vector
	ahead  bool        // the device has newer parameters and slots than vector and slots

	variables []Buffer
	updated   [][]Buffer // slots on the device, one buffer for each variable
	sums      []Buffer   // and the stats behind them; nil: no pass of Steps is under way
	valid     Buffer     // 1 as long as all kept sums of the pass are finite, then 0
	stats     Buffer     // of a pass of Evaluates
	numbers   Buffer     // of the last update; nil: there was none
	placed    []float32  // their values
	queue     queue      // of Steps and Evaluates
	total     engine.Result
	reported  []float32 // the sums of the last pass, as Ready gave them

	closed atomic.Bool
}

// prepare compiles what every use of the replica needs.
func (r *replica) prepare() (err error) {
	_, err = r.compileStep(1)
	for name, write := range map[string]func() string{"begin": r.begin, "split": r.split, "join": r.join} {
		if err == nil {
			_, err = r.compileText(name, write)
		}
	}
	return err
}

// Layout implements engine.Replica.
func (r *replica) Layout() ([]model.Var, []model.Table) { return r.vars, nil }

// Needs implements engine.Replica: no model has tables.
func (r *replica) Needs(*engine.Batch) [][]int64 { return nil }

// check checks the arguments of Put and Get.
func (r *replica) check(vector, offset, n int) error {
	if r.closed.Load() {
		return errClosed
	}
	return engine.CheckSpan(vector, offset, n, len(r.vector))
}

// Put implements engine.Replica. The device hears of it with the next call.
func (r *replica) Put(vector, offset int, v []float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.check(vector, offset, len(v))
	if err == nil {
		err = r.fetch()
	}
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	r.stale = true
	r.dropUpdated()
	if vector > 0 {
		r.keepSlots(vector)
		copy(r.slots[vector-1][offset:], v)
		return nil
	}
	copy(r.vector[offset:], v)
	return nil
}

// Get implements engine.Replica.
func (r *replica) Get(vector, offset int, v []float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.check(vector, offset, len(v))
	if err == nil {
		err = r.fetch()
	}
	switch {
	case err != nil:
		return fmt.Errorf("get: %w", err)
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

// load brings the device's variables up to date.
func (r *replica) load() error {
	if !r.stale {
		return nil
	}
	all, err := r.place(r.vector)
	if err != nil {
		return err
	}
	closeAll(r.variables)
	r.variables, r.stale = all, false
	return nil
}

// place copies a vector to the device, a buffer for each variable.
func (r *replica) place(v []float32) ([]Buffer, error) {
	flat, err := r.uploadFloats(v)
	if err != nil {
		return nil, err
	}
	all, err := r.run("split", r.split, flat)
	if err = errors.Join(err, flat.Close()); err != nil {
		closeAll(all)
		return nil, err
	}
	return all, nil
}

// Step implements engine.Replica. LossScale is not needed: bf16 has the exponents of f32.
func (r *replica) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch, err := r.take(ctx, s)
	switch {
	case err != nil:
	case p.First:
		err = r.beginSteps()
	case r.deferred != nil: // the update has several steps
		r.single = false
		err = beginDeferred(r)
	}
	switch {
	case err != nil:
	case r.sums == nil:
		err = errors.New("no pass is under way: the first call must say First")
	case prepareDeferral(r, batch, p):
		return deferStep(r, batch, p), nil
	default:
		err = r.steps(ctx, batch)
	}
	if err != nil {
		return engine.Result{}, fmt.Errorf("step: %w", r.fail(err))
	}
	if !p.Last {
		return engine.Result{}, nil
	}
	end := r.endSteps
	if p.Keep {
		end = r.keepSums
	}
	result, err := end(p)
	if err != nil {
		return engine.Result{}, fmt.Errorf("step: %w", r.fail(err))
	}
	if !p.Keep {
		r.dropPass()
	}
	return result, nil
}

// fail ends the pass after an error. It may be a late one, of the copy of the variables to
// the device: they are copied again.
func (r *replica) fail(err error) error {
	r.dropPass()
	r.stale = r.stale || !r.ahead
	return r.explain(err)
}

// take checks a call and brings the device's variables up to date.
func (r *replica) take(ctx context.Context, s engine.Staged) (*staged, error) {
	if r.closed.Load() {
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	batch, ok := s.(*staged)
	switch {
	case !ok:
		return nil, fmt.Errorf("batch of type %T was not staged by the xla engine", s)
	case batch.released.Load():
		return nil, errors.New("the batch has been released")
	case batch.batch != r.batch || batch.model != r.model:
		return nil, errors.New("the batch was staged for another model")
	}
	return batch, r.load()
}

// dropPass ends the pass that is under way.
func (r *replica) dropPass() {
	dropDeferred(r)
	closeAll(append(r.sums, r.valid))
	r.sums, r.valid = nil, nil
	if r.stats != nil {
		_ = r.stats.Close()
		r.stats = nil
	}
}

func (r *replica) beginSteps() (err error) {
	r.dropPass()
	r.total = engine.Result{Finite: true}
	all, err := r.run("begin", r.begin)
	if err == nil {
		last := len(all) - 1
		r.sums, r.valid, r.begun, r.single = all[:last:last], all[last], 0, false
	}
	return err
}

// steps begins the runs of a batch's pieces; the device does them in their order.
func (r *replica) steps(ctx context.Context, batch *staged) error {
	at := 0
	for _, p := range batch.pieces {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.step(p); err != nil {
			return err
		}
		for range p.count {
			r.total.Weight += batch.weights[at]
			at++
		}
	}
	return nil
}

// step begins the run of a piece.
func (r *replica) step(p piece) error {
	program, err := r.compileStep(p.count)
	if err != nil {
		return err
	}
	r.begun++
	arguments := append(append(append([]Buffer(nil), r.variables...), r.sums...), p.inputs...)
	sums, err := program.Run(arguments...)
	if err != nil {
		return err
	}
	r.sums = sums
	return r.throttle(sums[len(sums)-1])
}

// endSteps waits for the sums and reports them.
func (r *replica) endSteps(p engine.Pass) (engine.Result, error) {
	flat, err := r.run("join", r.join, r.sums...)
	if err != nil {
		return engine.Result{}, err
	}
	n := len(r.vector)
	all, err := r.download(flat[0], n+r.source.stats(), r.reported)
	r.queue.end(time.Now())
	if err != nil {
		return engine.Result{}, err
	}
	r.reported = all
	result := finish(r.total, all[n:])
	result.Finite = result.Finite && optimizer.Finite(all[:n])
	if p.Ready != nil {
		trained := model.TrainedLength(r.vars)
		if trained < n {
			p.Ready(trained, all[trained:n])
		}
		p.Ready(0, all[:trained])
	}
	return result, nil
}

// keepSums ends a pass whose sums stay on the device. It zeroes the stats.
func (r *replica) keepSums(p engine.Pass) (engine.Result, error) {
	tally, err := tallySums(r)
	if err != nil {
		return engine.Result{}, err
	}
	later := newPromise(r)
	if p.Ahead {
		later.keep(tally)
		return later.result(), nil
	}
	result, err := readTally(r, later.total, tally)
	r.queue.end(time.Now())
	return result, err
}

// tallySums begins to compute the numbers of the sums.
func tallySums(r *replica) (Buffer, error) {
	n := len(r.vars)
	results, err := r.run("tally", r.tally, append(r.sums[:n+1:n+1], r.valid)...)
	if err != nil {
		return nil, err
	}
	r.sums[n], r.valid = results[1], results[2]
	return results[0], nil
}

// readTally waits for the numbers of kept sums, and adds them to the result of their pass.
func readTally(r *replica, total engine.Result, tally Buffer) (engine.Result, error) {
	n := r.source.stats()
	numbers, err := r.download(tally, n+3, nil)
	if err != nil {
		return engine.Result{}, err
	}
	result := finish(total, numbers[:n])
	result.Squares = float64(numbers[n])
	result.Finite = numbers[n+2] == 1
	return result, nil
}

// download waits for a tensor of numbers, copies it, into a slice where that is long
// enough, and closes it.
func (r *replica) download(b Buffer, n int, into []float32) ([]float32, error) {
	memory, err := r.host.take(4 * n)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	defer r.host.give(memory)
	if err := errors.Join(b.Download(memory), b.Close()); err != nil {
		return nil, err
	}
	if cap(into) < n {
		into = make([]float32, n)
	}
	floats(memory, into[:n])
	return into[:n], nil
}

// finish adds the stats to the result of their pass.
func finish(result engine.Result, stats []float32) engine.Result {
	result.Loss = float64(stats[0])
	result.Metrics = make([]float64, len(stats)-1)
	for i, v := range stats[1:] {
		result.Metrics[i] = float64(v)
	}
	result.Finite = result.Finite && !math.IsNaN(result.Loss) && !math.IsInf(result.Loss, 0)
	return result
}

// Fork implements engine.Replica.
func (r *replica) Fork() (engine.Replica, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return nil, fmt.Errorf("fork: %w", errClosed)
	}
	if err := r.fetch(); err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	f, err := r.maker.Build(r.model, r.options)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	return f, f.Put(0, 0, r.vector)
}

// Close implements engine.Replica. The programs stay: the engine's next replica of the
// model needs them again.
func (r *replica) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed.Swap(true) {
		r.dropPass()
		r.dropUpdated()
		closeAll(append(r.variables, r.numbers))
		r.variables, r.numbers = nil, nil
	}
	return nil
}
