package syntax

import "bytes"

// quotes reads a piece of a quoted string.
func (s *scanner) quotes() {
	switch c := s.src[s.pos]; c {
	case '"':
		s.pos++
		s.modes = s.modes[:len(s.modes)-1]
		s.pop('"')
	case '\\':
		s.pos++
		if s.pos < len(s.src) && s.src[s.pos] != '\n' && s.src[s.pos] != '\r' {
			s.pos++
		}
	case '\n':
		s.line++
		s.pos++
	case '$', '%':
		s.introducer(c)
	default:
		s.pos++
		for s.pos < len(s.src) && !special(s.src[s.pos]) {
			s.pos++
		}
	}
}

func special(c byte) bool {
	return c == '"' || c == '\\' || c == '\n' || c == '$' || c == '%'
}

// text reads a piece of a heredoc or of a bare template: the rest of a line
// up to a template sequence.
func (s *scanner) text() {
	s.piece()
	m := &s.modes[len(s.modes)-1]
	rest := s.src[s.pos:]
	if c := rest[0]; c == '$' || c == '%' {
		m.lineStart = false
		s.introducer(c)
		return
	}
	end := bytes.IndexAny(rest, "$%\n")
	if end < 0 || rest[end] != '\n' {
		if end < 0 {
			end = len(rest)
		}
		m.lineStart = false
		s.pos += end
		return
	}
	s.pos += end + 1
	s.line++
	if m.kind == inHeredoc && m.lineStart && bytes.Equal(bytes.TrimSpace(rest[:end]), m.marker) {
		s.modes = s.modes[:len(s.modes)-1]
		s.pop('<')
		// The newline ends what the heredoc is the value of, too.
		s.pos--
		s.line--
		s.last = 'a'
		return
	}
	m.lineStart = true
}

// introducer reads ${ or %{, or the character that looked like its start.
func (s *scanner) introducer(c byte) {
	s.piece()
	switch {
	case s.peek(1) == c && s.peek(2) == '{': // $${ is text
		s.pos += 3
	case s.peek(1) == '{':
		s.pos += 2
		if s.peek(0) == '~' {
			s.pos++
		}
		for i := len(s.modes) - 1; i >= 0; i-- {
			if s.modes[i].kind == inHeredoc {
				s.modes[i].lineStart = false
				break
			}
		}
		s.braces++
		s.ret = append(s.ret, s.braces)
		s.push(c)
		s.modes = append(s.modes, lexMode{kind: inCode})
	default:
		s.pos++
	}
}
