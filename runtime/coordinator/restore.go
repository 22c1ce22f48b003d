package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/workload"
)

// finished looks for the final model of a run whose end nobody was told.
func (c *coordinator) finished(ctx context.Context) (m checkpoint.Manifest, ok bool, err error) {
	j := c.judge()
	names, err := c.Checkpoints.Names(ctx, spec.FinalPrefix)
	if err != nil {
		return m, false, placeError{err}
	}
	for _, name := range slices.Backward(names) {
		m, book, err := j.usable(ctx, name)
		if err == nil {
			ok, err = j.intact(ctx, name)
		}
		switch {
		case passOver(err), errors.Is(err, errOtherModel), errors.Is(err, checkpoint.ErrNewer):
			continue
		case err != nil:
			return m, false, placeError{err}
		case ok && (book.Epochs() >= c.Spec.Epochs || c.Spec.MaxSteps > 0 && m.Step >= int64(c.Spec.MaxSteps)):
			return m, true, nil
		}
	}
	return m, false, nil
}

// concluded ends a run whose final model is there already.
func (c *coordinator) concluded(ctx context.Context) (over bool, err error) {
	ctx, cancel := c.untilAsked(ctx)
	defer cancel()
	err = c.patiently(ctx, func(ctx context.Context) error {
		if err := c.proclaim(ctx); err != nil {
			return err
		}
		m, ok, err := c.finished(ctx)
		if err == nil && ok {
			over = true
			err = c.conclude(m)
		}
		return err
	})
	return over, err
}

// placeError is about where the checkpoints lie, or how it is reached, and not
// about a checkpoint: another time it may be there. To begin anew because of it
// would throw away what lies there.
type placeError struct{ error }

func (e placeError) Unwrap() error { return e.error }

// patiently does something again and again as long as the checkpoints cannot be
// reached, for a while: then the run stops, and can go on another time.
func (c *coordinator) patiently(ctx context.Context, do func(ctx context.Context) error) error {
	began := time.Now()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		trying, cancel := context.WithTimeout(ctx, restoreTime)
		err := do(trying)
		late := trying.Err() != nil && ctx.Err() == nil
		cancel()
		var place placeError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !late && !errors.As(err, &place):
			return err
		case time.Since(began)+pause > c.PlacePatience:
			return stopped{spec.CauseDisk, fmt.Sprintf("the checkpoints cannot be reached: %v", err)}
		}
		c.message = fmt.Sprintf("the checkpoints cannot be reached: %v", err)
		c.Log.Warn("the checkpoints cannot be reached; trying again", "error", err, "in", pause)
		c.publish(spec.Running)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// untilAsked is ctx until the run is to end: loop does not hear of that while it
