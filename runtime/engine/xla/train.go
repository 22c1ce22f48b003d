package xla

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// A step and the update that follows it are one run of one program where no other step is
// between them: a device then begins one run in place of three, and gradients do not travel
// through its memory. So a step of one micro-batch waits for the next call, where the update
// before was of one step.

// deferred is a step that has not begun.
type deferred struct {
	batch   *staged
	promise *promise // of its numbers; nil: the pass goes on
}

// promise is a result whose numbers come later.
type promise struct {
	of    *replica
	total engine.Result // without the numbers
	kept  bool          // its numbers are on their way from the device
	done  chan struct{} // closed once whole and err are there
	whole engine.Result
	err   error
}

// errDropped is about a step that was dropped before it began.
var errDropped = errors.New("the pass has ended")

// result returns the result without its numbers.
func (p *promise) result() engine.Result {
	return engine.Result{Weight: p.total.Weight, Finite: true, Later: p.wait}
}

// wait returns the whole result. It begins the step where no other call has.
func (p *promise) wait() (engine.Result, error) {
	p.of.mu.Lock()
	if d := p.of.deferred; d != nil && d.promise == p {
		_ = beginDeferred(p.of) // the promise has the error
	}
	p.of.mu.Unlock()
	<-p.done
	if p.err != nil {
		return engine.Result{}, fmt.Errorf("step: %w", p.of.explain(p.err))
	}
	return p.whole, nil
}

// keep begins to copy the numbers from the device, during the next runs.
func (p *promise) keep(tally Buffer) {
	p.kept = true
	go func() {
		defer close(p.done)
		p.whole, p.err = readTally(p.of, p.total, tally)
	}()
}

// end lets the batch go, and ends the promise with an error unless its numbers are kept.
func (d *deferred) end(err error) {
	if p := d.promise; p != nil && !p.kept {
		p.err = cmp.Or(err, errDropped) // no error after a panic
		close(p.done)
	}
	d.batch.letGo()
}

// newPromise ends a kept pass whose numbers come later.
func newPromise(r *replica) *promise {
	p := &promise{of: r, total: r.total, done: make(chan struct{})}
	r.total = engine.Result{Finite: true}
	return p
}

// prepareDeferral compiles the program of a step and the update that follows it, where both may
// be one run, and reports whether the step can wait for the update. Where the program does not
// compile, or memory does not suffice, steps and updates stay apart from then on.
func prepareDeferral(r *replica, batch *staged, p engine.Pass) bool {
	if r.apart || !r.single || r.begun > 0 || len(batch.pieces) != 1 || batch.pieces[0].count != 1 ||
		p.Last && !(p.Keep && p.Ahead) {
		return false
	}
	kind := r.newest
	kind.trains, kind.tallies = true, p.Last
	if r.isCompiled(kind.program()) {
		return true
	}
	program, err := compileTraining(r, kind)
	var needs int64
	if err == nil {
		needs, err = program.Memory()
	}
	free := freeMemory(r)
	r.apart = err != nil || free > 0 && float64(needs) > free
	return !r.apart
}

func compileTraining(r *replica, kind updateKind) (Program, error) {
	return r.compile(kind.program(), func() (string, error) { return r.source.training(kind) })
}

// deferStep lets a step begin with the update that follows it.
func deferStep(r *replica, batch *staged, p engine.Pass) engine.Result {
	r.total.Weight += batch.weights[0]
	r.deferred = &deferred{batch: batch}
	batch.keep()
	if !p.Last {
		return engine.Result{}
	}
	r.deferred.promise = newPromise(r)
	return r.deferred.promise.result()
}

// takeDeferred returns the deferred step, which its caller begins or drops; nil: there is none.
func takeDeferred(r *replica) *deferred {
	d := r.deferred
	r.deferred = nil
	return d
}

// beginDeferred begins the deferred step by itself.
func beginDeferred(r *replica) (err error) {
	d := takeDeferred(r)
	if d == nil {
		return nil
	}
	defer func() { d.end(err) }()
	if err := r.step(d.batch.pieces[0]); err != nil || d.promise == nil {
		return err
	}
	tally, err := tallySums(r)
	if err == nil {
		d.promise.keep(tally)
	}
	return err
}

// dropDeferred drops the deferred step.
func dropDeferred(r *replica) {
	if d := takeDeferred(r); d != nil {
		d.end(errDropped)
	}
}

// trainDeferred begins the deferred step and its update in one run.
func trainDeferred(r *replica, kind updateKind, weight float64, recipe optimizer.Recipe) (err error) {
	d := takeDeferred(r)
	defer func() { d.end(err) }()
	kind.trains, kind.tallies = true, d.promise != nil
	program, err := compileTraining(r, kind)
	if err != nil {
		return err
	}
	if err := placeForUpdate(r, kind, weight, recipe); err != nil {
		return err
	}
	n := len(r.vars)
	arguments := append(append(stateOf(r, kind), r.sums[n], r.valid, r.numbers), d.batch.pieces[0].inputs...)
	results, err := program.Run(arguments...)
	if err != nil {
		return err
	}
	results = keepState(r, kind, results)
	r.sums[n], r.valid = results[0], results[1]
	if d.promise != nil {
		d.promise.keep(results[2])
	}
	_ = r.throttle(r.sums[n]) // the update is made: its promise, or the next call, has the error
	return nil
}

// training is (variables, slots, stats, valid, numbers, micro-batch) → (variables, slots, stats,
// valid): a step and its update. Where the program tallies, the stats become zeros, and the
// vector of tally is the last result.
func (s *source) training(k updateKind) (string, error) {
	f := stablehlo.New(s.precision)
	lists := s.stateOf(f, k)
	stats, valid := f.Argument(stablehlo.F32, s.stats()), f.Argument(stablehlo.F32)
	numbers := f.Argument(stablehlo.F32, numbersOfUpdate)
	n := s.network(f, lists[0], true)
	added, sums, err := s.gradientsOf(n)
	if err != nil {
		return "", err
	}
	stats = stats.Add(added)
	var tally []value
	if k.tallies {
		all, still := s.tallyOf(f, sums, stats, valid)
		tally, stats, valid = []value{all}, stats.Fill(0), still
	}
	s.updateAll(f, k, lists, sums, numbers, valid)
	var results []value
	for _, list := range lists {
		results = append(results, list...)
	}
	results = append(results, stats, valid)
	for i := range results {
		f.Donate(i, i)
	}
	return f.Text(s.name(k.program()), append(results, tally...)...), nil
}
