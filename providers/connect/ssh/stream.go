package ssh

import (
	"bytes"
	"sync"
)

// stream collects what a command writes from the mark on; everything before it
// is output of login scripts and sudo.
type stream struct {
	mark, prompt             []byte
	most                     int
	keepEnd                  bool // of too much, keep the end instead of failing
	onMark, onPrompt, onOver func()
	hear                     func(p []byte) // receives the output, which is then not kept; nil: it is kept

	mu     sync.Mutex
	marked bool
	over   bool
	before []byte
	looked int // so many bytes of before hold no beginning of mark or prompt
	buf    []byte
}

// maxBefore is the limit of the output before the mark.
const maxBefore = 64 << 10

// Write takes down what arrives. It never fails: a command that is not
// listened to would stand still.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marked {
		s.keep(p)
		return len(p), nil
	}
	s.before = append(s.before, p...)
	for len(s.prompt) > 0 {
		i := bytes.Index(s.before[s.looked:], s.prompt)
		if i < 0 {
			break
		}
		i += s.looked
		s.before = append(s.before[:i:i], s.before[i+len(s.prompt):]...)
		s.looked = i
		s.onPrompt()
	}
	if i := bytes.Index(s.before[s.looked:], s.mark); i >= 0 {
		s.marked = true
		i += s.looked
		rest := s.before[i+len(s.mark):]
		s.before = s.before[:i:i]
		s.keep(rest)
		if s.onMark != nil {
			s.onMark()
		}
		return len(p), nil
	}
	if len(s.before) > 2*maxBefore {
		s.before = append([]byte(nil), s.before[len(s.before)-maxBefore:]...)
	}
	s.looked = max(0, len(s.before)-max(len(s.mark), len(s.prompt))+1)
	return len(p), nil
}

func (s *stream) keep(p []byte) {
	if s.hear != nil {
		s.hear(p)
		return
	}
	if s.over {
		return
	}
	s.buf = append(s.buf, p...)
	if len(s.buf) <= s.most {
		return
	}
	if !s.keepEnd {
		s.over = true
		s.buf = s.buf[:s.most]
		s.onOver()
	} else if len(s.buf) > 2*s.most {
		s.buf = append([]byte(nil), s.buf[len(s.buf)-s.most:]...)
	}
}

// hasBegun reports whether the mark has come.
func (s *stream) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marked
}

// bytes is what the command wrote.
func (s *stream) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf
}

// complete takes the mark that ends the output out of it and reports whether it
// was there: without it, a part of the output may have been lost on the way.
func (s *stream) complete(end []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := bytes.LastIndex(s.buf, end)
	if i < 0 {
		return false
	}
	s.buf = append(s.buf[:i], s.buf[i+len(end):]...)
	return true
}

// raw is everything, for when the command never began.
func (s *stream) raw() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(append([]byte(nil), s.before...), s.buf...)
}
