package coordinator

import (
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// synchronous updates follow one another: each is computed with just the
// version that the one before it made, by all workers together.
type synchronous struct{ parameterServers }

func (s *synchronous) now(open []*update, workers int) offer {
	if len(open) == 0 {
		return offer{more: true}
	}
	return offer{units: window(open[0], workers)}
}

// ahead is the update after the current one.
func (s *synchronous) ahead(open []*update, workers int) offer {
	switch len(open) {
	case 0:
		return offer{}
	case 1:
		return offer{more: true}
	}
	return offer{units: window(open[1], workers)}
}

// window is the part of an update that may be computed now. The servers add
// its units up in their order and keep apart what comes before its turn: of
// this there is never more than one push per worker, and one.
func window(u *update, workers int) []*unit {
	return u.units[:min(len(u.units), u.folded+workers+1)]
}

func (s *synchronous) left(open []*update) int {
	if len(open) == 0 {
		return 0
	}
	return countOpen(open[0].units)
}

func (s *synchronous) current(u *update, open []*update) bool { return len(open) > 0 && u == open[0] }

func (s *synchronous) exact() bool { return true }

func (s *synchronous) whole(open []*update) *update {
	if len(open) > 0 && open[0].missing == 0 {
		return open[0]
	}
	return nil
}

// maxEarly is how many values a contribution has at most whose server is let
// wait for it: about as many as travel while the coordinator is asked.
const maxEarly = 4 << 20

// early updates are small, so that nothing is folded on the way, and of one
// server, which commits by itself.
func (s *synchronous) early(u *update, workers int) bool {
	return len(s.options.Servers) == 1 && len(u.units) <= workers+1 && engine.Length(s.options.Workload.Vars) <= maxEarly
}

// awaits is false: with its push a worker has asked the servers for the next
// version.
func (s *synchronous) awaits(*update, int) bool { return false }

// fold makes the servers add up what has been reported at the front of an
// update that reaches beyond its window, which moves on by that. The commit
// names what is left.
func (s *synchronous) fold(at point, u *update, workers int) error {
	f := wire.Fold{Term: at.term, Version: at.version}
	if len(window(u, workers)) < len(u.units) {
		for ; u.folded < len(u.units) && u.units[u.folded].report != nil; u.folded++ {
			if t := u.units[u.folded]; t.pushes() {
				f.IDs = append(f.IDs, t.id)
			}
		}
	}
	return s.askFold(f)
}
