package ps

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// maxPending bounds the pushes that wait to be named. The coordinator keeps
// two leases per worker, of at most 1024 workers.
const maxPending = 4096

// Server is one parameter server. It is empty until the coordinator restores
// it.
type Server struct {
	index   int
	token   string
	log     *slog.Logger
	applied io.Writer // one spec.Event per line

	mu         sync.Mutex
	generation int64 // 0: not restored yet
	version    int64
	changed    chan struct{} // closed, and made anew, whenever generation or version changes
	from       int
	vars       []engine.Var
	vector     []float32
	slots      []float32
	pending    map[int64]*contribution
	ready      *prepared
	cut        *cut
	free       [][]float32 // buffers of the span's length
}

// contribution is a push that waits to be named.
type contribution struct {
	wire.Push
	sums []float32
}

// prepared is the update that was summed up and waits for the decision. taken
// is what this server itself knows of it, for its log.
type prepared struct {
	sums   []float32
	weight float64
	taken  []spec.Contribution
}

// cut is a copy for a checkpoint.
type cut struct {
	from    int
	vectors [][]float32
}

// New makes an empty server. applied gets a line for every update that the
// server applies, written by nobody else.
func New(index int, token string, applied io.Writer, log *slog.Logger) *Server {
	return &Server{
		index: index, token: token, log: log, applied: applied,
		changed: make(chan struct{}), pending: make(map[int64]*contribution),
	}
}

// buffer gives a span-sized buffer of undefined content. Called with mu held.
func (s *Server) buffer() []float32 {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b
	}
	return make([]float32, len(s.vector))
}

// release takes a buffer back. Called with mu held.
func (s *Server) release(b []float32) {
	if len(b) == len(s.vector) {
		s.free = append(s.free, b)
	}
}

// announce wakes whoever waits for a version. Called with mu held.
func (s *Server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func refuse(format string, args ...any) wire.Answer {
	return wire.Answer{Refused: fmt.Sprintf(format, args...)}
}

// at checks that a request is about the state that the server is in. Called
// with mu held.
func (s *Server) at(generation, version int64) *wire.Answer {
	if generation != s.generation || version != s.version {
		a := refuse("at version %d of generation %d, not %d of %d", s.version, s.generation, version, generation)
		return &a
	}
	return nil
}

// take keeps a push until it is named.
func (s *Server) take(p wire.Push, sums []float32) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := ""
	switch {
	case p.Generation != s.generation:
		why = fmt.Sprintf("generation is %d", s.generation)
	case p.Exact && p.Version != s.version || p.Version > s.version:
		why = fmt.Sprintf("version is %d", s.version)
	case s.pending[p.ID] != nil:
		why = "repeated"
	case len(s.pending) >= maxPending:
		why = "too many contributions wait"
	case !(p.Weight > 0) || math.IsInf(p.Weight, 0):
		why = "weight is not above 0"
	case len(sums) != len(s.vector):
		why = "span has another length"
	}
	if why != "" {
		s.release(sums)
		return refuse("%s", why)
	}
	s.pending[p.ID] = &contribution{p, sums}
	return wire.Answer{}
}

// drop forgets a contribution. Called with mu held.
func (s *Server) drop(id int64) {
	if c := s.pending[id]; c != nil {
		s.release(c.sums)
		delete(s.pending, id)
	}
}

// prepare sums up the named contributions in the given order.
func (s *Server) prepare(p wire.Prepare) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.at(p.Generation, p.Version); a != nil {
		return *a
	}
	for _, id := range p.Discard {
		s.drop(id)
	}
	if s.ready != nil || len(p.IDs) == 0 {
		return wire.Answer{Error: "another update is prepared, or this one is empty"}
	}
	weight := 0.0
	for i, id := range p.IDs {
		c := s.pending[id]
		if c == nil {
			return refuse("contribution %d is not here", id)
		}
		for _, other := range p.IDs[:i] {
			if other == id {
				return wire.Answer{Error: fmt.Sprintf("contribution %d is named twice", id)}
			}
		}
		weight += c.Weight
	}
	if weight != p.Weight {
		return wire.Answer{Error: fmt.Sprintf("weights sum up to %g, not %g", weight, p.Weight)}
	}
	r := &prepared{weight: weight}
	for _, id := range p.IDs {
		c := s.pending[id]
		r.taken = append(r.taken, c.Contribution)
		if delete(s.pending, id); r.sums == nil {
			r.sums = c.sums // the first one's buffer becomes the sum
			continue
		}
		for i, v := range c.sums {
			r.sums[i] += v
		}
		s.release(c.sums)
	}
	s.ready = r
	norm := engine.SquaredNorm(r.sums, weight, s.vars)
	if math.IsNaN(norm) || math.IsInf(norm, 0) { // which JSON cannot carry
		return wire.Answer{}
	}
	// The squares of float32s cannot overflow in float64: a finite norm vouches
	// for all that it covers.
	finite := true
	for _, v := range s.vars {
		if v.Kind == engine.Moment {
			finite = finite && engine.Finite(r.sums[v.Offset:v.Offset+v.Len])
		}
	}
	return wire.Answer{SquaredNorm: norm, Finite: finite}
}

// apply commits or skips the prepared update.
func (s *Server) apply(a wire.Apply) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.at(a.Generation, a.Version); refused != nil {
		return *refused
	}
	r := s.ready
	switch {
	case r == nil && !a.Skip:
		return wire.Answer{Error: "no update is prepared"}
	case r == nil:
		r = &prepared{taken: a.Taken}
	case !a.Skip:
		if err := a.Recipe.Validate(); err != nil {
			return wire.Answer{Error: err.Error()}
		}
		if a.Recipe.Slots() > 0 && s.slots == nil {
			return wire.Answer{Error: "the optimizer needs slots that were not restored"}
		}
		engine.UpdateScaled(s.vector, s.slots, r.sums, r.weight, s.vars, a.Recipe, a.Scale)
	}
	s.release(r.sums)
	s.ready = nil
	s.version++
	for id, c := range s.pending {
		if c.Exact && c.Version < s.version { // can never be named any more
			s.drop(id)
		}
	}
	s.announce()
	if err := s.note(spec.Event{Type: spec.EventUpdate, Skipped: a.Skip, Taken: r.taken}); err != nil {
		return wire.Answer{Error: err.Error()}
	}
	return wire.Answer{}
}

// note writes a line to the server's own account. Called with mu held.
func (s *Server) note(e spec.Event) error {
	e.Time, e.Generation, e.Step = time.Now(), s.generation, s.version
	for _, c := range e.Taken {
		e.Records += c.End - c.Start
		e.Epoch = c.Epoch
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("note update: %w", err)
	}
	if _, err := s.applied.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("note update: %w", err)
	}
	return nil
}

// pull waits until the server is at the wanted version and copies its values
// into buffer (grown as needed). Nothing is copied when the worker has them.
// closed ends the wait.
func (s *Server) pull(p wire.Pull, buffer []float32, closed <-chan struct{}) (wire.Values, []float32, *wire.Answer) {
	s.mu.Lock()
	for p.Generation == s.generation && s.version < p.Version {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-closed:
			a := refuse("the server is closing")
			return wire.Values{}, nil, &a
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if p.Generation != s.generation || s.generation == 0 {
		a := refuse("generation is %d", s.generation)
		return wire.Values{}, nil, &a
	}
	v := wire.Values{Version: s.version, From: s.from}
	if p.Have == s.version {
		return v, buffer[:0], nil
	}
	return v, append(buffer[:0], s.vector...), nil
}
