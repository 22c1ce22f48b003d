package coordinator

import "math"

// asynchronous updates are one push each, computed with the version that the
// worker had and committed as they come. A worker goes on once its own is.
type asynchronous struct{}

func (asynchronous) computable(open []*update) offer {
	var all []*unit
	for _, u := range open {
		all = append(all, u.units...)
	}
	return offer{units: all, more: true}
}

func (asynchronous) prefetchable([]*update) offer { return offer{} }

func (asynchronous) unassigned([]*update) int { return math.MaxInt }

func (asynchronous) hasParameters(*update, []*update) bool { return true }

func (asynchronous) exactVersion() bool { return false }

func (asynchronous) committable(open []*update) *update {
	for _, u := range open {
		if u.missing == 0 {
			return u
		}
	}
	return nil
}

func (asynchronous) waitsForCommit(u *update, worker int) bool { return u.units[0].Worker == worker }
