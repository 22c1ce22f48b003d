package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/weights"
	"github.com/stokehq/stoke/runtime/workload"
)

// state is a state of a run that it can continue from.
type state struct {
	manifest checkpoint.Manifest
	book     *ledger.Book
	saved    int64 // step of the newest checkpoint
}

// restorer brings parameters and run to one state, outside of the loop. It reads
// and writes the coordinator's fields by onLoop.
type restorer struct {
	*coordinator
	spec     spec.Spec // as the restore began with it
	first    bool      // the run may be over already
	finished *checkpoint.Manifest
	state    state
}

// restore lets the run go back to the newest state that it can go on from.
func (c *coordinator) restore(ctx context.Context) {
	c.clock.Pause()
	c.giveUp()
	c.void = nil
	c.session.Explain("connecting to the parameter servers")
	c.session.Publish()
	r := &restorer{coordinator: c, spec: c.Spec, first: c.book == nil}
	c.begin(ctx, r.run, r.end)
	c.call.restoring = true
}

// end takes over the state that was found.
func (r *restorer) end(err error) error {
	c := r.coordinator
	reason := c.session.Reason()
	switch {
	case err != nil && reason != nil && !errors.Is(err, session.ErrSuperseded):
		return reason
	case err != nil:
		return err
	case r.finished != nil:
		return c.conclude(*r.finished)
	}
	c.resume(r.state)
	return nil
}

// onLoop lets the loop call a function, and returns its error.
func (r *restorer) onLoop(ctx context.Context, function func() error) error {
	var err error
	if !r.session.Do(ctx, func() { err = function() }) {
		return context.Cause(ctx)
	}
	return err
}

// run finds a state and restores it.
func (r *restorer) run(ctx context.Context) error {
	if r.first {
		if err := r.patiently(ctx, r.findFinished); err != nil || r.finished != nil {
			return err
		}
	}
	if err := r.parameters.connect(ctx); err != nil { // servers may wait for a place for as long as it takes
		return err
	}
	return r.patiently(ctx, r.restoreNewest)
}

// patiently repeats a function as long as the checkpoints cannot be reached, for
// a while: then the run stops, and can go on another time.
func (r *restorer) patiently(ctx context.Context, do func(ctx context.Context) error) error {
	began := time.Now()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		trying, cancel := context.WithTimeout(ctx, restoreTime)
		err := do(trying)
		late := trying.Err() != nil && ctx.Err() == nil
		cancel()
		var place session.PlaceError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !late && !errors.As(err, &place):
			return err
		case time.Since(began)+pause > r.PlacePatience:
			return session.Stopped{Cause: spec.CauseDisk, Text: fmt.Sprintf("the checkpoints cannot be reached: %v", err)}
		}
		r.Log.Warn("the checkpoints cannot be reached; trying again", "error", err, "in", pause)
		r.session.Do(ctx, func() {
			r.session.Explain(fmt.Sprintf("the checkpoints cannot be reached: %v", err))
			r.session.Publish()
		})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// findFinished looks for the final model of a run whose end was not reported.
func (r *restorer) findFinished(ctx context.Context) error {
	if err := r.session.ClaimPlace(ctx); err != nil {
		return err
	}
	j, err := r.judge(ctx)
	if err != nil {
		return err
	}
	names, err := r.Checkpoints.Names(ctx, spec.FinalPrefix)
	if err != nil {
		return session.PlaceFailed(err)
	}
	for _, name := range slices.Backward(names) {
		ok := false
		m, book, err := j.usable(ctx, name)
		if err == nil {
			ok, err = j.intact(ctx, name)
		}
		switch {
		case passOver(err), errors.Is(err, errOtherModel), errors.Is(err, checkpoint.ErrNewer):
			continue
		case err != nil:
			return session.PlaceFailed(err)
		case ok && (book.Epochs() >= r.spec.Epochs || r.spec.MaxSteps > 0 && m.Step >= int64(r.spec.MaxSteps)):
			r.finished = &m
			return nil
		}
	}
	return nil
}

// judge returns the judge of the run's checkpoints.
func (r *restorer) judge(ctx context.Context) (j *judge, err error) {
	err = r.onLoop(ctx, func() error {
		j = judgeOf(r.coordinator)
		return nil
	})
	return j, err
}

