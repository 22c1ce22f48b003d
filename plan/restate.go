package plan

import (
	"slices"

	"github.com/stokehq/stoke/plan/state"
)

// RelatesOtherwise reports whether the state has other dependencies for an
// object, or another order of its replacement. Both affect the order of later
// destructions.
func (c *Change) RelatesOtherwise(stored *state.Object) bool {
	return stored != nil && (!slices.Equal(stored.Dependencies, c.Dependencies) || stored.CreateBeforeDestroy != c.CreateBeforeDestroy)
}

// Restates reports whether an object stays as it is while what the state says
// about how it relates to others does not.
func (c *Change) Restates(stored *state.Object) bool {
	return c.Action == NoOp && !c.Outdated && c.Deposed == "" && c.RelatesOtherwise(stored)
}

// Restates reports whether a plan that changes nothing has news for the state
// all the same: what it read, or how objects relate.
func (p *Plan) Restates(s *state.State) bool {
	if p.Mode == Destroy {
		return len(p.Refreshed) > 0 // what is gone already
	}
	if p.Mode != Normal {
		return false
	}
	return len(p.Refreshed) > 0 || slices.ContainsFunc(p.Changes, func(c *Change) bool { return c.Restates(s.Current(c.Addr)) })
}
