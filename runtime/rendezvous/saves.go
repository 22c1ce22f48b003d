package rendezvous

import (
	"time"

	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/wire"
)

// exactTime is the time that the report of a checkpoint without its step waits for a
// report with it.
const exactTime = 2 * time.Second

// saves finds new checkpoints among the reports of agents. Several agents may see one
// folder, and only the agent of the rank that made a checkpoint knows its step.
type saves struct {
	by      map[string]map[session.Seat]bool // who has reported a checkpoint, by its name
	inexact map[string]time.Time             // reports without a step, by the checkpoint's name
}

func newSaves() saves {
	return saves{by: make(map[string]map[session.Seat]bool), inexact: make(map[string]time.Time)}
}

// add takes a report, and returns whether it is the first one with a step. A
// second report of the same agent is about a checkpoint that was made again.
func (s *saves) add(at session.Seat, c wire.Checkpoint, now time.Time) (first bool) {
	if _, waits := s.inexact[c.Name]; waits && c.Step >= 0 {
		delete(s.inexact, c.Name)
		s.by[c.Name][at] = true
		return true
	}
	if by := s.by[c.Name]; len(by) > 0 && !by[at] {
		by[at] = true
		return false
	}
	s.by[c.Name] = map[session.Seat]bool{at: true}
	if c.Step < 0 {
		s.inexact[c.Name] = now
		return false
	}
	return true
}

// take returns the checkpoints that have waited for their step for too long.
func (s *saves) take(now time.Time) (all []wire.Checkpoint) {
	for name, since := range s.inexact {
		if now.Sub(since) > exactTime {
			delete(s.inexact, name)
			all = append(all, wire.Checkpoint{Name: name, Step: -1})
		}
	}
	return all
}

// takeAll returns all checkpoints whose step is not known.
func (s *saves) takeAll() (all []wire.Checkpoint) {
	for name := range s.inexact {
		all = append(all, wire.Checkpoint{Name: name, Step: -1})
	}
	clear(s.inexact)
	return all
}
