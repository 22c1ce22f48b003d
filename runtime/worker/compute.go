package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// compute works off the leases, one at a time: the first one whose parameters
// are there. A lease of the next update waits for that version; leases of
// workers that died overtake it.
func (s *session) compute(ctx context.Context) error {
	defer s.unstage()
	for {
		s.dropRevoked()
		i, err := s.choose()
		if err != nil {
			return err
		}
		if i < 0 {
			select {
			case <-s.exchange.news():
			case b := <-s.batches:
				s.wait(b)
			case a := <-s.applied:
				s.reach(a)
				if err := s.flush(); err != nil { // it may wait for them
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		b := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.leased = true
		report, lost := s.lease(ctx, b)
		if lost != nil && report.Error == "" { // it is not these records that end the session
			report = wire.Report{Dropped: true}
		}
		if !b.reported {
			err = s.report(b, report)
		}
		if lost != nil || err != nil {
			return errors.Join(lost, err)
		}
		wait := !b.Exact // asynchronously, the next pull must contain this push
		s.releaseBatch(b)
		if !wait {
			continue
		}
		select {
		case a := <-s.applied:
			s.reach(a)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wait takes a lease in that is being read.
func (s *session) wait(b *batch) {
	s.waiting = append(s.waiting, b)
	s.reach(wire.Applied{Term: b.Term, Version: b.Current})
}

// report tells the coordinator what came of a lease.
func (s *session) report(b *batch, r wire.Report) error {
	b.reported = true
	return s.sendReport(&b.Lease, r)
}

func (s *session) sendReport(b *wire.Lease, r wire.Report) error {
	s.reports.add(b, r, nil)
	return s.flush()
}

// choose finds the first batch whose parameters are there, or not to be had;
// -1: none. The earliest that one waits for are asked for.
func (s *session) choose() (int, error) {
	var first *batch
	for i, b := range s.waiting {
		if !b.Exact || b.Term < s.reached.Term || s.hasParameters(b) {
			return i, nil
		}
		if s.exchange.hasArrived(loaded{b.Term, b.Version}) {
			return i, nil
		}
		if first == nil || b.Version < first.Version {
			first = b
		}
	}
	if first == nil {
		return -1, nil
	}
	return -1, s.exchange.request(loaded{first.Term, first.Version})
}

// hasParameters reports whether the replica has the parameters that a batch is to be
// computed with.
func (s *session) hasParameters(b *batch) bool { return s.loaded == loaded{b.Term, b.Version} }

// reach notes how far the servers are.
func (s *session) reach(a wire.Applied) {
	if a.Term > s.reached.Term || a.Term == s.reached.Term && a.Version > s.reached.Version {
		s.reached = a
	}
}

// lease computes one lease. An error ends the session; what is wrong with the
// lease alone is in the report.
func (s *session) lease(ctx context.Context, b *batch) (wire.Report, error) {
	s.progress.lease.Store(b.ID)
	defer s.progress.lease.Store(0)
	if s.exchange.inFlight() { // the report of the lease before comes later: this one is not for others
		if err := s.sendProgress(); err != nil {
			return wire.Report{}, err
		}
	}
	if err := s.resize(b); err != nil {
		return wire.Report{}, err
	}
	version := b.Version
	if s.reached.Term == b.Term && !b.Exact {
		version = s.reached.Version
	}
	if b.Term < s.reached.Term {
		return wire.Report{Dropped: true}, nil
	}
	pulled := s.Spent.begin(communicating)
	err := s.exchange.pull(ctx, s.replica, loaded{b.Term, version}, b.Exact, &s.loaded)
	pulled()
	if errors.As(err, new(refusedError)) {
		return wire.Report{Dropped: true}, nil
	}
	if err != nil {
		return wire.Report{}, err
	}
	defer s.letParametersGo()
	var r wire.Report
	var fatal bool
	if b.Evaluate {
		r, err = s.evaluate(ctx, b)
	} else {
		r, fatal, err = s.train(ctx, b)
	}
	switch {
	case errors.As(err, new(panicError)): // nothing is known of the replica now
		return wire.Report{Error: err.Error(), Fault: spec.FaultEngine}, wire.Leave{End: spec.EndError, Reason: err.Error()}
	case err != nil && (fatal || ctx.Err() != nil):
		return wire.Report{}, err
	case errors.As(err, new(refusedError)):
		return wire.Report{Dropped: true}, nil
	case err != nil:
		return wire.Report{Error: err.Error(), Fault: faultOf(err)}, nil
	}
	return r, nil
}

// readError is an error of the records' source.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// panicError is a panic of the engine.
type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("the engine panicked: %v", e.value) }

// recovered calls the engine; a panic becomes an error of type panicError.
func (s *session) recovered(call func() (engine.Result, error)) (result engine.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			s.Log.Error("the engine panicked", "value", value, "stack", string(debug.Stack()))
			err = panicError{value}
		}
	}()
	return call()
}

// faultOf returns what kind of error ended a lease.
func faultOf(err error) spec.Fault {
	switch {
	case errors.Is(err, dataset.ErrDamaged):
		return spec.FaultChecksum
	case errors.As(err, new(readError)):
		return spec.FaultData
	}
	return spec.FaultEngine
}

// resize gives the replica this worker's part of the cores, when the run has
// got more or fewer workers since it was built.
func (s *session) resize(b *batch) error {
	if b.ID < s.newest { // leases may overtake each other: the last one given knows best
		return nil
	}
	s.newest = b.ID
	threads := s.share(b.Workers)
	if threads == s.threads {
		return nil
	}
	if s.Spec.Worker.GPUs > 0 { // a GPU uses no threads of the engine
		if s.threads = threads; s.Fit != nil {
			s.Fit(threads)
		}
		return nil
	}
	s.unstage()
	b.unstage()
	old := s.replica
	if err := s.build(threads); err != nil {
		return err
	}
	s.loaded = loaded{} // the new one has no parameters yet
	s.exchange.reload()
	s.Log.Info("uses another number of threads", "threads", threads)
	err := old.Close()
	s.dropPlace()
	return err
}

// reported is what the coordinator hears of a lease's result.
func reported(result engine.Result) wire.Report {
	r := wire.Report{Weight: result.Weight, Metrics: result.Metrics, Finite: result.Finite}
	if math.IsNaN(result.Loss) || math.IsInf(result.Loss, 0) {
		r.Finite = false
	} else {
		r.Loss = &result.Loss
	}
	for i, m := range r.Metrics {
		if math.IsNaN(m) || math.IsInf(m, 0) {
			r.Finite, r.Metrics[i] = false, 0
		}
	}
	return r
}

// compute is one call of the engine for a staged batch.
type compute func(staged engine.Staged, p engine.Pass) (engine.Result, error)

// eachMicroBatch gives the lease's micro-batches, as they are read, to do: a pass for so
// many records each (0: for all of them), whose results ended hears of.
func (s *session) eachMicroBatch(ctx context.Context, b *batch, records int64, do compute, ended func(engine.Result)) error {
	size := int(records) / s.micro
	for n, last := 0, false; !last; {
		if s.revoked.take(b.ID) {
			return refusedError{"its lease was taken back"}
		}
		waited := s.Spent.begin(readingData)
		err := s.stage(ctx, b)
		waited()
		if err != nil {
			return err
		}
		var staged engine.Staged
		var count int
		staged, count, last = b.take()
		p := engine.Pass{First: n == 0, Last: last, LossScale: 1}
		if size > 0 {
			p.First, p.Last = n%size == 0, last || (n+count)%size == 0
		}
		n += count
		stagedNext := s.stageNext(ctx, b, last)
		computed := s.Spent.begin(computing)
		result, err := s.recovered(func() (engine.Result, error) { return do(staged, p) })
		computed()
		stagedNext()
		staged.Release()
		if err != nil {
			return err
		}
		s.advance(b)
		if p.Last {
			ended(result)
		}
	}
	return nil
}

// train computes the block's sums and pushes them; fatal tells an error of the
// connections from one of the records.
func (s *session) train(ctx context.Context, b *batch) (r wire.Report, fatal bool, err error) {
	sum, notFinite := s.sum, s.notFinite
	if r := s.resident(b); r != nil {
		sum, notFinite = r.sum, r.notFinite
	}
	total, losses, err := sum(ctx, b)
	if err != nil {
		return r, false, err
	}
	r = reported(total)
	r.Version = s.loaded.version
	s.letParametersGo() // before the update can be made
	early := b.Early
	sums := s.sums
	if r.Finite {
		r.Losses = losses
	} else if !early || s.Holder == nil {
		return r, false, nil // the update will be skipped: nothing to push
	} else {
		sums = notFinite() // the members may wait for it: they skip the update
	}
	if early && s.Holder == nil { // what the coordinator does about it, it does while the push travels
		if err := s.report(b, r); err != nil {
			return r, true, err
		}
	}
	if s.Accounts != nil {
		s.account(s.Accounts, b)
	}
	push := wire.Push{
		ID: b.ID, Version: r.Version, Exact: b.Exact, Next: b.Exact, Weight: r.Weight, Leaves: b.Leaves(),
		Quiet: early, Contribution: b.Contribution,
	}
	push.Worker = s.Index
	lease, reported := b.Lease, b.reported
	b.reported = true // or will be, once the servers have answered
	communicated := s.Spent.begin(communicating)
	err = s.exchange.contribute(push, sums, s.placeOf(sums), func(refused bool) error {
		if refused {
			return s.sendReport(&lease, wire.Report{Dropped: true})
		}
		return s.sendReport(&lease, r)
	})
	communicated()
	if early && !reported && err == nil { // the members wait for the push, not for the report
		s.reports.add(&lease, r, total.Later)
		if !b.Waits || !r.Finite {
			err = s.flush()
		}
	}
	return r, err != nil, err
}

// flush sends all reports once their numbers are there.
func (s *session) flush() error {
	computed := s.Spent.begin(computing)
	s.reports.complete()
	computed()
	defer s.Spent.begin(communicating)()
	return s.reports.flush(s.coordinator)
}

// sum computes a block's leases, one after the other, and adds them up in s.sums: in a
// deterministic run as a tree, else as the engine does. losses has one for each where they
// are added up one by one.
func (s *session) sum(ctx context.Context, b *batch) (total engine.Result, losses []float64, err error) {
	total.Finite = true
	records := b.Leaf
	if !s.Spec.Deterministic {
		records = 0
	}
	several := records > 0 && b.Leaves() > 1
	if err := s.borrowSums(b); err != nil {
		return total, nil, err
	}
	s.spare = append(s.spare, s.tree.Clear()...)
	step := func(staged engine.Staged, p engine.Pass) (engine.Result, error) {
		if p.First {
			s.sums = s.sums[:0]
		}
		p.Ready = s.sums.add // the engine keeps them until the next pass begins
		result, err := s.replica.Step(ctx, staged, p)
		if err != nil {
			return result, fmt.Errorf("compute gradients: %w", err)
		}
		return result, nil
	}
	err = s.eachMicroBatch(ctx, b, records, step, func(r engine.Result) {
		add(&total, r)
		if several {
			losses = append(losses, r.Loss)
			s.addLeaf()
		}
	})
	if several && err == nil {
		s.spare = append(s.spare, s.tree.Finish()...)
		s.sums = append(s.sums[:0], span{0, s.tree.Sums()})
	}
	return total, losses, err
}

// addLeaf adds the sums of a lease to the tree.
func (s *session) addLeaf() {
	into := s.tree.Neighbour(1)
	if into == nil {
		s.spare = append(s.spare, s.tree.Add(s.vector(), 1)...)
		return
	}
	for _, p := range s.sums { // without a copy of them
		part := into[p.offset : p.offset+len(p.sums)]
		optimizer.Add(part, part, p.sums)
	}
	s.spare = append(s.spare, s.tree.Grow(1)...)
}

// vector returns a copy of the sums.
func (s *session) vector() []float32 {
	var v []float32
	if n := len(s.spare); n > 0 {
		v, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	v = sized(v, s.sums.length())
	for _, p := range s.sums {
		copy(v[p.offset:], p.sums)
	}
	return v
}

// notFinite returns a copy of the sums that no update can take.
func (s *session) notFinite() spans {
	v := s.vector()
	v[0] = float32(math.NaN())
	return spans{{0, v}}
}

// add adds a result to those before it.
func add(total *engine.Result, r engine.Result) {
	total.Weight += r.Weight
	total.Loss += r.Loss
	total.Finite = total.Finite && r.Finite
	for i, m := range r.Metrics {
		if i == len(total.Metrics) {
			total.Metrics = append(total.Metrics, 0)
		}
		total.Metrics[i] += m
	}
}

func (s *session) evaluate(ctx context.Context, b *batch) (r wire.Report, err error) {
	err = s.eachMicroBatch(ctx, b, 0, func(staged engine.Staged, p engine.Pass) (engine.Result, error) {
		result, err := s.replica.Evaluate(ctx, staged, p, nil)
		if err != nil {
			return result, fmt.Errorf("evaluate: %w", err)
		}
		return result, nil
	}, func(result engine.Result) { r = reported(result) })
	r.Version = s.loaded.version
	return r, err
}
