package coordinator

import "github.com/stokehq/stoke/runtime/engine"

// synchronous updates follow one another: each is computed with just the
// version that the one before it made, by all workers together.
type synchronous struct{ parameterServers }

func (s *synchronous) now(open []*update) offer {
	if len(open) == 0 {
		return offer{more: true}
	}
	return offer{units: open[0].units}
}

// ahead is the update after the current one.
func (s *synchronous) ahead(open []*update) offer {
	switch len(open) {
	case 0:
		return offer{}
	case 1:
		return offer{more: true}
	}
	return offer{units: open[1].units}
}

func (s *synchronous) left(open []*update) int {
	if len(open) == 0 {
		return 0
	}
	return countOpen(open[0].units)
}

func (s *synchronous) current(u *update, open []*update) bool { return len(open) > 0 && u == open[0] }

func (s *synchronous) whole(open []*update) *update {
	if len(open) > 0 && open[0].missing == 0 {
		return open[0]
	}
	return nil
}

// maxEarly is how many values a contribution has at most whose server is let
// wait for it: about as many as travel while the coordinator is asked.
const maxEarly = 4 << 20

// early updates are those of one server, which commits by itself.
func (s *synchronous) early() bool {
	return len(s.options.Servers) == 1 && engine.Length(s.options.Workload.Vars) <= maxEarly
}

// awaits is false: with its push a worker has asked the servers for the next
// version.
func (s *synchronous) awaits(*update, int) bool { return false }
