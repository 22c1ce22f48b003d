package state

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"encoding/json"
)

// maxDepth is how deep JSON may nest; it is the limit of encoding/json.
const maxDepth = 10000

// scanner reads JSON from memory, strictly, in one pass. It remembers the first
// fault, and then all methods do nothing; callers look at err at the end.
// (encoding/json would read everything twice, forget where values begin, and
// take the last of two members of one name.)
type scanner struct {
	buf   []byte
	pos   int
	depth int
	seen  [][]byte // names of the members of the objects that members is reading
	err   *syntaxError
}

// syntaxError is the fault and its offset in the scanner's buffer.
type syntaxError struct {
	offset int
	reason string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.offset, e.reason) }

// fail records that something is wrong at offset.
func (s *scanner) fail(offset int, format string, args ...any) {
	if s.err == nil {
		s.err = &syntaxError{offset, fmt.Sprintf(format, args...)}
	}
	s.pos = len(s.buf)
}

// peek returns the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	s.pos = skipSpace(s.buf, s.pos)
	if s.pos >= len(s.buf) {
		return 0
	}
	return s.buf[s.pos]
}

// expected fails because the next token is not what.
func (s *scanner) expected(what string) {
	if s.err != nil {
		return
	}
	if c := s.peek(); c == 0 && s.pos >= len(s.buf) {
		s.fail(s.pos, "it ends where %s should be: it is truncated", what)
	} else {
		s.fail(s.pos, "found %q where %s should be", c, what)
	}
}

// end fails unless nothing is left.
func (s *scanner) end() {
	if s.err == nil && s.peek() != 0 || s.pos < len(s.buf) {
		s.fail(s.pos, "found something after the end of the JSON")
	}
}

// maxMembers is how many members the objects may have that members reads: far
// more than any program writes.
const maxMembers = 1000

// members reads an object whose members are known by name, most of them. Each
// may be there once.
func (s *scanner) members(member func(name []byte, offset int)) {
	start := len(s.seen)
	s.object(func(name []byte, offset int) {
		for _, n := range s.seen[start:] {
			if string(n) == string(name) {
				s.fail(offset, "the member %q is given twice", clip(name))
				return
			}
		}
		if s.seen = append(s.seen, name); len(s.seen)-start > maxMembers {
			s.fail(offset, "the object has more than %d members", maxMembers)
			return
		}
		member(name, offset)
	})
	s.seen = s.seen[:start]
}

// object reads an object and calls member for each of its members, which must
// read the value.
func (s *scanner) object(member func(name []byte, offset int)) {
	if !s.enter('{', "an object") {
		return
	}
	for first := true; s.err == nil; first = false {
		if s.peek() == '}' && first {
			break
		}
		offset := s.pos
		name := s.name()
		if s.peek() != ':' {
			s.expected("a colon")
			return
		}
		s.pos++
		s.peek()
		member(name, offset)
		if s.err != nil {
			return
		}
		if s.peek() != ',' {
			break
		}
		s.pos++
		s.peek()
	}
	s.leave('}', "a comma or the end of the object")
}

// array reads an array and calls element for each of its elements, which must
// read it.
func (s *scanner) array(element func()) {
	if !s.enter('[', "an array") {
		return
	}
	for first := true; s.err == nil; first = false {
		if s.peek() == ']' && first {
			break
		}
		element()
		if s.err != nil {
			return
		}
		if s.peek() != ',' {
			break
		}
		s.pos++
		s.peek()
	}
	s.leave(']', "a comma or the end of the array")
}

func (s *scanner) enter(open byte, what string) bool {
	if s.err != nil {
		return false
	}
	if s.peek() != open {
		s.expected(what)
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail(s.pos, "it nests deeper than %d levels", maxDepth)
		return false
	}
	s.pos++
	return true
}

func (s *scanner) leave(closing byte, what string) {
	if s.err != nil {
		return
	}
	if s.peek() != closing {
		s.expected(what)
		return
	}
	s.pos++
	s.depth--
}

// null reads a null, if the next value is one.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.literal("null")
	return s.err == nil
}

func (s *scanner) literal(text string) {
	if len(s.buf)-s.pos < len(text) || string(s.buf[s.pos:s.pos+len(text)]) != text {
		s.expected("a value")
		return
	}
	s.pos += len(text)
}

