package ps

import (
	"slices"
	"time"
)

// maxStall is the longest that training waits for a checkpoint that is being
// written, to stay within the memory that a server may use.
const maxStall = 20 * time.Second

// vector is parameters or slots of one version. Pulls, saves and the replica of a member's
// worker read them without a copy: an update in the meantime writes to another buffer.
type vector struct {
	v    []float32
	held int // readers
}

// Vectors returns the values in memory as vectors as long as the server's span, rounded up.
func (s *Server) Vectors() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := max(1, s.spans.length)
	return (countValues(s) + n - 1) / n
}

// Values returns how many values the member holds in memory: parameters, optimizer
// slots, contributions, sums and buffers that wait to be used again.
func (m Member) Values() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return countValues(m.Server)
}

// countValues is Member.Values, called with mu held.
func countValues(s *Server) int {
	n := (len(vectorsOf(s)) + s.spans.made) * s.spans.length
	if s.group != nil {
		if s.sums != s.spans {
			n += s.sums.made * s.sums.length
		}
	}
	return n
}

// vectorsOf returns the present parameters and slots. Called with mu held.
func vectorsOf(s *Server) []*vector { return append([]*vector{s.values}, s.slots...) }

// Frames is how many answers to pulls were made: one for each version that
// somebody pulled.
func (s *Server) Frames() int64 { return s.frames.Load() }

// most returns how many buffers of the span's length the server may make, in addition to
// parameters and slots. The numbers add up:
//   - one for each vector of parameters and slots, which readers may hold during an update, and
//     two at least;
//   - without a group, two pushes of each worker;
//   - in a group whose members push whole vectors, two pushes of each member;
//   - in another group, whose pushes have buffers of their own, the sums of one update;
//   - in each group, the sums that followers lack. Training does not wait for followers.
//
// Called with mu held.
func (s *Server) most() int {
	n := max(2, len(s.slots)+1)
	if s.group != nil && s.group.Whole {
		return n + 2*(s.crowd+1) + countUnsent(s)
	}
	if s.group != nil {
		return n + 1 + countUnsent(s)
	}
	return n + 2*s.crowd
}

// room waits, while a checkpoint is being written, until n buffers are free or may be made. Only
// checkpoints keep buffers for long: a lease that computes in the parameters returns them before
// their update, other readers return theirs with the next message, and most counts the sums that
// followers lack. The wait ends after maxStall, or once closed is closed, whether there are n
// buffers or not. The caller holds mu, which is unlocked during the wait.
func (s *Server) room(n int, closed <-chan struct{}) {
	var late <-chan time.Time
	for s.saving() && len(s.spans.free)+max(0, s.most()-s.spans.made) < n {
		if late == nil {
			timer := time.NewTimer(maxStall)
			defer timer.Stop()
			late = timer.C
		}
		s.stalls++
		freed := s.spans.freed
		s.mu.Unlock()
		over := false
		select {
		case <-freed:
		case <-closed:
			over = true
		case <-late: // better more memory than a run that is lost
			over = true
		}
		s.mu.Lock()
		if over {
			return
		}
	}
}

// saving reports whether a version is kept for a checkpoint, or being written.
// Called with mu held.
func (s *Server) saving() bool { return s.snapshot != nil || s.writing > 0 }

// pool keeps buffers of one length to be used again. It is used with the server's
// mu held.
type pool struct {
	length int
	free   [][]float32
	made   int  // buffers that were ever made
	freed  bell // a buffer becomes free
}

func newPool(length int) *pool { return &pool{length: length, freed: make(bell)} }

// take returns a buffer of undefined content.
func (p *pool) take() []float32 {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	p.made++
	return make([]float32, p.length)
}

// give takes buffers back. Buffers of another length are not kept.
func (p *pool) give(all ...[]float32) {
	for _, b := range all {
		if b != nil && len(b) == p.length {
			p.free = append(p.free, b)
			p.freed.ring()
		}
	}
}

// hold keeps a vector as it is until it is let go. Called with mu held.
func (v *vector) hold() *vector {
	v.held++
	return v
}

// letGo ends a hold. Called with mu held.
func (s *Server) letGo(v *vector) {
	if v == nil {
		return
	}
	if v.held--; v.held == 0 && v != s.values && !slices.Contains(s.slots, v) {
		s.spans.give(v.v)
	}
}

// writable gives a vector whose content may be changed: another one where
// somebody reads this one. Called with mu held.
func (s *Server) writable(v *vector) *vector {
	if v.held == 0 {
		return v
	}
	next := &vector{v: s.spans.take()}
	copy(next.v, v.v)
	return next
}

// read is how many of the present vectors somebody reads. Called with mu held.
func (s *Server) read() int {
	n := 0
	for _, v := range vectorsOf(s) {
		if v.held > 0 {
			n++
		}
	}
	return n
}

// snapshot is a version that is kept for a checkpoint.
type snapshot struct {
	term int64 // in which it was kept
	from int
	held []*vector // parameters, then slots
}

func (c *snapshot) vectors() (all [][]float32) {
	for _, v := range c.held {
		all = append(all, v.v)
	}
	return all
}

// letSnapshotGo gives back what a snapshot keeps. Called with mu held.
func (s *Server) letSnapshotGo(c *snapshot) {
	if c != nil {
		for _, v := range c.held {
			s.letGo(v)
		}
	}
}
