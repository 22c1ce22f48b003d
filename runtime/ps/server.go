package ps

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Server is one parameter server. It is empty until the coordinator restores
// it.
type Server struct {
	index       int
	credentials wire.Credentials
	place       *checkpoint.Place // nil: the coordinator writes and reads for this server
	log         *slog.Logger
	applied     io.Writer // one spec.Event per line
	unnoted     bool      // something could not be written there

	mu      sync.Mutex
	fence   int64 // the highest term heard of: nobody is obeyed in a lower one
	term    int64 // in which the server was restored; 0: it was not yet
	version int64
	changed bell          // term or version changes
	arrival time.Duration // the longest that a contribution may keep the coordinator waiting
	arrived bell          // a contribution is here or has failed, or a worker has gone
	from    int
	vars    []model.Var
	pieces  [][]model.Var // of each piece, offsets relative to it
	exact   bool          // contributions of an earlier version can never be named
	values  *vector       // of the present version
	present *version      // what is sent of it
	slots   []*vector     // likewise: as many as the optimizer has
	pending map[int64]*contribution
	void    map[int64]bool // contributions that were discarded before they came
	coming  map[int64]bool // contributions that are being read
	failed  map[int64]bool // contributions of this version that did not get here
	sum     *sum           // the update that is prepared; nil: none is
	decided *decision      // about the newest update of this term or of one it attached to; nil: there was none
	past    []wire.Past    // of a group: the updates before that one
	workers int            // connected now
	crowd   int            // the most that were, in this term
	// sessions counts the connections of each worker's session: what has not
	// come from one that has none will not.
	sessions map[string]int
	late     int64 // times that a contribution was waited for until a timer fired, though its connection had ended

	snapshot *snapshot     // for the next checkpoint, until it is written
	writing  int           // snapshots that are being written
	spans    *pool         // buffers of the span's length
	sums     *pool         // buffers of contributions: the same, except in a group
	stalls   int           // times that a caller has waited for one
	presence presence      // of a coordinator
	group    *group        // of an all-reduce; nil: the server holds its span by itself
	awaited  *wire.Prepare // a request that waits for contributions
	resident resident      // of a group of one member

	followers map[*follower]bool // workers that take these parameters over
	following *following         // what this worker takes over from a member; nil: nothing
	patience  time.Duration      // with that member

	frames atomic.Int64 // answers to pulls that were made
	pushes atomic.Int64 // contributions that were received
	loans  atomic.Int64 // those of them that were lent
	merges atomic.Int64 // those of them that were added up as they arrived
	own    atomic.Int64 // contributions of this member's worker that were lent

	// Fit hears how many cores the server's work fills, whenever that may have
	// changed; nil: nobody. It is to be set before Serve.
	Fit func(cores int)
}

// point is a state of the server.
type point struct{ term, version int64 }

// contribution is a push that waits to be named.
type contribution struct {
	wire.Push
	sums []float32
	lent func() // gives the memory of sums back to its owner; nil: it is of the server's pool

	busy     bool // a merge reads sums
	unwanted bool // the end of that merge gives them back
}

// New makes an empty server. place is where checkpoints lie, nil where the
// server cannot reach them: its part is then streamed to the coordinator.
// applied gets a line for every update that the server applies; nil: none.
func New(index int, credentials wire.Credentials, place *checkpoint.Place, applied io.Writer, log *slog.Logger) *Server {
	s := &Server{
		index: index, credentials: credentials, place: place, log: log, applied: applied,
		changed: make(bell), arrived: make(bell), arrival: arrival, pending: make(map[int64]*contribution), void: make(map[int64]bool), coming: make(map[int64]bool), failed: make(map[int64]bool), sessions: make(map[string]int), values: new(vector),
		spans: newPool(0), presence: newPresence(), patience: followTime,
	}
	s.sums = s.spans
	return s
}

// bell wakes all goroutines that wait for it. It is rung, and read, with mu
// held.
type bell chan struct{}

func (b *bell) ring() {
	close(*b)
	*b = make(bell)
}

func refuse(format string, args ...any) wire.Answer {
	return wire.Answer{Refused: fmt.Sprintf(format, args...)}
}

// checkTerm refuses a request of a term below one that was heard of, and remembers
// a higher one. Called with mu held.
func (s *Server) checkTerm(term int64) *wire.Answer {
	if term < s.fence {
		a := refuse("term %d has been followed by term %d", term, s.fence)
		a.Term = s.fence
		return &a
	}
	if term > s.fence {
		s.fence = term
		s.changed.ring() // who waits in an earlier term waits in vain
	}
	return nil
}

// checkPoint checks that a request is about the state that the server is in. Called
// with mu held.
func (s *Server) checkPoint(term, version int64) *wire.Answer {
	if a := s.checkTerm(term); a != nil {
		return a
	}
	if term != s.term || version != s.version {
		a := refuse("at version %d of term %d, not %d of %d", s.version, s.term, version, term)
		return &a
	}
	return nil
}

// maxPending bounds the contributions that wait to be named: an update has at most
// two for each worker; some may be void.
func maxPending(workers int) int { return 2 * (workers + 4) }

