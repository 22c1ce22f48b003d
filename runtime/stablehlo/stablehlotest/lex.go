package stablehlotest

import (
	"fmt"
	"strconv"
	"strings"
)

type kind int

const (
	end         kind = iota
	word             // stablehlo.add, dims, x
	value            // %name, without %
	symbol           // @name, without @
	caret            // ^bb0
	integer          // 12
	hexadecimal      // 0xFF, without 0x
	decimal          // 1.5e+00
	text             // "quoted"
	hash             // #1, #stablehlo.gather, without #
	tensorType       // tensor<2xf32>
	punctuation      // ( ) { } [ ] < > , : = - ->
)

type token struct {
	kind kind
	text string
	line int
	t    Type // of tensorType
}

func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case value:
		return "%" + t.text
	case symbol:
		return "@" + t.text
	case hash:
		return "#" + t.text
	case hexadecimal:
		return "0x" + t.text
	case text:
		return strconv.Quote(t.text)
	}
	return t.text
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// scanner splits a text into tokens, as MLIR's lexer does.
type scanner struct {
	text string
	at   int
	line int
}

func scan(source string) ([]token, error) {
	s := &scanner{text: source, line: 1}
	var tokens []token
	for {
		s.skip()
		t, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", s.line, err)
		}
		tokens = append(tokens, t)
		if t.kind == end {
			return tokens, nil
		}
	}
}

// skip passes space and comments.
func (s *scanner) skip() {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.line++
			s.at++
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case strings.HasPrefix(s.text[s.at:], "//"):
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.at++
			}
		default:
			return
		}
	}
}

// span takes the characters from the current one on that a function accepts.
func (s *scanner) span(accept func(c byte) bool) string {
	from := s.at
	for s.at < len(s.text) && accept(s.text[s.at]) {
		s.at++
	}
	return s.text[from:s.at]
}

func (s *scanner) next() (token, error) {
	t := token{line: s.line}
	if s.at == len(s.text) {
		return t, nil
	}
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "tensor<"):
		closing := strings.IndexByte(rest, '>')
		if closing < 0 {
			return t, fmt.Errorf("a tensor's type has no end")
		}
		t.kind, t.text = tensorType, rest[:closing+1]
		s.at += closing + 1
		var err error
		t.t, err = parseType(t.text)
		return t, err
	case isLetter(c):
		t.kind = word
		t.text = s.span(func(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' || c == '.' })
	case isDigit(c):
		s.number(&t)
	case c == '"':
		closing := strings.IndexAny(rest[1:], "\"\\\n")
		if closing < 0 || rest[1+closing] != '"' {
			return t, fmt.Errorf("a string has no end, or an escape, which is not supported")
		}
		t.kind, t.text = text, rest[1:1+closing]
		s.at += closing + 2
	case strings.IndexByte("%@#^", c) >= 0:
		return t, s.name(&t)
	case strings.HasPrefix(rest, "->"):
		t.kind, t.text = punctuation, "->"
		s.at += 2
	case strings.IndexByte("(){}[]<>,:=-", c) >= 0:
		t.kind, t.text = punctuation, rest[:1]
		s.at++
	default:
		return t, fmt.Errorf("unexpected character %q", c)
	}
	return t, nil
}

// name scans an identifier with its sigil: a number, or a word.
func (s *scanner) name(t *token) error {
	sigil := s.text[s.at]
	t.kind = map[byte]kind{'%': value, '@': symbol, '#': hash, '^': caret}[sigil]
	s.at++
	mark := func(c byte) bool { return c == '$' || c == '.' || c == '-' }
	switch {
	case s.at < len(s.text) && isDigit(s.text[s.at]) && sigil != '@':
		t.text = s.span(isDigit)
	case s.at < len(s.text) && (isLetter(s.text[s.at]) || sigil != '@' && mark(s.text[s.at])):
		t.text = s.span(func(c byte) bool { return isLetter(c) || isDigit(c) || mark(c) && (c != '-' || sigil != '@') })
	default:
		return fmt.Errorf("%c without a name", sigil)
	}
	return nil
}

// number scans 12, 0xFF or 1.5e+00. MLIR has no exponent without a point.
func (s *scanner) number(t *token) {
	rest := s.text[s.at:]
	if len(rest) > 2 && rest[:2] == "0x" && isHex(rest[2]) {
		s.at += 2
		t.kind, t.text = hexadecimal, s.span(isHex)
		return
	}
	from := s.at
	s.span(isDigit)
	t.kind = integer
	if s.at < len(s.text) && s.text[s.at] == '.' {
		t.kind = decimal
		s.at++
		s.span(isDigit)
		if rest := s.text[s.at:]; len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') {
			signed := rest[1] == '+' || rest[1] == '-'
			if isDigit(rest[1]) || signed && len(rest) > 2 && isDigit(rest[2]) {
				s.at += 2
				s.span(isDigit)
			}
		}
	}
	t.text = s.text[from:s.at]
}

// parseType reads tensor<2x3xf32>.
func parseType(source string) (Type, error) {
	var t Type
	rest := strings.TrimSuffix(strings.TrimPrefix(source, "tensor<"), ">")
	size := 1
	for rest != "" && isDigit(rest[0]) {
		number, after, ok := strings.Cut(rest, "x")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return t, fmt.Errorf("%s is not a tensor's type of known dimensions", source)
		}
		if size != 0 && n > maxElements/size {
			return t, fmt.Errorf("%s has too many elements", source)
		}
		size *= n
		t.Dims = append(t.Dims, n)
		rest = after
	}
	t.Element = rest
	if bitsOf(rest) == 0 {
		return t, fmt.Errorf("%s has the element type %q, which is not known", source, rest)
	}
	return t, nil
}
