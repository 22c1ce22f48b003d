package wire

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// segment is memory that both ends of a connection within one machine have mapped.
// It holds the bodies of one direction, and the socket carries only heads. The
// sender creates it, and sends its descriptor with the first frame that has its body
// there. It has two slots, which bodies take in turn: the first bytes have the number of the
// last body of each slot that the receiver has copied, and while that is not the last one
// sent, a body for the slot travels through the socket. A sender that is killed after it has
// copied a body leaves no frame: the receiver reads the end of the connection.
type segment struct {
	mu     sync.Mutex // is held during a copy, so that the memory stays mapped; where it is used in place, see uses
	mem    []byte     // nil: there is none
	bodies uint64     // that were put there, or copied from there
	given  *handle    // of the next memory, which has arrived; nil: none has
	fresh  *handle    // of this memory, which no frame has told of yet; nil: one has
	off    bool       // the connection has ended, or no memory can be had
	uses   [slots]int // of each slot's memory where it is, see Lend and Reserve
	next   bool       // the slot of the next body is reserved for it
}

// segmentHead is where the slots begin. A member may have two contributions to an update.
const (
	segmentHead = 64
	slots       = 2
)

// slotBytes is how long a slot for a body is.
func slotBytes(body int) int { return (body + segmentHead - 1) / segmentHead * segmentHead }

// slot returns the memory of a body, by its number from 1 on.
func (s *segment) slot(body uint64) []byte {
	n := s.width()
	at := segmentHead + int(body%slots)*n
	return s.mem[at : at+n : at+n]
}

// width is how long each slot is.
func (s *segment) width() int {
	return max(0, len(s.mem)-segmentHead) / slots / segmentHead * segmentHead
}

// The sizes of bodies that travel through shared memory, in bytes: below, the socket
// takes them along with the head, and above, memory is scarcer than the time of a
// copy.
const (
	leastShared = 16 << 10
	mostShared  = 1 << 20
)

// Flags in the type of a frame between two processes of one machine.
const (
	flagShared  Type = 1 << 7 // the segment has the body
	flagSegment Type = 1 << 6 // a new segment's descriptor is attached
)

// copied is the number of the last body that was copied from a body's slot.
func (s *segment) copied(body uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.mem[8*(body%slots)]))
}

// isFree reports whether the slot of a body has none that waits to be copied, and is not
// used by this process.
func (s *segment) isFree(body uint64) bool {
	return s.mem == nil || s.uses[body%slots] == 0 && (body <= slots || s.copied(body).Load() == body-slots)
}

// isUsed reports whether this process uses a slot's memory where it is.
func (s *segment) isUsed() bool { return s.uses != [slots]int{} }

// endUse ends one use of a slot.
func (s *segment) endUse(body uint64) {
	s.uses[body%slots]--
	if s.off && !s.isUsed() {
		s.unmap()
	}
}

// grow makes memory with slots of so many bytes where they are shorter. It reports false
// where that cannot be had.
func (s *segment) grow(bytes int) bool {
	if s.width() >= bytes {
		return true
	}
	if !s.isFree(s.bodies+1) || !s.isFree(s.bodies+2) { // the memory is still used
		return false
	}
	mem, made, err := newMemory(segmentHead + slots*slotBytes(bytes))
	if err != nil {
		s.off = true
		return false
	}
	s.unmap()
	if s.fresh != nil {
		s.fresh.close()
	}
	s.mem, s.bodies, s.fresh = mem, 0, made
	return true
}

// holdsBody reports whether a frame's body lies in its slot already.
func (s *segment) holdsBody(f *Frame, body uint64) bool {
	return f.size <= s.width() && &f.body[0][0] == &s.slot(body)[0]
}

// put copies a frame's body into the segment and returns the flags of the frame, with
// the handle of the memory where it is new; 0: the body is to travel through the socket.
func (s *segment) put(f *Frame) (flags Type, h *handle) {
	if f.size < leastShared || f.size > mostShared {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.bodies + 1
	if s.off || s.next && !s.holdsBody(f, next) || !s.next && (!s.isFree(next) || !s.grow(f.size)) {
		return 0, nil
	}
	if flags = flagShared; s.fresh != nil {
		h, s.fresh, flags = s.fresh, nil, flags|flagSegment
	}
	at := s.slot(s.bodies + 1)
	for _, p := range f.body {
		if &at[0] != &p[0] {
			copy(at, p)
		}
		at = at[len(p):]
	}
	s.bodies++
	s.next = false
	return flags, h
}

// announce checks the flags of a frame that was received, and takes the new memory
// into use where they tell of it.
func (s *segment) announce(flags Type, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	anew := flags&flagSegment != 0
	if s.off || s.uses[(s.bodies+1)%slots] > 0 || anew && s.isUsed() {
		return errors.New("a body in shared memory that is in use, or of a closed connection")
	}
	if anew {
		h := s.given
		if s.given = nil; h == nil {
			return errors.New("a frame tells of shared memory that did not come with it")
		}
		mem, err := h.mapMemory(segmentHead+slots*leastShared, segmentHead+slots*mostShared)
		h.close()
		if err != nil {
			return fmt.Errorf("shared memory: %w", err)
		}
		s.unmap()
		s.mem, s.bodies = mem, 0
	}
	if flags&flagShared == 0 || size <= 0 || size > s.width() {
		return fmt.Errorf("a body of %d bytes in shared memory of %d", size, s.width())
	}
	return nil
}

// take copies the body that was announced; nil: it is not wanted.
func (s *segment) take(into []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem == nil {
		return errors.New("the connection is closed")
	}
	s.bodies++
	copy(into, s.slot(s.bodies))
	s.copied(s.bodies).Store(s.bodies)
	return nil
}

// give keeps the handle of memory until a frame tells of it.
func (s *segment) give(h *handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.given != nil {
		h.close()
		return errors.New("shared memory came twice")
	}
	s.given = h
	return nil
}

// close unmaps the memory.
func (s *segment) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
	if !s.isUsed() {
		s.unmap()
	}
	for _, h := range []**handle{&s.given, &s.fresh} {
		if *h != nil {
			(*h).close()
			*h = nil
		}
	}
}

func (s *segment) unmap() {
	if s.mem != nil {
		unmapMemory(s.mem)
		s.mem = nil
	}
}
