package program

import (
	"bytes"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Limits of the text of a rank that is kept for messages.
const (
	tailLines  = 20
	tailColumn = 300      // characters of a line
	tailBytes  = 2 << 10  // of a line, before its control sequences are removed
	lineBytes  = 64 << 10 // of a line that is read for metrics; the rest of it is dropped
)

// escapes are the control sequences of terminals: colours, cursors, titles.
var escapes = pattern.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])`)

// harmless returns a line that can be printed: without control sequences, with a
// mark in place of other control characters, and of at most tailColumn characters.
func harmless(line []byte) string {
	text := escapes.ReplaceAllString(strings.ToValidUTF8(string(line), "?"), "")
	text = strings.Map(func(c rune) rune {
		switch {
		case c == '\t':
			return ' '
		case unicode.Is(unicode.Cf, c): // such as marks that turn the direction of text
			return -1
		case !unicode.IsPrint(c):
			return '?'
		}
		return c
	}, text)
	text = strings.TrimRight(text, " ")
	if utf8.RuneCountInString(text) > tailColumn {
		text = string([]rune(text)[:tailColumn-1]) + "…"
	}
	return text
}

// tail keeps the last lines of a rank as they are. They are made harmless when
// they are read, so that a program that prints much costs little.
type tail struct {
	mu    sync.Mutex
	lines [][]byte // a ring once it has tailLines
	next  int
}

func (t *tail) add(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	line = line[:min(len(line), tailBytes)]
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) < tailLines {
		t.lines = append(t.lines, bytes.Clone(line))
		return
	}
	t.lines[t.next] = append(t.lines[t.next][:0], line...)
	t.next = (t.next + 1) % tailLines
}

func (t *tail) read() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for i := range t.lines {
		if text := harmless(t.lines[(t.next+i)%len(t.lines)]); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// splitter cuts a stream into lines. A line that is rewritten by a carriage return,
// as progress bars do, is only its newest version. It keeps at most lineBytes.
type splitter struct {
	line     []byte
	returned bool // the last byte was a carriage return
	cut      bool // the line was longer
	take     func(line []byte, cut bool)
}

func (s *splitter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		at := bytes.IndexAny(rest, "\r\n")
		if at < 0 {
			s.add(rest)
			break
		}
		s.add(rest[:at])
		if rest[at] == '\n' {
			s.flush()
		} else {
			s.returned = true
		}
		rest = rest[at+1:]
	}
	return len(p), nil
}

func (s *splitter) add(part []byte) {
	if len(part) == 0 {
		return
	}
	if s.returned {
		s.line, s.cut, s.returned = s.line[:0], false, false
	}
	room := min(len(part), lineBytes-len(s.line))
	s.line = append(s.line, part[:room]...)
	s.cut = s.cut || room < len(part)
}

// flush ends the line, also where the stream ends without a line break.
func (s *splitter) flush() {
	if len(s.line) > 0 {
		s.take(s.line, s.cut)
	}
	s.line, s.cut, s.returned = s.line[:0], false, false
}
