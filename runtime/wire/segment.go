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
// there. It holds one body at a time: the receiver counts the copied bodies in the
// first bytes, and while one waits to be copied, the next body travels through the
// socket. A sender that is killed after it has copied a body leaves no frame: the
// receiver reads the end of the connection.
type segment struct {
	mu     sync.Mutex // is held during a copy, so that the memory stays mapped
	mem    []byte     // nil: there is none
	bodies uint64     // that were put there, or copied from there
	given  *handle    // of the next memory, which has arrived; nil: none has
	off    bool       // the connection has ended, or no memory can be had
	lent   bool       // the receiver uses the body where it is, see Lend
}

// segmentHead is where the body begins.
const segmentHead = 64

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

// copied is the receiver's count.
func (s *segment) copied() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&s.mem[0])) }

// put copies a frame's body into the segment and returns the flags of the frame, with
// the handle of the memory where it is new; 0: the body is to travel through the socket.
func (s *segment) put(f *Frame) (flags Type, h *handle) {
	if f.size < leastShared || f.size > mostShared {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.mem != nil && s.copied().Load() != s.bodies {
		return 0, nil
	}
	flags = flagShared
	if len(s.mem) < segmentHead+f.size {
		mem, made, err := newMemory(segmentHead + f.size)
		if err != nil {
			s.off = true
			return 0, nil
		}
		s.unmap()
		s.mem, s.bodies, h, flags = mem, 0, made, flags|flagSegment
	}
	at := s.mem[segmentHead:]
	for _, p := range f.body {
		at = at[copy(at, p):]
	}
	s.bodies++
	return flags, h
}

// announce checks the flags of a frame that was received, and takes the new memory
// into use where they tell of it.
func (s *segment) announce(flags Type, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent || s.off {
		return errors.New("shared memory whose last body is in use, or of a closed connection")
	}
	if flags&flagSegment != 0 {
		h := s.given
		if s.given = nil; h == nil {
			return errors.New("a frame tells of shared memory that did not come with it")
		}
		mem, err := h.mapMemory(segmentHead+leastShared, segmentHead+mostShared)
		h.close()
		if err != nil {
			return fmt.Errorf("shared memory: %w", err)
		}
		s.unmap()
		s.mem, s.bodies = mem, 0
	}
	if flags&flagShared == 0 || size <= 0 || size > len(s.mem)-segmentHead {
		return fmt.Errorf("a body of %d bytes in shared memory of %d", size, max(0, len(s.mem)-segmentHead))
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
	copy(into, s.mem[segmentHead:])
	s.bodies++
	s.copied().Store(s.bodies)
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
	if !s.lent {
		s.unmap()
	}
	if s.given != nil {
		s.given.close()
		s.given = nil
	}
}

func (s *segment) unmap() {
	if s.mem != nil {
		unmapMemory(s.mem)
		s.mem = nil
	}
}