// restoreNewest attaches to the servers, or restores the newest checkpoint that
// is whole, or the start.
func (r *restorer) restoreNewest(ctx context.Context) error {
	names, err := r.Checkpoints.Names(ctx, spec.StepPrefix)
	if err != nil {
		return session.PlaceFailed(err)
	}
	if attached, err := r.attach(ctx); attached || err != nil {
		return err
	}
	var saved int64
	if err := r.onLoop(ctx, func() error { saved = r.journal.saved; return nil }); err != nil {
		return err
	}
	if len(names) == 0 && saved > 0 {
		return session.PlaceFailed(fmt.Errorf("step %d was saved, and %s has no checkpoint: is it there, or mounted?", saved, r.Checkpoints))
	}
	var passed []string // checkpoints of the run that cannot be used
	for _, name := range slices.Backward(names) {
		used, err := r.try(ctx, name)
		switch {
		case used, err != nil && !passOver(err) && !errors.As(err, new(damagedError)):
			return err
		case errors.Is(err, errForeign):
			r.Log.Error("checkpoint is not of this run's history", "checkpoint", name, "error", err)
			continue
		}
		r.Log.Error("checkpoint is not usable", "checkpoint", name, "error", err)
		passed = append(passed, fmt.Sprintf("%s (%v)", name, err))
	}
	if len(passed) > 0 { // the start would throw away what was trained
		return session.Stopped{Cause: spec.CauseCheckpoints, Text: fmt.Sprintf("none of its %d checkpoints can be used, and nothing was removed: %s",
			len(passed), strings.Join(passed, ", "))}
	}
	m := checkpoint.Manifest{Evaluated: -1}
	if err := r.restoreFrom(ctx, "", m); err != nil {
		return err
	}
	r.state = state{m, ledger.NewBook(r.records()), 0}
	r.clean(ctx)
	return nil
}