// restores.
func (c *coordinator) untilAsked(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var late <-chan time.Time
	if d := time.Duration(c.Spec.Deadline); d > 0 && (c.attended.running || c.ran() > d) {
		late = time.After(d - c.ran())
	}
	go func() {
		select {
		case <-c.Stop:
			cancel(errStop)
		case <-c.Leave:
			cancel(errLeft)
		case <-c.stopAsked:
			cancel(errStop)
		case <-late:
			cancel(stopped{spec.CauseDeadline, fmt.Sprintf("it has run for its deadline of %v", time.Duration(c.Spec.Deadline))})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// conclude makes the final model's cut the run's own state, and its end.
func (c *coordinator) conclude(m checkpoint.Manifest) error {
	book, err := ledger.Load(m.Records, m.Whole, m.Ledger)
	if err != nil {
		return err
	}
	c.note(spec.Event{Type: spec.EventCheckpoint, Epoch: book.Epochs(), Message: fmt.Sprintf(savedMessage, m.Step)})
	if m.Term != c.term || c.book == nil {
		c.adopt(m, book)
	}
	c.updates, c.saved, c.done = nil, m.Step, true
	return nil
}

// restore brings the parameters to the newest checkpoint that is whole, or to
// the start. It ends early when the run is to end.
func (c *coordinator) restore(ctx context.Context) error {
	c.clock.pause()
	c.message = "connecting to the parameter servers"
	c.publish(spec.Running)
	ctx, cancel := c.untilAsked(ctx)
	defer cancel()
	if err := c.strategy.connect(ctx); err != nil { // servers may wait for a place for as long as it takes
		return err
	}
	return c.patiently(ctx, c.restoreNewest)
}

func (c *coordinator) restoreNewest(ctx context.Context) error {
	names, err := c.Checkpoints.Names(ctx, spec.StepPrefix)
	if err != nil {
		return placeError{err}
	}
	if attached, err := c.attach(ctx); attached || err != nil {
		return err
	}
	if len(names) == 0 && c.journal.saved > 0 {
		return placeError{fmt.Errorf("step %d was saved, and there is no checkpoint in %s: is it there, or mounted?", c.journal.saved, c.Checkpoints)}
	}
	var passed []string // checkpoints of the run that cannot be used
	for _, name := range slices.Backward(names) {
		m, book, err := c.judge().usable(ctx, name)
		switch {
		case errors.Is(err, errOtherModel): // the start would throw away what was trained
			return stopped{spec.CauseTrainer,
				fmt.Sprintf("checkpoint %s cannot be used: %v; use the one that it was trained with", name, err)}
		case errors.Is(err, checkpoint.ErrNewer):
			return stopped{spec.CauseCheckpoints,
				fmt.Sprintf("checkpoint %s cannot be used: %v; use that one, nothing was removed", name, err)}
		case errors.Is(err, errForeign):
			c.Log.Error("checkpoint is not of this run's history", "checkpoint", name, "error", err)
			continue
		case err != nil && !passOver(err):
			return placeError{err}
		case err == nil:
			if err = c.judge().checkParts(ctx, name, m); err == nil {
				err = c.restoreFrom(ctx, name, m)
			}
		}
		switch {
		case err == nil:
			c.resume(ctx, m, book, m.Step)
			return nil
		case errors.As(err, new(damaged)):
			c.damaged[name] = m.Checksum
		case !passOver(err):
			return err
		}
		c.Log.Error("checkpoint is not usable", "checkpoint", name, "error", err)
		passed = append(passed, fmt.Sprintf("%s (%v)", name, err))
	}
	if len(passed) > 0 { // the start would throw away what was trained
		return stopped{spec.CauseCheckpoints, fmt.Sprintf("none of its %d checkpoints can be used, and nothing was removed: %s",
			len(passed), strings.Join(passed, ", "))}
	}
	m := checkpoint.Manifest{Evaluated: -1}
	if err := c.restoreFrom(ctx, "", m); err != nil {
		return err
	}
	c.resume(ctx, m, ledger.NewBook(c.records()), 0)
	return nil
}

// restoreFrom restores one checkpoint, again and again while what holds the
// parameters is lost on the way. Each try is a term of its own.
func (c *coordinator) restoreFrom(ctx context.Context, name string, m checkpoint.Manifest) error {
	from := cut{recipe: recipeOf(&c.Spec, c.Spec.Worker.Replicas), checkpoint: name, parts: m.Parts, initial: func() ([]float32, error) { return initialOf(c.Workload, c.Spec.Seed) }}
	if c.journal.reached > m.Step {
		c.resumed++
	}
	for {
		if err := c.meet(ctx); err != nil {
			return err
		}
		c.spoken, c.version = true, m.Step
		c.note(spec.Event{Type: spec.EventRestore, Message: name})
		from.point = c.at()
		if err := c.journal.goOn(from.point); err != nil { // what is void is known before anything new is made
			return full(err)
		}
		err := c.strategy.restore(ctx, from)
		if !errors.Is(err, errLost) {
			return err
		}
		c.Log.Warn("parameters lost while they were restored", "error", err)
	}
}

// initialOf returns the whole vector before the first update.
func initialOf(w *workload.Workload, seed uint64) ([]float32, error) {
	v := make([]float32, engine.Length(w.Vars))
	return v, w.Model.Init(seed, v)
}

// meet connects to all holders of parameters, in a term of which no message has
// been sent yet.
func (c *coordinator) meet(ctx context.Context) error {
	if err := c.strategy.connect(ctx); err != nil {
		return err
	}
	if c.spoken {
		if err := c.begin(); err != nil {
			return err
		}
	}
	return c.proclaim(ctx)
}

// resume sets the run's own state to the version that the parameters are at, as
// the manifest has it. saved is the step of the newest checkpoint.
func (c *coordinator) resume(ctx context.Context, m checkpoint.Manifest, book *ledger.Book, saved int64) {
	c.adopt(m, book)
	for _, member := range c.members {
		clear(member.leases)
		c.applied(member) // one may wait for what is not going to come
	}
	c.saved, c.kept, c.keptAt = saved, saved, time.Now()
	c.forecast()
	c.publish(spec.Running)
	if !c.saving { // what a killed process left half written
		for _, prefix := range []string{spec.StepPrefix, spec.FinalPrefix} {
			if err := c.Checkpoints.Clean(ctx, prefix); err != nil {
				c.Log.Warn("cannot remove what was left half written", "error", err)
			}
		}
	}
}

// adopt takes over what a manifest says of the run.
func (c *coordinator) adopt(m checkpoint.Manifest, book *ledger.Book) {
	c.version, c.book, c.queue = m.Step, book, newQueue(book, c.Spec.Epochs)
	c.steps = m.Step
	c.updates, c.evaluation = nil, nil
	c.leases = make(map[int64]*lease)
	c.final = false
	c.class = m.Class
	c.evaluated, c.loss = m.Evaluated, float64(m.Loss)
	c.skipped, c.skips = m.Skipped, 0
	c.metrics = make(map[string]float64)
	for _, name := range append([]string{"loss"}, c.Workload.Model.Metrics...) {
		if v, ok := m.Metrics[name]; ok {
			c.metrics[name] = v
		}
	}
	if c.clock.total == 0 {
		c.clock.total = time.Duration(m.Training * float64(time.Second))
		c.ranBefore = max(c.ranBefore, c.clock.total) // its status may be lost
	}
	c.message = ""
}
