package coordinator

// synchronous updates follow one another: each is computed with just the
// version that the one before it made, by all workers together.
type synchronous struct{}

func (synchronous) computable(open []*update) offer {
	if len(open) == 0 {
		return offer{more: true}
	}
	return offer{units: open[0].units}
}

// prefetchable is the update after the current one.
func (synchronous) prefetchable(open []*update) offer {
	switch len(open) {
	case 0:
		return offer{}
	case 1:
		return offer{more: true}
	}
	return offer{units: open[1].units}
}

func (synchronous) unassigned(open []*update) int {
	if len(open) == 0 {
		return 0
	}
	return countOpen(open[0].units)
}

func (synchronous) hasParameters(u *update, open []*update) bool {
	return len(open) > 0 && u == open[0]
}

func (synchronous) exactVersion() bool { return true }

func (synchronous) committable(open []*update) *update {
	if len(open) > 0 && open[0].missing == 0 {
		return open[0]
	}
	return nil
}

// waitsForCommit is false: with its push a worker has asked the servers for the
// next version.
func (synchronous) waitsForCommit(*update, int) bool { return false }