// take keeps a push until it is named.
func (s *Server) take(p wire.Push, sums []float32) wire.Answer {
	return accept(s, &contribution{Push: p, sums: sums})
}

// accept is take for a contribution whose memory may be lent.
func accept(s *Server, c *contribution) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, sums := c.Push, c.sums
	if a := s.checkTerm(p.Term); a != nil {
		c.giveBack(s)
		return *a
	}
	why, newest := "", s.version
	if s.group != nil { // a member that has made the update may compute the next one before this one has
		newest++
	}
	switch {
	case p.Term != s.term:
		why = fmt.Sprintf("term is %d", s.term)
	case p.Exact && p.Version < s.version || p.Version > newest:
		why = fmt.Sprintf("version is %d", s.version)
	case s.void[p.ID]:
		delete(s.void, p.ID)
		why = "its lease was taken back"
	case s.pending[p.ID] != nil:
		why = "repeated"
	case len(s.pending) >= maxPending(s.crowd):
		why = "too many contributions wait"
	case !(p.Weight > 0) || math.IsInf(p.Weight, 0):
		why = "weight is not above 0"
	case p.Leaves < 1:
		why = "it is of no lease"
	case sums == nil && !s.resident.sole(s):
		why = "its sums are on no device of a group of one member"
	case sums != nil && len(sums) != s.sums.length:
		why = "span has another length"
	}
	if why != "" {
		c.giveBack(s)
		if p.Term == s.term { // leases of other terms have the same numbers
			s.settle(p.ID, s.pending[p.ID] != nil)
		}
		return refuse("%s", why)
	}
	s.pending[p.ID] = c
	s.settle(p.ID, true)
	return wire.Answer{}
}

// drop forgets a contribution. Called with mu held.
func (s *Server) drop(id int64) {
	if c := s.pending[id]; c != nil {
		c.giveBack(s)
		delete(s.pending, id)
	}
}

// discard forgets contributions whose leases were taken back, those that are
// still on their way included. Called with mu held.
func (s *Server) discard(ids []int64) {
	for _, id := range ids {
		if s.pending[id] == nil {
			s.void[id] = true
		}
		s.drop(id)
	}
}

// forget is discard for the coordinator.
func (s *Server) forget(d wire.Discard) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.checkPoint(d.Term, d.Version); a != nil {
		return *a
	}
	s.discard(d.IDs)
	return wire.Answer{}
}

// missing says which of the contributions is not here, or is named twice.
// Called with mu held.
func (s *Server) missing(ids []int64) string {
	seen := make(map[int64]bool, len(ids))
	for _, id := range ids {
		if s.pending[id] == nil || seen[id] {
			return fmt.Sprintf("contribution %d is not here", id)
		}
		seen[id] = true
	}
	return ""
}

// prepare makes the update's sum. The only server of a run decides by
// itself what becomes of it, and so does every member of a group: all have the
// same sums.
func (s *Server) prepare(ctx context.Context, p wire.Prepare) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Alone != nil {
		switch id := s.gather(ctx, p); {
		case ctx.Err() != nil:
			return refuse("the server ends")
		case id != 0 && s.group != nil: // others may have added up what this member lacks
			return refuse("contribution %d did not come", id)
		case id != 0:
			return wire.Answer{Missing: id}
		}
	}
	a := s.complete(ctx, p)
	if p.Alone == nil || a.Error != "" || a.Refused != "" {
		return a
	}
	if done := s.decide(wire.Apply{Skip: !a.Finite, Scale: p.Alone.ClipScale(a.SquaredNorm), Recipe: *p.Alone}); done != (wire.Answer{}) {
		return done
	}
	return a
}

// arrival is the longest that a contribution takes from when it is named to
// when its push begins.
const arrival = 2 * time.Second

// gather waits for the named contributions: their workers may have reported
// before they pushed. It returns one that failed, whose connection has ended or
// that did not come in time, else 0; the caller checks term, version and context again.
// Called with mu held, which it gives up meanwhile.
func (s *Server) gather(ctx context.Context, p wire.Prepare) (missing int64) {
	late, fired := time.Now().Add(s.arrival), false
	if s.group != nil { // a contribution is lost with its worker only, and then another term begins
		late = late.Add(time.Hour)
	}
	for p.Term == s.term && s.term == s.fence && p.Version == s.version && ctx.Err() == nil {
		left, waits := time.Until(late), false
		for i, id := range p.IDs {
			gone := i < len(p.Sessions) && p.Sessions[i] != "" && s.sessions[p.Sessions[i]] == 0
			switch {
			case s.pending[id] != nil:
			case s.failed[id] || !s.coming[id] && (gone || left <= 0):
				if fired && gone {
					s.late++
				}
				return id
			default:
				waits = true
			}
		}
		if !waits {
			return 0
		}
		arrived, changed := s.arrived, s.changed
		s.awaited = &p
		s.mu.Unlock()
		timer := time.NewTimer(max(left, time.Second)) // arrivals are checked again after the wait
		fired = false
		select {
		case <-arrived:
		case <-changed:
		case <-timer.C:
			fired = true
		case <-ctx.Done():
		}
		timer.Stop()
		s.mu.Lock()
		if s.awaited == &p { // else it is of another coordinator
			s.awaited = nil
		}
	}
	return 0
}

