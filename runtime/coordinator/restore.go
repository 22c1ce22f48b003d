package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
)

// usable reads a checkpoint's manifest and checks it against the run.
func (c *coordinator) usable(name string) (Manifest, *ledger.Book, error) {
	m, err := c.store.read(name)
	if err != nil {
		return m, nil, err
	}
	if m.Run != c.hash || m.Records != c.records() {
		return m, nil, errors.New("it belongs to another run")
	}
	if !same(m.Model, c.Workload.Model) || !same(m.Vars, c.Workload.Vars) {
		return m, nil, errOtherModel
	}
	if c.void(m) {
		return m, nil, errors.New("the run went back behind it: it is not of its history")
	}
	book, err := ledger.Load(m.Records, m.Whole, m.Ledger)
	return m, book, err
}

// errOtherModel is about a checkpoint that the trainer's model cannot go on
// from.
var errOtherModel = errors.New("its model has other layers than this stoke-trainer's")

// same reports whether two values are the same as data.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// void reports whether the run has gone back behind a checkpoint since it was
// cut: then its updates are no part of the run's history.
func (c *coordinator) void(m Manifest) bool {
	for _, r := range c.journal.restores {
		if r.term > spec.TermOf(m.Term, m.Generation) && r.version < m.Step {
			return true
		}
	}
	return false
}

// finished looks for the final model of a run whose end nobody was told.
func (c *coordinator) finished() bool {
	m, book, err := c.usable(c.store.finalName())
	if err != nil || !c.intact(c.store.finalName()) {
		return false
	}
	return book.Epochs() >= c.Spec.Epochs || c.Spec.MaxSteps > 0 && m.Step >= int64(c.Spec.MaxSteps)
}

// conclude makes the final model's cut the run's own state, and its end.
func (c *coordinator) conclude(m Manifest) error {
	book, err := ledger.Load(m.Records, m.Whole, m.Ledger)
	if err != nil {
		return err
	}
	c.note(spec.Event{Type: spec.EventCheckpoint, Epoch: book.Epochs(), Message: fmt.Sprintf("step %d", m.Step)})
	if m.Term != c.term || c.book == nil {
		c.adopt(m, book)
	}
	c.updates, c.saved, c.done = nil, m.Step, true
	return nil
}

// restore brings the parameters to the newest checkpoint that is whole, or to
// the start.
func (c *coordinator) restore(ctx context.Context) error {
	c.clock.pause()
	c.message = "connecting to the parameter servers"
	c.publish(spec.Running)
	names := c.store.names()
	slices.Reverse(names)
	for _, name := range append(names, "") { // "" = the start
		m := Manifest{Evaluated: -1}
		book := ledger.NewBook(c.records())
		if name != "" {
			var err error
			if m, book, err = c.usable(name); errors.Is(err, errOtherModel) {
				// To begin anew would throw away what was trained.
				return stopped{spec.CauseTrainer, fmt.Sprintf("checkpoint %s cannot be used: %v; use the one that it was trained with", name, err)}
			} else if err != nil {
				c.Log.Error("checkpoint is not usable", "checkpoint", name, "error", err)
				continue
			}
		}
		err := c.restoreFrom(ctx, name, m)
		if errors.As(err, new(damaged)) {
			c.damaged[name] = m.Checksum
			c.Log.Error("checkpoint is not usable", "checkpoint", name, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		c.rewind(m, book)
		return nil
	}
	return fail("the parameter servers could not be initialised; see their logs")
}

// restoreFrom restores one checkpoint, again and again while what holds the
// parameters is lost on the way. Each try is a term of its own.
func (c *coordinator) restoreFrom(ctx context.Context, name string, m Manifest) error {
	from := cut{recipe: c.recipe(c.Spec.Worker.Replicas), files: m.Files, initial: c.initial}
	if name != "" {
		from.folder = c.store.path(name)
	}
	for {
		if err := c.strategy.connect(ctx); err != nil {
			return err
		}
		if c.spoken {
			if err := c.begin(); err != nil {
				return err
			}
		}
		c.spoken, c.version = true, m.Step
		c.note(spec.Event{Type: spec.EventRestore, Message: from.folder})
		if err := c.journal.sync(); err != nil { // what is void is known before anything new is made
			return full(err)
		}
		from.point = c.at()
		err := c.strategy.restore(from)
		if !errors.Is(err, errLost) {
			return err
		}
		c.Log.Warn("parameters lost while they were restored", "error", err)
	}
}

// initial is the whole vector before the first update.
func (c *coordinator) initial() ([]float32, error) {
	v := make([]float32, engine.Length(c.Workload.Vars))
	return v, c.Workload.Model.Init(c.Spec.Seed, v)
}

// rewind sets the run's own state to the cut that the parameters are at.
func (c *coordinator) rewind(m Manifest, book *ledger.Book) {
	c.adopt(m, book)
	for _, member := range c.members {
		clear(member.leases)
		c.applied(member) // one may wait for what is not going to come
	}
	c.saved, c.kept, c.keptAt = m.Step, m.Step, time.Now()
	c.forecast()
	c.publish(spec.Running)
	if !c.saving {
		if err := c.store.clean(); err != nil {
			c.Log.Warn("cannot remove what was left half written", "error", err)
		}
	}
}

// adopt takes over what a manifest says of the run.
func (c *coordinator) adopt(m Manifest, book *ledger.Book) {
	c.version, c.book, c.queue = m.Step, book, newQueue(book, c.Spec.Epochs)
	c.steps = m.Step
	c.updates, c.evaluation = nil, nil
	c.leases = make(map[int64]*lease)
	c.final = false
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
	}
	c.message = ""
}
