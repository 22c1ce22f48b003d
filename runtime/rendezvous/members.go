package rendezvous

import (
	"fmt"
	"strings"

	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Join takes an agent in. Where the process before it took part in the generation,
// its ranks are lost with it.
func (r *rendezvous) Join(m *session.Member) (taken bool, err error) {
	at := m.Seat()
	r.agents[at] = &agent{Member: m}
	if g := r.current; g != nil {
		g.join(at, m.Process())
	}
	return true, nil
}

// Keeps reports whether an agent's ranks take part in the generation.
func (r *rendezvous) Keeps(at session.Seat) bool {
	return r.current != nil && r.current.parts[at] != nil && !r.current.parts[at].isOver()
}

// Leave takes an agent out. Its ranks may still run: see part.lost.
func (r *rendezvous) Leave(m *session.Member) error {
	at := m.Seat()
	if a := r.agents[at]; a == nil || a.Member != m {
		return nil
	}
	delete(r.agents, at)
	if g := r.current; g != nil {
		g.leave(at, r.now())
	}
	return nil
}

// Unable decides about an agent that cannot work: another process may.
func (r *rendezvous) Unable(session.Inability) (wire.Leave, error) {
	return wire.Leave{End: spec.EndError}, nil
}

// Decode reads a message of an agent.
func (r *rendezvous) Decode(m *wire.Message) (any, error) {
	decode := func(v any) (any, error) { return v, m.Decode(v) }
	switch m.Type {
	case wire.TypeReady:
		return decode(new(wire.Ready))
	case wire.TypeRunning:
		return decode(new(wire.Running))
	case wire.TypeResult:
		return decode(new(wire.Result))
	case wire.TypeObserved:
		return decode(new(wire.Observed))
	}
	return nil, fmt.Errorf("unexpected %s", m.Type)
}

// Receive takes a message of an agent.
func (r *rendezvous) Receive(m *session.Member, message any) error {
	at := m.Seat()
	a := r.agents[at]
	if a == nil || a.Member != m {
		return nil
	}
	switch message := message.(type) {
	case *wire.Ready:
		r.takeReady(at, a, message)
	case *wire.Running:
		r.takeRunning(at, a, message)
	case *wire.Result:
		r.takeResult(at, a, message)
	case *wire.Observed:
		r.takeObserved(at, message)
	}
	return nil
}

// takeReady notes that an agent runs no generation. Where the agent got wire.Begin on
// an earlier connection, it has not begun, and never will. On the same connection,
// the two messages have crossed.
func (r *rendezvous) takeReady(at session.Seat, a *agent, m *wire.Ready) {
	if a.Leaving() {
		return
	}
	if g := r.current; g != nil {
		if p := g.parts[at]; p != nil && p.result == nil && m.Began < g.number {
			if p.told == a.Member {
				return
			}
			p.gone = true
		}
	}
	a.ready, r.listed = m, r.now()
}

// takeRunning notes that an agent runs a generation, and halts any other one than the
// present one.
func (r *rendezvous) takeRunning(at session.Seat, a *agent, m *wire.Running) {
	a.ready = nil
	g := r.adopt(m.Begin)
	if g == nil || g.number != m.Generation {
		r.sendHalt(a, m.Generation, "another generation has followed")
		return
	}
	p := g.part(at)
	if p.process == "" || p.process == a.Process() {
		p.gone = false // its ranks run: it was away for too long only
	}
	p.begin, p.process, p.lost = m.Begin, a.Process(), noTime
	if g.ending != "" {
		r.haltPart(a, p)
	}
}

// takeResult notes how an agent's processes ended.
func (r *rendezvous) takeResult(at session.Seat, a *agent, m *wire.Result) {
	g := r.adopt(m.Begin)
	if g == nil || g.number != m.Generation {
		return // it is known, and concluded
	}
	p := g.part(at)
	if p.result == nil {
		p.begin, p.result = m.Begin, m
		r.Log.Info("ended", "member", at, "generation", m.Generation, "cause", m.Cause, "text", m.Text)
	}
}

// adopt returns the present generation. Where the history does not have a
// generation that an agent runs, because it was lost with its folder, that becomes
// the present one.
func (r *rendezvous) adopt(b wire.Begin) *generation {
	if b.Generation > r.past.number {
		noteUntold(r, b.Resume, []string{b.Resume})
		r.note(event{number: b.Generation, restarts: b.Restarts, text: "is adopted"})
		r.current = newGeneration(b.Generation, b.Groups, r.now())
	}
	return r.current
}

// sendHalt has an agent end its processes of a generation.
func (r *rendezvous) sendHalt(a *agent, generation int, reason string) {
	r.session.UseTerm()
	a.Send(wire.TypeHalt, wire.Halt{Term: r.session.Term(), Generation: generation, Reason: reason})
}

// event is an event of the history about a generation.
type event struct {
	number   int
	members  []session.Seat // whose ranks it has
	restarts int
	ended    bool
	run      string // keySucceeded or keyFailed, where the run is over with it
	text     string
}

// Names of an event's numbers in the history. A member has its name, and its position
// in the order.
const (
	keyNumber   = "generation"
	keyRestarts = "restarts"
	keyEnded    = "ended"
	// With such a generation the run is over.
	keySucceeded = "succeeded"
	keyFailed    = "failed"
)

// note writes an event about a generation to the history.
func (r *rendezvous) note(e event) {
	numbers := map[string]float64{keyNumber: float64(e.number), keyRestarts: float64(e.restarts)}
	for i, at := range e.members {
		numbers[at.String()] = float64(i)
	}
	if e.ended {
		numbers[keyEnded] = 1
	}
	if e.run != "" {
		numbers[e.run] = 1
	}
	text := fmt.Sprintf("generation %d %s", e.number, e.text)
	r.Log.Info(strings.SplitN(text, "\n", 2)[0])
	r.session.Note(spec.Event{Type: spec.EventGeneration, Metrics: numbers, Message: text})
}

// Follow keeps the numbers of an event.
func (r *rendezvous) Follow(e spec.Event) {
	switch e.Type {
	case spec.EventGeneration:
		p := past{number: int(e.Metrics[keyNumber]), open: e.Metrics[keyEnded] == 0, restarts: int(e.Metrics[keyRestarts])}
		p.succeeded = e.Metrics[keySucceeded] == 1
		if e.Metrics[keyFailed] == 1 {
			p.failed = e.Message
		}
		for name := range e.Metrics {
			if at, ok := seatNamed(name); ok {
				p.members = append(p.members, at)
			}
		}
		if p.number >= r.past.number {
			r.past = p
		}
	case spec.EventUpdate, spec.EventUpdates, spec.EventCheckpoint, spec.EventRestore:
		r.progress.follow(e)
	}
}
