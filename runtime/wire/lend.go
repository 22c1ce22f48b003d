package wire

import "unsafe"

// Lend returns the values of the message just received in the memory that both ends of the
// connection share, without a copy, and the function to call once they are not needed any
// longer. Until then the next bodies travel through the socket. Also after Close the values
// stay as they are until that call. nil: call Body, because the values are not in shared memory.
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
	if s.mem == nil {
		return nil, nil
	}
	s.lent = true
	return unsafe.Slice((*float32)(unsafe.Pointer(&s.mem[segmentHead])), values), s.endLoan
}

// endLoan ends the loan of the body.
func (s *segment) endLoan() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent = false
	s.bodies++
	s.copied().Store(s.bodies)
	if s.off {
		s.unmap()
	}
}
