package wire

import (
	"slices"
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
	s.lent[body%slots] = true
	return unsafe.Slice((*float32)(unsafe.Pointer(&s.slot(body)[0])), values), func() { s.endLoan(body) }
}

// isLent reports whether a body is lent.
func (s *segment) isLent() bool { return slices.Contains(s.lent[:], true) }

// endLoan ends the loan of a body.
func (s *segment) endLoan(body uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent[body%slots] = false
	s.copied(body).Store(body)
	if s.off && !s.isLent() {
		s.unmap()
	}
}
