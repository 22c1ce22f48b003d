package ssh

import (
	"bytes"
	"sync"
)

// stream collects what a command writes from the mark on; what comes before
// it, login scripts and sudo have written.
type stream struct {
	mark, prompt     []byte
	most             int
	keepEnd          bool // of too much, keep the end instead of failing
	onMark, onPrompt func()

	mu     sync.Mutex
	marked bool
	over   bool
	before []byte
	buf    []byte
}

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
		i := bytes.Index(s.before, s.prompt)
		if i < 0 {
			break
		}
		s.before = append(s.before[:i:i], s.before[i+len(s.prompt):]...)
		s.onPrompt()
	}
	if i := bytes.Index(s.before, s.mark); i >= 0 {
		s.marked = true
		rest := s.before[i+len(s.mark):]
		s.before = s.before[:i]
		s.keep(rest)
		if s.onMark != nil {
			s.onMark()
		}
	} else if len(s.before) > mostStderr {
		s.before = append([]byte(nil), s.before[len(s.before)-len(s.mark)-len(s.prompt):]...)
	}
	return len(p), nil
}

func (s *stream) keep(p []byte) {
	s.buf = append(s.buf, p...)
	if len(s.buf) <= s.most {
		return
	}
	if !s.keepEnd {
		s.over = true
		s.buf = s.buf[:s.most]
	} else if len(s.buf) > 2*s.most {
		s.buf = append([]byte(nil), s.buf[len(s.buf)-s.most:]...)
	}
}

// bytes is what the command wrote.
func (s *stream) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf
}

// raw is everything, for when the command never began.
func (s *stream) raw() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(append([]byte(nil), s.before...), s.buf...)
}
