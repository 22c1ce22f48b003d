package coordinator

// schedule decides when units are computed and updates committed. It does not
// know where the parameters lie. open are the open updates, the oldest first.
type schedule interface {
	// computable offers the units that can be computed with the present version,
	// in the order in which they are wanted.
	computable(open []*update) offer
	// prefetchable offers units whose records may be read before their version
	// exists.
	prefetchable(open []*update) offer
	// unassigned returns how many units could be handed out before the next
	// commit.
	unassigned(open []*update) int
	// hasParameters reports whether a member with a lease on a unit of u can get
	// the parameters that it needs.
	hasParameters(u *update, open []*update) bool
	// exactVersion reports whether leases are computed with just the version
	// that they name; else with that or a later one.
	exactVersion() bool
	// committable returns the update that is to be committed next; nil: none can.
	committable(open []*update) *update
	// waitsForCommit reports whether the worker waits for the commit of this
	// update.
	waitsForCommit(u *update, worker int) bool
}

// offer is some units, and whether another update may be opened where none of
// them is left.
type offer struct {
	units []*unit
	more  bool
}

// newSchedule returns the schedule of updates that follow one another, or of
// those that do not.
func newSchedule(asynchronously bool) schedule {
	if asynchronously {
		return asynchronous{}
	}
	return synchronous{}
}