// boolean reads true or false.
func (s *scanner) boolean() bool {
	switch s.peek() {
	case 't':
		s.literal("true")
		return s.err == nil
	case 'f':
		s.literal("false")
	default:
		s.expected("true or false")
	}
	return false
}

// unsigned reads a whole number of at most 64 bits, without sign, fraction or
// exponent.
func (s *scanner) unsigned() uint64 {
	if s.err != nil {
		return 0
	}
	if c := s.peek(); c < '0' || c > '9' {
		s.expected("a whole number")
		return 0
	}
	start := s.pos
	s.number()
	if s.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(s.buf[start:s.pos]), 10, 64)
	if err != nil {
		s.fail(start, "the number %s is not a whole number of 64 bits", clip(s.buf[start:s.pos]))
		return 0
	}
	return n
}

// clip shortens text for a message.
func clip(b []byte) string {
	if len(b) > 40 {
		return string(b[:37]) + "..."
	}
	return string(b)
}

// str reads a string.
func (s *scanner) str() string { return string(s.strBytes("a string")) }

// strBytes reads a string; the result may lie in the buffer.
func (s *scanner) strBytes(what string) []byte {
	if s.err != nil {
		return nil
	}
	if s.peek() != '"' {
		s.expected(what)
		return nil
	}
	start := s.pos
	escaped := s.skipString()
	if s.err != nil {
		return nil
	}
	if !escaped {
		return s.buf[start+1 : s.pos-1]
	}
	var text string
	if err := json.Unmarshal(s.buf[start:s.pos], &text); err != nil {
		s.fail(start, "the string is malformed")
		return nil
	}
	return []byte(text)
}

func (s *scanner) name() []byte { return s.strBytes("a name in quotes") }

// raw reads any value, checks its syntax and returns its text, a part of the
// buffer.
func (s *scanner) raw() []byte {
	s.peek()
	start := s.pos
	s.skip()
	if s.err != nil {
		return nil
	}
	return s.buf[start:s.pos:s.pos]
}

// skip reads any value and checks its syntax.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '{':
		s.object(func([]byte, int) { s.skip() })
	case c == '[':
		s.array(s.skip)
	case c == '"':
		s.skipString()
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	default:
		s.expected("a value")
	}
}

// skipString reads a string and reports whether it has escapes.
func (s *scanner) skipString() (escaped bool) {
	start := s.pos
	for i := s.pos + 1; i < len(s.buf); i++ {
		switch c := s.buf[i]; {
		case c == '"':
			s.pos = i + 1
			return escaped
		case c == '\\':
			escaped = true
			n := escapeLen(s.buf[i:])
			if n == 0 {
				s.fail(i, "the escape in the string is malformed")
				return
			}
			i += n - 1
		case c < ' ':
			s.fail(i, "found the control character %q in a string", c)
			return
		}
	}
	s.fail(len(s.buf), "the string that begins at byte %d has no end: it is truncated", start)
	return
}

// escapeLen returns the length of the escape at the beginning of b, 0 without
// one.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// number reads a number as JSON defines it.
func (s *scanner) number() {
	start, i := s.pos, s.pos
	digits := func() bool {
		from := i
		for i < len(s.buf) && s.buf[i] >= '0' && s.buf[i] <= '9' {
			i++
		}
		return i > from
	}
	at := func(c byte) bool { return i < len(s.buf) && s.buf[i] == c }
	if at('-') {
		i++
	}
	ok := true
	if at('0') {
		i++
	} else {
		ok = digits()
	}
	if ok && at('.') {
		i++
		ok = digits()
	}
	if ok && (at('e') || at('E')) {
		i++
		if at('+') || at('-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		s.fail(start, "the number is malformed")
		return
	}
	s.pos = i
}

// checkUTF8 fails where the buffer is not UTF-8, as binary files are not.
func (s *scanner) checkUTF8() {
	if utf8.Valid(s.buf) {
		return
	}
	for i := 0; i < len(s.buf); {
		r, n := utf8.DecodeRune(s.buf[i:])
		if r == utf8.RuneError && n <= 1 {
			s.fail(i, "the byte 0x%02x is not UTF-8 text: this is not a JSON file", s.buf[i])
			return
		}
		i += n
	}
}
