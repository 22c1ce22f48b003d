package coordinator

import (
	"fmt"
	"maps"
	"time"

	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// setback is what went wrong with a unit so far. Lost workers are not counted:
// connections break and machines are preempted, whatever the records are.
type setback struct {
	tried   map[string]bool   // processes that met an error
	crashes map[string]string // processes whose engine failed, with the error
	since   time.Time         // of the first error
	until   time.Time         // the unit is not given out before
	pause   time.Duration     // the last one
}

// setbacks has the setbacks of the records of units until an update of them is committed: a
// term may end before, and with it the units.
type setbacks map[records]setback

// records are positions [start, end) of an epoch.
type records struct {
	epoch      int
	start, end int64
}

// mostSetbacks bounds the setbacks that are kept. The one whose last error is the oldest
// goes first.
const mostSetbacks = 1000

// findSetback returns the setback of the unit's records, or of some of them: the next term may cut
// an update into other units. Of several it is the one with the earliest error.
func (s setbacks) findSetback(u *unit) (found setback) {
	for at, b := range s {
		if u.update != nil && at.overlap(u.Contribution) && (found.tried == nil || b.since.Before(found.since)) {
			found = b
		}
	}
	return found
}

// keep notes a unit's setback. That of an evaluation ends with it.
func (s setbacks) keep(u *unit) {
	if u.update == nil {
		return
	}
	s[records{u.Epoch, u.Start, u.End}] = u.setback
	for len(s) > mostSetbacks {
		oldest := records{u.Epoch, u.Start, u.End}
		for at, b := range s {
			if b.until.Before(s[oldest].until) {
				oldest = at
			}
		}
		delete(s, oldest)
	}
}

// forget drops the setbacks of records that were committed.
func (s setbacks) forget(c spec.Contribution) {
	maps.DeleteFunc(s, func(at records, _ setback) bool { return at.overlap(c) })
}

func (r records) overlap(c spec.Contribution) bool {
	return r.epoch == c.Epoch && r.start < c.End && c.Start < r.end
}

// Pauses before a unit that met an error is given out again.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// checksumPatience is how long records with a wrong checksum are read again: a
// damaged file does not mend itself.
const checksumPatience = 5 * time.Second

// How often an error counts as one of a single process or machine.
const (
	enough   = 2 // processes, or machines, that prove a fault of the run
	maxUnfit = 3 // times that a worker may report that it cannot work
)

// isFor reports whether a member may have the unit now: not in the pause after an
// error, and not where the member has met one itself as long as another has not.
func (u *unit) isFor(m *member, members map[int]*member) bool {
	if u.setback.tried == nil {
		return true
	}
	if time.Now().Before(u.setback.until) {
		return false
	}
	if !u.setback.tried[m.Process()] {
		return true
	}
	for _, other := range members {
		if !other.Leaving() && !u.setback.tried[other.Process()] {
			return false
		}
	}
	return true
}

// evidence is what workers have reported that may prove that the run would fail
// again, see spec.Reasons.
type evidence struct {
	patience  time.Duration     // with data that cannot be read
	setbacks  setbacks          // of records that are not committed
	wrong     map[string]string // machines that found a wrong checksum, with the error
	computing map[int]*unit     // what a worker computed when its connection was lost, by index
	unfit     map[int]unfitness // by index of the worker
	lacking   map[int]bool      // workers whose program lacks what the run needs
	newest    string            // error of a worker, until a worker gets on
}

func newEvidence(patience time.Duration) evidence {
	return evidence{patience: patience, setbacks: make(setbacks), wrong: make(map[string]string), computing: make(map[int]*unit),
		unfit: make(map[int]unfitness), lacking: make(map[int]bool)}
}

// recall returns the setback of a unit that met an error: its own, the one of its records
// in an earlier term, or a new one.
func (e *evidence) recall(u *unit) *setback {
	if u.setback.tried == nil {
		u.setback = e.setbacks.findSetback(u)
	}
	if u.setback.tried == nil {
		u.setback = setback{tried: make(map[string]bool), crashes: make(map[string]string), since: time.Now()}
	}
	return &u.setback
}

// failed notes an error that a member reports of a unit. The unit is tried again
// until the patience ends, or until there is enough evidence.
func (e *evidence) failed(u *unit, m *member, fault spec.Fault, why string) error {
	b, now, patience := e.recall(u), time.Now(), e.patience
	b.tried[m.Process()] = true
	b.pause = min(max(2*b.pause, firstRetry), lastRetry)
	b.until = now.Add(b.pause)
	e.setbacks.keep(u)
	e.newest = fmt.Sprintf("%s cannot be computed, and are tried again: %s", u.describe(), why)
	switch fault {
	case spec.FaultEngine:
		return e.crashed(u, m.Process(), why)
	case spec.FaultChecksum:
		if err := e.wrongData(m.Hello.Machine, why); err != nil {
			return err
		}
		patience = min(patience, checksumPatience)
	}
	if waited := now.Sub(b.since); waited > patience {
		return session.Stopped{Cause: spec.CauseData, Text: fmt.Sprintf("%s cannot be computed, tried for %v: %s", u.describe(), waited.Round(time.Second), why)}
	}
	return nil
}

// crashed notes that the engine of a process failed on a unit. Two processes
// prove that it would fail again.
func (e *evidence) crashed(u *unit, process, why string) error {
	b := e.recall(u) // the unit stays as it is: see recut
	b.crashes[process] = why
	e.setbacks.keep(u)
	if len(b.crashes) < enough {
		return nil
	}
	return session.Fail(spec.ReasonEngine, "%s cannot be computed, as %d processes found: %s", u.describe(), len(b.crashes), why)
}

// lose notes what a worker computed when its connection was lost.
func (e *evidence) lose(m *member) { e.computing[m.Index] = m.computes() }

// take notes that a worker came back. Its launcher may report that the process
// before it crashed: that counts for the unit of that process.
func (e *evidence) take(m *session.Member) error {
	u := e.computing[m.Index]
	delete(e.computing, m.Index)
	e.newest = ""
	if u == nil || m.Hello.Crashed == "" || u.report != nil {
		return nil
	}
	return e.crashed(u, "before "+m.Process(), "the worker crashed: "+m.Hello.Crashed)
}

// wrongData notes that a machine found a wrong checksum. Two machines prove that
// the data themselves are wrong.
func (e *evidence) wrongData(machine, why string) error {
	if e.wrong[machine] = why; len(e.wrong) < enough {
		return nil
	}
	return session.Fail(spec.ReasonChecksum, "the data differ from the planned ones, as %d machines found: %s", len(e.wrong), why)
}

// unable notes that a worker cannot work, and returns how its process must end.
// A worker that the run needs has as much time as the patience to find its data.
func (e *evidence) unable(index int, f wire.Failure, needed bool) spec.End {
	e.newest = fmt.Sprintf("worker %d cannot work: %s", index, f.Error)
	u := e.unfit[index]
	if u.times == 0 {
		u.since = time.Now()
	}
	u.times++
	e.unfit[index] = u
	if f.Fault == spec.FaultProgram {
		e.lacking[index] = true
	}
	if u.times < maxUnfit || needed && f.Fault == spec.FaultData && time.Since(u.since) < e.patience {
		return spec.EndError
	}
	return spec.EndGivenUp
}

// unfitness counts how often a worker reported that it cannot work.
type unfitness struct {
	times int
	since time.Time // of the first time
}

// computes returns the unit that a member works on: the unit of its last
// heartbeat, or of its oldest current lease. nil: it has none.
func (m *member) computes() *unit {
	if at := m.Heartbeat(); at != nil {
		if l := m.leases[at.Lease]; l != nil {
			return l.unit
		}
	}
	var oldest *lease
	for _, l := range m.leases {
		if l.current && (oldest == nil || l.id < oldest.id) {
			oldest = l
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.unit
}
