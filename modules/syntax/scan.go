package syntax

import (
	"bytes"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	// maxNesting bounds brackets, templates and blocks within each other.
	// hcl's parser takes about 3 KB of stack for each.
	maxNesting = 1000
	// maxChain bounds the operators, indices and splats of one expression:
	// hcl parses some of them recursively and evaluates all of them so.
	maxChain = 10_000
	// maxPieces bounds the lines and interpolations of one text. hcl joins
	// pieces of text in time that grows with the square of their number:
	// 30,000 take about a second.
	maxPieces = 30_000
	// chunkSize is how much of a file is worth a goroutine, in bytes.
	chunkSize = 8 << 10
)

// dialect is what a text is, which decides how it starts and whether a
// newline ends an expression in it.
type dialect uint8

const (
	config     dialect = iota // a body
	expression                // one expression
	template                  // text with interpolations
)

// blockStart is a place between two top-level blocks.
type blockStart struct{ offset, line int }

// outline is what a scan finds.
type outline struct {
	cuts    []blockStart // where the file can be split, at least chunkSize apart
	broken  bool         // brackets do not match: never split
	deep    bool         // beyond the limits; deepAt says where
	deepAt  int          // byte offset
	deepest string
	long    bool // it is a text that has too many pieces
}

// scan follows hcl's lexer through the text, without building its tokens,
// and counts how deeply the parser would recurse. It may say more than the
// truth for text that does not parse, never less.
func scan(src []byte, d dialect) outline {
	s := newScanner(src, d)
	for s.pos < len(s.src) && !s.out.deep {
		s.step()
	}
	if len(s.frames) > 1 {
		s.out.broken = true
	}
	return s.out
}

func newScanner(src []byte, d dialect) *scanner {
	s := &scanner{src: src, dialect: d, line: 1}
	mode := inCode
	if d == template {
		mode = inBare
	}
	s.modes = append(s.modes, lexMode{kind: mode})
	s.frames = append(s.frames, frame{})
	return s
}

// step reads one token or a piece of text.
func (s *scanner) step() {
	switch s.modes[len(s.modes)-1].kind {
	case inCode:
		s.code()
	case inQuotes:
		s.quotes()
	default:
		s.text()
	}
}

// lexKind is a state of hcl's lexer that has its own rules.
type lexKind uint8

const (
	inCode lexKind = iota
	inQuotes
	inHeredoc
	inBare
)

type lexMode struct {
	kind      lexKind
	marker    []byte // that ends a heredoc
	lineStart bool   // nothing of this line has been read: the marker may come
}

// frame is one thing that the parser is inside of.
type frame struct {
	open    byte // ( [ { " < for a heredoc, $ and % for template sequences; 0 for the text itself
	started bool // its first token was seen
	isFor   bool // a for expression: newlines mean nothing
	chain   int  // recursion within the current item beyond the frame itself
	pieces  int  // of text, and interpolations
}

type scanner struct {
	src     []byte
	dialect dialect
	pos     int
	line    int
	last    byte // last significant byte of code
	lastCut int

	modes  []lexMode
	frames []frame
	braces int   // as hcl's lexer counts them
	ret    []int // brace counts at which a template sequence ends
	chains int   // sum of the frames' chains

	out outline
}

func (s *scanner) top() *frame { return &s.frames[len(s.frames)-1] }

func (s *scanner) peek(n int) byte {
	if s.pos+n < len(s.src) {
		return s.src[s.pos+n]
	}
	return 0
}

func (s *scanner) push(open byte) {
	s.top().started = true
	s.frames = append(s.frames, frame{open: open})
	if len(s.frames) > maxNesting {
		s.tooDeep("brackets, blocks and templates")
	}
}

func (s *scanner) tooDeep(what string) {
	if !s.out.deep {
		s.out.deep, s.out.deepAt, s.out.deepest = true, s.pos, what
	}
}

// pop leaves the frame that open opened. Brackets that were left open within
// it make the text invalid, and the parser leaves them too.
func (s *scanner) pop(open byte) {
	for len(s.frames) > 1 {
		f := s.top()
		s.chains -= f.chain
		s.frames = s.frames[:len(s.frames)-1]
		if f.open == open {
			return
		}
		s.out.broken = true
	}
}

// closing leaves a bracket, if it is the innermost thing.
func (s *scanner) closing(open byte) {
	if s.top().open != open {
		s.out.broken = true
		return
	}
	s.pop(open)
}

// piece counts what hcl makes a part of a template.
func (s *scanner) piece() {
	if s.top().pieces++; s.top().pieces > maxPieces {
		s.tooDeep("pieces")
		s.out.long = true
	}
}

func (s *scanner) extend(n int) {
	s.top().chain += n
	s.chains += n
	if s.chains > maxChain {
		s.tooDeep("operators and indices")
	}
}

// endItem starts counting anew: the parser has left the expression.
func (s *scanner) endItem() {
	f := s.top()
	s.chains -= f.chain
	f.chain = 0
}

