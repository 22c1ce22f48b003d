package wire

import (
	"sync/atomic"
	"unsafe"
)

// Lend returns the values of the message just received in the memory that both ends of the
// connection share, without a copy, and the function to call once they are not needed any
// longer. Also after Close the values stay as they are until that call. nil: call Body, because
// the values are not in shared memory.
func (c *Conn) Lend(m *Message) (values []float32, giveBack func()) {
	if !m.shared || m.Values == 0 {
		return nil, nil
	}
	return c.inbox.lend(m.Values)
}

// lend lends the body that was announced; nil: the connection is closed.
func (s *segment) lend(values int) ([]float32, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.mem == nil {
		return nil, nil
	}
	s.bodies++
	body := s.bodies
	s.uses[body%slots]++
	return s.values(body, values), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.copied(body).Store(body)
		s.endUse(body)
	}
}

// values returns the values of a body in its slot.
func (s *segment) values(body uint64, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&s.slot(body)[0])), n)
}

// Place is memory where a body is made before it is sent: shared with the peer, or of this
// process.
type Place struct {
	Values  []float32
	segment *segment // nil: it is of this process
	body    uint64
	users   atomic.Int32 // without a segment
}

// NewPlace returns memory of this process as a place that is not in use.
func NewPlace(values []float32) *Place { return &Place{Values: values} }

// Users returns how many users memory of this process has.
func (p *Place) Users() int { return int(p.users.Load()) }

// Reserve returns memory for the values of a body to come. A frame whose body is all of it
// travels without a copy; until then, bodies of other frames take the socket. Also after
// Close the memory stays until Release. nil: there is no such memory, or the peer still uses
// it.
func (c *Conn) Reserve(values int) *Place {
	if c.unix == nil || 4*values < leastShared || 4*values > mostShared {
		return nil
	}
	s := &c.outbox
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.next || !s.isFree(s.bodies+1) || !s.grow(4*values) {
		return nil
	}
	p := &Place{segment: s, body: s.bodies + 1}
	p.Values = s.values(p.body, values)
	s.next = true
	s.uses[p.body%slots]++
	return p
}

// Waits reports whether a place is still for the next body of this connection.
func (c *Conn) Waits(p *Place) bool {
	s := &c.outbox
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.segment == s && !s.off && p.body > s.bodies
}

// Hold adds a user of the memory, who calls Release as well.
func (p *Place) Hold() {
	if p.segment == nil {
		p.users.Add(1)
		return
	}
	p.segment.mu.Lock()
	defer p.segment.mu.Unlock()
	p.segment.uses[p.body%slots]++
}

// Release ends the use of the memory by the caller of Reserve or Hold.
func (p *Place) Release() {
	if p.segment == nil {
		p.users.Add(-1)
		return
	}
	p.segment.mu.Lock()
	defer p.segment.mu.Unlock()
	if p.body > p.segment.bodies { // it was not sent
		p.segment.next = false
	}
	p.segment.endUse(p.body)
}
