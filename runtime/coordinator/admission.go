package coordinator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// departures ends the membership of surplus members, and of members whose process ends.
// In an all-reduce the last members with the parameters stay until another member has
// fetched them. The last member of all stays until a checkpoint is saved.
type departures struct{ *coordinator }

// Keeps reports whether a surplus member stays for now.
func (c *coordinator) Keeps(at session.Seat) bool {
	return at.Role == wire.RoleWorker && c.surplus && departures{c}.last()
}

// isGoing reports whether a member has left, or will leave.
func (d departures) isGoing(m *member) bool {
	return m.Leaving() || m.departs || m.Index >= d.Spec.Worker.Replicas
}

// last reports whether all present holders of the parameters are about to go.
func (d departures) last() bool {
	if d.Spec.Strategy != spec.StrategyAllReduce {
		return false
	}
	holders := 0
	for _, m := range d.members {
		if !d.serves(m.Member) || m.Leaving() {
			continue
		}
		if !d.isGoing(m) {
			return false
		}
		holders++
	}
	return holders > 0
}

// saveAgain is the time after which the parameters of the last members are saved again,
// where the checkpoint failed. The members wait for so long as they may.
const saveAgain = time.Second

// letGo dismisses members, or saves a checkpoint for the last ones: it then reports true.
// It is called between two requests to the holders of the parameters.
func (d departures) letGo(ctx context.Context) (saves bool) {
	departing, leaving := false, false
	for _, m := range d.members {
		departing = departing || m.departs && !m.Leaving()
		leaving = leaving || m.Leaving() && d.serves(m.Member)
	}
	if !d.surplus && !departing {
		return false
	}
	if d.isMade() { // the holders are one update ahead of the book
		return false
	}
	if d.save.writing { // one of them may keep the parameters of the checkpoint
		return false
	}
	last := d.last()
	if d.surplus && !last {
		d.surplus = false
		d.session.DismissSurplus()
	}
	if departing && last && leaving { // without it, another group is formed
		return false
	}
	if departing && last && d.version > 0 && d.save.written != d.version {
		if d.save.cut == d.version && time.Since(d.save.cutAt) < saveAgain { // the checkpoint failed
			return false
		}
		d.checkpoint(ctx, false)
		return true
	}
	for _, m := range d.members {
		if m.departs && !m.Leaving() {
			d.session.Dismiss(m.Member, wire.Leave{End: spec.EndAsked, Reason: "it was asked to end"})
		}
	}
	return false
}

// admitNewcomers lets newcomers that have caught up become holders of the parameters where
// that costs the least: no unit of the next update is computed yet. Where too few holders are
// left, all newcomers become holders at once.
func admitNewcomers(ctx context.Context, c *coordinator) bool {
	holders, begun := 0, c.evaluation != nil
	var others []*session.Member
	for _, m := range c.members {
		switch {
		case (departures{c}).isGoing(m):
		case c.parameters.serves(m.Member):
			holders++
		default:
			others = append(others, m.Member)
		}
	}
	urgent := holders < c.Spec.Worker.MinReplicas
	from := restoreSource{point: c.currentPoint(), recipe: recipeOf(&c.Spec, c.Spec.Worker.Replicas)}
	names := c.parameters.newcomers(ctx, from, others, urgent)
	if len(names) == 0 {
		return false
	}
	if len(c.updates) > 0 {
		begun = begun || c.updates[0].missing < len(c.updates[0].units) || c.isMade()
	}
	if begun && !urgent {
		return false
	}
	c.parameters.drop(fmt.Errorf("%s joins", strings.Join(names, ", ")))
	return true
}