// try restores a checkpoint, if it can be used. Errors that are neither damaged
// nor passed over end the search.
func (r *restorer) try(ctx context.Context, name string) (used bool, err error) {
	j, err := r.judge(ctx)
	if err != nil {
		return false, err
	}
	m, book, err := j.usable(ctx, name)
	switch {
	case errors.Is(err, errOtherModel): // the start would throw away what was trained
		return false, session.Stopped{Cause: spec.CauseTrainer,
			Text: fmt.Sprintf("checkpoint %s cannot be used: %v; use the stoke-trainer that trained it", name, err)}
	case errors.Is(err, checkpoint.ErrNewer):
		return false, session.Stopped{Cause: spec.CauseCheckpoints,
			Text: fmt.Sprintf("checkpoint %s cannot be used: %v; use that one, nothing was removed", name, err)}
	case passOver(err):
		return false, err
	case err != nil:
		return false, session.PlaceFailed(err)
	}
	if err = j.checkParts(ctx, name, m); err == nil {
		err = r.restoreFrom(ctx, name, m)
	}
	if errors.As(err, new(damagedError)) {
		if err := r.onLoop(ctx, func() error { r.damaged[name] = m.Checksum; return nil }); err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	r.state = state{m, book, m.Step}
	r.clean(ctx)
	return true, nil
}

// restoreFrom restores one checkpoint, and repeats that while holders of the
// parameters are lost meanwhile. Each try is a term of its own.
func (r *restorer) restoreFrom(ctx context.Context, name string, m checkpoint.Manifest) error {
	from := restoreSource{checkpoint: name, parts: m.Parts,
		initial: func() ([]float32, error) { return initialOf(ctx, r.Workload, &r.spec) }}
	err := r.onLoop(ctx, func() error {
		from.recipe = recipeOf(&r.Spec, r.Spec.Worker.Replicas)
		return nil
	})
	if err != nil {
		return err
	}
	for {
		if err := r.meet(ctx); err != nil {
			return err
		}
		if from.point, err = r.declare(ctx, m.Step, m.Step, name); err != nil {
			return err
		}
		err := r.parameters.restore(ctx, from)
		if !errors.Is(err, errLost) {
			return err
		}
		r.Log.Warn("parameters lost while they were restored", "error", err)
		r.parameters.drop(err)
	}
}

// initialOf returns the whole vector before the first update.
func initialOf(ctx context.Context, w *workload.Workload, s *spec.Spec) ([]float32, error) {
	v := make([]float32, model.Length(w.Vars))
	err := w.Model.Init(s.Seed, v)
	if err == nil && s.InitFrom.Path != "" {
		err = fillFrom(ctx, s.InitFrom, w.Vars, v)
	}
	return v, err
}

// fillFrom writes the parameters of another model into the vector. Without them the
// run stops, and the next apply may find them; a model that does not fit fails the run.
func fillFrom(ctx context.Context, f spec.InitFrom, vars []model.Var, v []float32) error {
	stop := func(err error) error {
		return session.Stopped{Cause: spec.CauseData, Text: fmt.Sprintf("the model that it begins from cannot be read: %v", err)}
	}
	from, err := weights.Open(ctx, f.Path)
	if err != nil {
		return stop(err)
	}
	defer from.Close() //nolint:errcheck // it is only read
	hash, err := from.Hash(ctx)
	if err == nil && hash != f.Hash {
		err = fmt.Errorf("%s holds another model than planned: its hash is %s, not %s", f.Path, hash, f.Hash)
	}
	if err != nil {
		return stop(err)
	}
	skip, _ := f.Patterns() // the specification is valid
	switch err := from.Fill(ctx, vars, skip, v); {
	case errors.Is(err, weights.ErrMisfit):
		return session.Fail(spec.ReasonRejected, "the model that it begins from does not fit: %v", err)
	case err != nil:
		return stop(err)
	}
	return nil
}

// meet connects to all holders of parameters, in a term of which no message has
// been sent yet.
func (r *restorer) meet(ctx context.Context) error {
	if err := r.parameters.connect(ctx); err != nil {
		return err
	}
	return r.session.Renew(ctx)
}

// declare enters in the history that the term continues from a step, and in the
// ledger that its records do from another one, which is lower where the ledger
// lacks updates. Void updates are known before a new one is made.
func (r *restorer) declare(ctx context.Context, step, recorded int64, message string) (at point, err error) {
	err = r.onLoop(ctx, func() error {
		r.session.UseTerm()
		r.version = step
		at = r.currentPoint()
		r.session.Note(spec.Event{Type: spec.EventRestore, Message: message})
		return nil
	})
	if err != nil {
		return at, err
	}
	return at, session.Full(errors.Join(r.session.SyncHistory(), r.journal.ledger.Begin(at.term, recorded)))
}

// clean removes the files that a killed process left half written, unless a
// checkpoint is being written.
func (r *restorer) clean(ctx context.Context) {
	writing := true
	r.session.Do(ctx, func() { writing = r.save.writing })
	if writing {
		return
	}
	for _, prefix := range []string{spec.StepPrefix, spec.FinalPrefix} {
		if err := r.Checkpoints.Clean(ctx, prefix); err != nil {
			r.Log.Warn("cannot remove what was left half written", "error", err)
		}
	}
}

// conclude takes step and ledger from the finished model's manifest and ends the
// run.
func (c *coordinator) conclude(m checkpoint.Manifest) error {
	book, err := ledger.Load(m.Records, m.Whole, m.Ledger)
	if err != nil {
		return err
	}
	c.session.Note(spec.Event{Type: spec.EventCheckpoint, Epoch: book.Epochs(), Message: fmt.Sprintf(savedMessage, m.Step)})
	if m.Term != c.session.Term() || c.book == nil {
		c.adopt(m, book)
	}
	c.updates, c.save.written, c.done = nil, m.Step, true
	return nil
}

// resume lets the run go on from a state that the parameters are at.
func (c *coordinator) resume(s state) {
	c.adopt(s.manifest, s.book)
	for _, m := range c.members {
		if why := c.otherClass(m.Member); why != "" { // it joined before the class was known
			c.session.GiveUp(m.Member, why)
			continue
		}
		c.applied(m) // it may wait for a version that is void
	}
	c.save.written, c.save.cut, c.save.cutAt = s.saved, s.saved, time.Now()
	c.forecast(c.Spec.MaxSteps)
	c.session.Publish()
}

// adopt takes over what a manifest says of the run.
func (c *coordinator) adopt(m checkpoint.Manifest, book *ledger.Book) {
	c.version, c.book, c.queue = m.Step, book, newQueue(book, c.Spec.Epochs)
	c.steps = m.Step
	c.updates, c.evaluation = nil, nil
	clear(c.leases)
	c.final.saving = false
	if m.Class != "" || m.Step > 0 { // else the first worker may have joined before
		c.class = m.Class
	}
	c.evaluated, c.loss = m.Evaluated, float64(m.Loss)
	c.skipped, c.skips = m.Skipped, 0
	c.metrics = make(map[string]float64)
	for _, name := range append([]string{"loss"}, c.Workload.Model.Metrics...) {
		if v, ok := m.Metrics[name]; ok {
			c.metrics[name] = v
		}
	}
	c.pace.begin()
	c.clock.Start(time.Duration(m.Training * float64(time.Second)))
	c.session.RaiseTime(m.Training) // its status may be lost
	c.session.Explain("")
}

// judgeOf returns the judge of the run's checkpoints in its present state.
func judgeOf(c *coordinator) *judge {
	return &judge{c.Checkpoints, c.session.Hash(), c.Workload, slices.Clone(c.journal.restores), maps.Clone(c.damaged)}
}
