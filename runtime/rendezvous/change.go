package rendezvous

import (
	"fmt"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// change is a voluntary change of the members, which waits for a checkpoint.
type change struct {
	workers []int     // indices that the next generation would have; nil: there is no change
	since   time.Time // when they were last others
	asked   time.Time // when the change was first seen: a checkpoint after that lets it happen
	saved   bool      // there was one
	text    string    // for people
}

// lookForChange interrupts the generation for a change of the members, once they
// have settled and the program has saved a checkpoint, or has not for too long.
func (r *rendezvous) lookForChange(g *generation) {
	if len(g.parts) < g.members {
		return // it is being adopted
	}
	has, would := r.workers(g)
	c, now := &r.change, r.now()
	if slices.Equal(has, would) {
		*c = change{}
		return
	}
	if !slices.Equal(c.workers, would) {
		if c.workers == nil {
			c.asked, c.saved = now, false
		}
		c.workers, c.since = would, now
		latest := (r.ChangeTime - now.Sub(c.asked)).Round(time.Second)
		c.text = fmt.Sprintf("%d workers become %d after the next checkpoint, at the latest in %v", len(has), len(would), latest)
		r.session.Note(spec.Event{Type: spec.EventProgram, Message: c.text})
	}
	r.session.Explain(c.text)
	if now.Sub(c.since) < r.SettleTime {
		return
	}
	if c.saved || now.Sub(c.asked) >= r.ChangeTime {
		r.session.Explain("")
		r.halt(fmt.Sprintf("%d workers become %d", len(has), len(would)))
	}
}

// workers returns the indices of the generation's workers, and of the workers that
// the next generation would have: running and ready ones.
func (r *rendezvous) workers(g *generation) (has, would []int) {
	for _, at := range g.places() {
		if at.Role != wire.RoleWorker {
			continue
		}
		has = append(has, at.Index)
		if at.Index < r.Spec.Worker.Replicas {
			would = append(would, at.Index)
		}
	}
	for at, a := range r.agents {
		if at.Role == wire.RoleWorker && a.ready != nil && g.parts[at] == nil && at.Index < r.Spec.Worker.Replicas {
			would = append(would, at.Index)
		}
	}
	slices.Sort(would)
	return has, would
}

var _ session.Work = (*rendezvous)(nil)
