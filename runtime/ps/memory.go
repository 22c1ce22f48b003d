package ps

import (
	"slices"
	"time"
)

// maxStall is the longest that training waits for a checkpoint that is being
// written, to stay within the memory that a server may use.
const maxStall = 20 * time.Second

// vector is parameters or slots of one version. Who pulls or saves them reads
// them without a copy: an update then goes into another buffer.
type vector struct {
	v    []float32
	held int // readers
}

// Vectors is how many vectors as long as the server's span it holds in memory:
// parameters, optimizer slots, contributions and what waits to be used again.
func (s *Server) Vectors() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(vectorsOf(s)) + s.made
}

// vectorsOf returns the present parameters and slots. Called with mu held.
func vectorsOf(s *Server) []*vector { return append([]*vector{s.values}, s.slots...) }

// Frames is how many answers to pulls were made: one for each version that
// somebody pulled.
func (s *Server) Frames() int64 { return s.frames.Load() }

// most is the highest number of buffers that the server makes, in addition to
// parameters and slots: one for each of these, which a reader may hold during an
// update, but at least two, and two pushes of each worker. Called with mu held.
func (s *Server) most() int { return max(2, len(s.slots)+1) + 2*s.crowd }

// room waits until n buffers can be had within the bound. Only a checkpoint
// that is being written is waited for: what else takes buffers gives them back
// by what comes next. Called with mu held, which it gives up meanwhile.
func (s *Server) room(n int, closed <-chan struct{}) {
	var late <-chan time.Time
	for s.saving() && len(s.free)+max(0, s.most()-s.made) < n {
		if late == nil {
			timer := time.NewTimer(maxStall)
			defer timer.Stop()
			late = timer.C
		}
		s.stalls++
		freed := s.freed
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

// buffer gives a span-sized buffer of undefined content. Called with mu held.
func (s *Server) buffer() []float32 {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b
	}
	s.made++
	return make([]float32, len(s.values.v))
}

// release takes a buffer back. Called with mu held.
func (s *Server) release(b []float32) {
	if b != nil && len(b) == len(s.values.v) {
		s.free = append(s.free, b)
		s.freed.ring()
	}
}

// releaseAll is release for several. Called with mu held.
func (s *Server) releaseAll(all [][]float32) {
	for _, b := range all {
		s.release(b)
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
		s.release(v.v)
	}
}

// writable gives a vector whose content may be changed: another one where
// somebody reads this one. Called with mu held.
func (s *Server) writable(v *vector) *vector {
	if v.held == 0 {
		return v
	}
	next := &vector{v: s.buffer()}
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