// code reads one token outside of strings.
func (s *scanner) code() {
	c := s.src[s.pos]
	switch {
	case c == ' ' || c == '\t' || c == '\r':
		s.pos++
		return
	case c == '\n':
		s.newline()
		return
	case c == '#' || c == '/' && s.peek(1) == '/':
		n := bytes.IndexByte(s.src[s.pos:], '\n')
		if n < 0 {
			n = len(s.src) - s.pos
		}
		s.pos += n
		return
	case c == '/' && s.peek(1) == '*':
		if n := bytes.Index(s.src[s.pos+2:], []byte("*/")); n >= 0 {
			s.line += bytes.Count(s.src[s.pos:s.pos+2+n], []byte{'\n'})
			s.pos += n + 4
			return
		}
		s.out.broken = true
	case isIdentStart(c):
		s.ident()
		return
	}
	s.top().started = true
	s.punctuation(c)
	s.last = c
}

func (s *scanner) newline() {
	s.pos++
	s.line++
	f := s.top()
	if f.open == 0 && s.dialect == config || f.open == '{' && !f.isFor {
		s.endItem()
	}
	if len(s.frames) == 1 && s.last == '}' && s.dialect == config && s.pos-s.lastCut >= chunkSize {
		s.out.cuts = append(s.out.cuts, blockStart{s.pos, s.line})
		s.lastCut = s.pos
	}
}

func (s *scanner) ident() {
	start := s.pos
	for s.pos < len(s.src) && isIdent(s.src[s.pos]) {
		s.pos++
	}
	f := s.top()
	if !f.started {
		f.started = true
		switch word := string(s.src[start:s.pos]); f.open {
		case '{', '[':
			f.isFor = word == "for"
		case '%':
			s.directive(word)
		}
	}
	s.last = 'a'
}

// directive follows %{ if } and %{ for }, which nest without brackets. What
// they add belongs to the template around them.
func (s *scanner) directive(word string) {
	around := &s.frames[len(s.frames)-2]
	switch word {
	case "if", "for":
		around.chain++
		s.chains++
		if s.chains > maxNesting {
			s.tooDeep("template directives")
		}
	case "endif", "endfor":
		if around.chain > 0 {
			around.chain--
			s.chains--
		}
	}
}

func (s *scanner) punctuation(c byte) {
	next := s.peek(1)
	switch c {
	case '"':
		s.pos++
		s.push('"')
		s.modes = append(s.modes, lexMode{kind: inQuotes})
		return
	case '(':
		s.push(c)
	case '[':
		s.extend(1) // an index stays in the expression when it is closed
		s.push(c)
	case '{':
		s.braces++
		s.push(c)
	case ')':
		s.closing('(')
	case ']':
		s.closing('[')
	case '}':
		s.closeBrace(1)
		return
	case '~':
		if next == '}' {
			s.closeBrace(2)
			return
		}
	case ',':
		s.endItem()
	case '<':
		if next == '<' && s.heredoc() {
			return
		}
		s.operator(next == '=')
		return
	case '=':
		s.operator(next == '=' || next == '>')
		return
	case '!', '>':
		s.operator(next == '=')
		return
	case '&', '|':
		s.operator(next == c)
		return
	case '+', '-', '*', '/', '%', '?':
		s.operator(false)
		return
	}
	s.pos++
}

func (s *scanner) operator(two bool) {
	s.extend(1)
	s.pos++
	if two {
		s.pos++
	}
}

// closeBrace reads } or ~}, which ends a template sequence when no other
// brace is open in it.
func (s *scanner) closeBrace(length int) {
	defer func() { s.pos += length }()
	if n := len(s.ret); n > 0 && s.ret[n-1] == s.braces {
		s.ret = s.ret[:n-1]
		s.braces--
		s.modes = s.modes[:len(s.modes)-1]
		for len(s.frames) > 1 {
			open := s.top().open
			s.pop(open)
			if open == '$' || open == '%' {
				return
			}
			s.out.broken = true
		}
		return
	}
	s.braces--
	if length == 2 {
		s.out.broken = true
		return
	}
	s.closing('{')
}

// heredoc reads an introducer such as <<-EOT and its newline, if one is here.
func (s *scanner) heredoc() bool {
	rest := s.src[s.pos+2:]
	length := 2
	if len(rest) > 0 && rest[0] == '-' {
		rest = rest[1:]
		length++
	}
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		return false
	}
	marker := bytes.TrimSuffix(rest[:end], []byte("\r"))
	if len(marker) == 0 || !isIdentStart(marker[0]) || !validMarker(marker) {
		return false
	}
	s.pos += length + end + 1
	s.line++
	s.push('<')
	s.modes = append(s.modes, lexMode{kind: inHeredoc, marker: marker, lineStart: true})
	return true
}

func validMarker(marker []byte) bool {
	for _, c := range marker {
		if c >= 0x80 {
			return hclsyntax.ValidIdentifier(string(marker))
		}
		if !isIdent(c) {
			return false
		}
	}
	return true
}

func isIdentStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isIdent(c byte) bool { return isIdentStart(c) || c >= '0' && c <= '9' || c == '-' }
