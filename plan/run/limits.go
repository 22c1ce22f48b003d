package run

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/eval"
)

// limit is the number of slots for operations of a kind, and the operations
// that wait for one. A free slot is given to the first of them.
type limit struct {
	most, used int
	waiting    []int32
}

// turn is how far an operation has come on its way through its limits.
type turn struct {
	limits []*limit
	held   int // so many of them, the first ones
}

// admit takes places for an operation, one limit after the other. If one has
// none left, the operation waits there, and counts as ready again once it has
// the place; false says so. An operation never waits for an earlier limit than
// the limits that it holds slots of, which rules out a deadlock. p.mu is held.
func (p *pool) admit(i int32) bool {
	t := p.turns[i]
	for t != nil && t.held < len(t.limits) {
		l := t.limits[t.held]
		if l.used == l.most {
			l.waiting = append(l.waiting, i)
			return false
		}
		l.used++
		t.held++
	}
	return true
}

// leave gives the operation's slots to waiting operations. p.mu is held.
func (p *pool) leave(i int32) {
	t := p.turns[i]
	if t == nil {
		return
	}
	for _, l := range t.limits[:t.held] {
		if len(l.waiting) == 0 {
			l.used--
			continue
		}
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		p.turns[next].held++
		p.ready = append(p.ready, next)
	}
	delete(p.turns, i)
}

// queue finds out which limits an operation falls under.
func (p *pool) queue(i int32) {
	op := p.ops[i]
	if op.Kind == plan.Barrier || op.Kind == plan.Verify {
		return
	}
	slots := p.x.slots(op)
	if len(slots) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &turn{}
	for _, s := range slots {
		l := p.limits[s.Name]
		if l == nil {
			l = &limit{most: s.Most}
			p.limits[s.Name] = l
		}
		t.limits = append(t.limits, l)
	}
	p.turns[i] = t
}

// slots are the limits of an operation by name.
func (x *runner) slots(op plan.Op) []plan.Slot {
	c := x.plan.Changes[op.Change]
	return x.req.Limits.Slots(x.req.Catalogue, c.Provider, c.Addr, func() cty.Value {
		switch {
		case op.Kind == plan.Remove:
			return c.Before
		case c.Config != cty.NilVal:
			return c.Config
		}
		config := cty.NilVal
		x.ev.Do(func(t *eval.Task) {
			if inst := x.ev.Instance(t, c.Addr); inst != nil {
				if v, _, ok := inst.Config(t); ok {
					config, _, _ = lang.Unmark(v)
				}
			}
		})
		return config
	})
}