// Late returns how often the server waited for a contribution until a timer
// fired, though the connection that was to bring it had ended: it hears of that
// at once.
func (s *Server) Late() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late
}

// expect notes that a contribution is being read; settle, that it is here or
// will not be. Called with mu held.
func (s *Server) expect(id int64) { s.coming[id] = true }

func (s *Server) settle(id int64, here bool) {
	delete(s.coming, id)
	if !here {
		s.failed[id] = true
	}
	s.arrived.ring()
}

// complete adds up an update and says what came of it. Called with mu held.
func (s *Server) complete(ctx context.Context, p wire.Prepare) wire.Answer {
	a := s.checkPoint(p.Term, p.Version)
	if a == nil && !awaitTurn(s, p.Term, p.Version+1, ctx.Done()) {
		a = s.checkPoint(p.Term, p.Version)
	}
	if a == nil && ctx.Err() != nil {
		return refuse("the member ends")
	}
	if a != nil {
		return *a
	}
	s.discard(p.Discard)
	if s.sum != nil {
		return wire.Answer{Error: "another update is prepared"}
	}
	if len(p.IDs) == 0 {
		return wire.Answer{Error: "the update is empty"}
	}
	if why := s.missing(p.IDs); why != "" {
		return refuse("%s", why)
	}
	weight := 0.0
	for _, id := range p.IDs {
		weight += s.pending[id].Weight
	}
	if weight != p.Weight {
		return wire.Answer{Error: fmt.Sprintf("weights sum up to %g, not %g", weight, p.Weight)}
	}
	if s.resident.hasSums(s, p.IDs) {
		return s.resident.complete(s, p.IDs, p.Alone != nil)
	}
	var why string
	if s.sum, why = takeMerge(s, p.IDs); why != "" {
		return refuse("%s", why)
	}
	if s.sum == nil {
		s.sum = newSum(s)
	}
	s.add(p.IDs)
	r := s.sum
	if a := s.combine(ctx, p); a != nil {
		return *a
	}
	norm := r.squaredNorm(s.pieces)
	if math.IsNaN(norm) || math.IsInf(norm, 0) { // which JSON cannot carry
		return wire.Answer{}
	}
	// The squares of float32s cannot overflow in float64: a finite norm vouches
	// for all that it covers.
	finite := true
	for _, v := range s.vars {
		if v.Kind == model.Moment {
			finite = finite && optimizer.Finite(r.values()[v.Offset:v.Offset+v.Len])
		}
	}
	return wire.Answer{SquaredNorm: norm, Finite: finite}
}

// apply commits or skips the prepared update.
func (s *Server) apply(a wire.Apply) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.checkPoint(a.Term, a.Version); refused != nil {
		return *refused
	}
	return s.decide(a)
}

// decide is apply for the present version. Called with mu held.
func (s *Server) decide(a wire.Apply) wire.Answer {
	r := s.sum
	switch {
	case r == nil && !a.Skip:
		return wire.Answer{Error: "no update is prepared"}
	case r == nil:
		r = &sum{taken: a.Taken} // what is here of it may be a part
	}
	if !a.Skip {
		if at := (point{s.term, s.version}); !r.resident && s.read() > 0 {
			if s.room(s.read(), nil); at != (point{s.term, s.version}) {
				return refuse("now at version %d of term %d", s.version, s.term)
			}
		}
		if err := a.Recipe.Validate(); err != nil {
			return wire.Answer{Error: err.Error()}
		}
		if a.Recipe.Slots() > len(s.slots) {
			return wire.Answer{Error: "the optimizer needs slots that were not restored"}
		}
		if answer := makeUpdate(s, r, a); answer != nil {
			return *answer
		}
	}
	r.letGo(s)
	tellFollowers(s, r, a)
	if s.group != nil {
		s.group.begin()
	}
	s.sum = nil
	s.resident.record(s, r, a)
	s.version++
	s.present = new(version)
	if s.group == nil { // members already take contributions of the next version
		clear(s.failed)
	}
	if s.exact && s.group == nil {
		clear(s.void)
	}
	for id, c := range s.pending {
		if c.Exact && c.Version < s.version { // can never be named any more
			s.drop(id)
		}
	}
	s.changed.ring()
	return wire.Answer{}
}

// note writes a line to the server's own account. That is there to be compared
// with the ledger: the run goes on without it. Called with mu held.
func (s *Server) note(step int64, e spec.Event) {
	if s.applied == nil {
		return
	}
	e.Time, e.Term, e.Step = time.Now(), s.term, step
	for _, c := range e.Taken {
		e.Records += c.End - c.Start
		e.Epoch = c.Epoch
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = s.applied.Write(append(line, '\n'))
	}
	if err != nil && !s.unnoted {
		s.unnoted = true // once is enough
		s.log.Error("cannot note what is applied", "error", err)
	}
}
