package coordinator

import "math"

// asynchronous updates are one push each, computed with whatever version was
// there and committed as they come. A worker goes on once its own is.
type asynchronous struct{ parameterServers }

func (a *asynchronous) now(open []*update) offer {
	var all []*unit
	for _, u := range open {
		all = append(all, u.units...)
	}
	return offer{units: all, more: true}
}

func (a *asynchronous) ahead([]*update) offer { return offer{} }

func (a *asynchronous) left([]*update) int { return math.MaxInt }

func (a *asynchronous) current(*update, []*update) bool { return true }

func (a *asynchronous) whole(open []*update) *update {
	for _, u := range open {
		if u.missing == 0 {
			return u
		}
	}
	return nil
}

func (a *asynchronous) early() bool { return false }

func (a *asynchronous) awaits(u *update, worker int) bool { return u.units[0].Worker == worker }
