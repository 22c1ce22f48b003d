package coordinator

import (
	"math"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// commit makes the update part of the parameters: every server sums up exactly
// these contributions, then, once all of them are known to be finite, every
// server applies them.
func (c *coordinator) commit(u *update) error {
	var ids []int64
	var taken []spec.Contribution
	var weight, loss float64
	finite := true
	staleness := int64(0)
	for i, t := range u.tasks {
		if i >= u.folded {
			ids = append(ids, t.id)
		}
		taken = append(taken, t.Contribution)
		weight += t.report.Weight
		finite = finite && t.pushes()
		if finite {
			loss += *t.report.Loss
		}
		staleness = max(staleness, c.version-t.report.Version)
	}
	norm, finite, err := c.apply(u, ids, taken, weight, finite)
	if err != nil {
		return err
	}
	c.version++
	c.updates = slices.DeleteFunc(c.updates, func(o *update) bool { return o == u })
	c.announce(u)
	if err := c.book.Commit(taken...); err != nil {
		return err
	}
	e := spec.Event{Type: spec.EventUpdate, Epoch: u.Epoch, Records: u.End - u.Start, Staleness: staleness, Taken: taken}
	if finite {
		c.loss, c.skips = loss/weight, 0
		e.Loss, e.Norm = spec.Number(c.loss), spec.Number(norm)
	} else {
		c.skipped++
		c.skips++
		e.Skipped = true
	}
	c.note(e)
	if c.book.Whole(u.Epoch) {
		c.note(spec.Event{Type: spec.EventEpoch, Epoch: u.Epoch, Records: c.records()})
	}
	c.publish(spec.Running)
	if c.skips >= maxSkips {
		return fail("loss or gradients were not finite in %d updates in a row: lower the learning rate (%g)", c.skips, c.Spec.LearningRate)
	}
	return nil
}

// apply brings the update into the parameters of every server, or of none.
func (c *coordinator) apply(u *update, ids []int64, taken []spec.Contribution, weight float64, finite bool) (norm float64, applied bool, err error) {
	recipe := c.recipe(u.workers)
	if finite {
		p := wire.Prepare{Generation: c.generation, Version: c.version, IDs: ids, Discard: c.discard, Weight: weight}
		if len(c.Servers) == 1 {
			p.Alone = &recipe // nobody else is to be asked
		}
		answers, err := c.servers.ask(wire.TypePrepare, p)
		if err != nil {
			return 0, false, err
		}
		c.discard = c.discard[:0]
		for _, a := range answers {
			norm += a.SquaredNorm
			finite = finite && a.Finite
		}
		if norm = math.Sqrt(norm); p.Alone != nil {
			return norm, finite, nil
		}
	} else {
		c.discard = append(c.discard, ids...) // some of them were pushed
	}
	_, err = c.servers.ask(wire.TypeApply, wire.Apply{
		Generation: c.generation, Version: c.version, Skip: !finite, Scale: 1, Recipe: recipe, Taken: taken,
	})
	return norm, finite, err
}

// fold makes the servers add up what has been reported at the front of an
// update that reaches beyond its window, which moves on by that.
func (c *coordinator) fold(u *update) error {
	if len(c.window(u)) == len(u.tasks) && len(c.discard) == 0 {
		return nil // the commit names what is left
	}
	f := wire.Fold{Generation: c.generation, Version: c.version, Discard: c.discard}
	if !c.Spec.Asynchronous && len(c.window(u)) < len(u.tasks) {
		for ; u.folded < len(u.tasks) && u.tasks[u.folded].report != nil; u.folded++ {
			if t := u.tasks[u.folded]; t.pushes() {
				f.IDs = append(f.IDs, t.id)
			}
		}
	}
	if len(f.IDs) == 0 && len(f.Discard) == 0 {
		return nil
	}
	if _, err := c.servers.ask(wire.TypeFold, f); err != nil {
		return err
	}
	c.discard = c.discard[:0]
	return nil
}

// announce tells those who wait for the commit: asynchronously the one whose
// push it was, else those who hold a lease on what is now the current update.
func (c *coordinator) announce(u *update) {
	if c.Spec.Asynchronous {
		if m := c.members[u.tasks[0].Worker]; m != nil {
			c.applied(m)
		}
		return
	}
	now := time.Now()
	for _, m := range c.members {
		if c.computable(m) == 0 {
			continue
		}
		for _, l := range m.held {
			l.given = now
		}
		c.applied(m)
	}
}
