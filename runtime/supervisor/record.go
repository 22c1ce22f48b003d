package supervisor

import (
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/run"
)

// record writes down how the processes stand, where that has changed. It is for
// people: a disk that is full must not end the run here.
func (c *processes) record() {
	now := make([]run.Role, 0, len(c.roles))
	for _, r := range c.roles {
		ended := c.over || r.name == Worker && r.index >= c.wanted
		line := run.Role{Name: run.RoleName(r.name, r.index), Phase: run.RoleWaiting, Restarts: max(0, r.starts-1), Since: r.started, Reason: r.reason}
		switch {
		case r.process != nil:
			line.Phase = run.RoleRunning
		case r.givenUp:
			line.Phase = run.RoleGivenUp
		case ended:
			line.Phase = run.RoleEnded
		}
		if r.process == nil && !r.endedAt.IsZero() {
			line.Since = r.endedAt
		}
		line.Since = line.Since.Truncate(time.Millisecond)
		now = append(now, line)
	}
	if slices.Equal(now, c.recorded) {
		return
	}
	c.recorded = now
	if err := run.WriteJSON(c.Folder.Roles(), now); err != nil {
		c.Log.Warn("cannot record the processes", "error", err)
	}
}
