package state

import (
	"encoding/base64"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

// writer builds JSON in memory, indented by two spaces as Terraform's, or
// without white space. Texts of values that it is given must be valid JSON.
type writer struct {
	buf    []byte
	indent bool
	depth  int
	first  bool // nothing has been written into the innermost container
}

func (w *writer) open(c byte) {
	w.buf = append(w.buf, c)
	w.depth++
	w.first = true
}

func (w *writer) close(c byte) {
	w.depth--
	if !w.first {
		w.line()
	}
	w.buf = append(w.buf, c)
	w.first = false
}

// next starts the next member or element of the innermost container.
func (w *writer) next() {
	if !w.first {
		w.buf = append(w.buf, ',')
	}
	w.first = false
	w.line()
}

func (w *writer) line() {
	if !w.indent {
		return
	}
	w.buf = append(w.buf, '\n')
	for range w.depth {
		w.buf = append(w.buf, ' ', ' ')
	}
}

func (w *writer) name(n string) {
	w.next()
	w.str(n)
	w.buf = append(w.buf, ':')
	if w.indent {
		w.buf = append(w.buf, ' ')
	}
}

func (w *writer) stringMember(name, v string) {
	w.name(name)
	w.str(v)
}

// optional writes a string member unless it is empty.
func (w *writer) optional(name, v string) {
	if v != "" {
		w.stringMember(name, v)
	}
}

func (w *writer) unsignedMember(name string, v uint64) {
	w.name(name)
	w.buf = strconv.AppendUint(w.buf, v, 10)
}

func (w *writer) rawMember(name string, js []byte) {
	w.name(name)
	w.raw(js)
}

// trueMember writes a member that is true, or nothing.
func (w *writer) trueMember(name string, v bool) {
	if v {
		w.name(name)
		w.buf = append(w.buf, "true"...)
	}
}

// raw writes the text of a value, laid out like everything else.
func (w *writer) raw(js []byte) {
	if !w.indent {
		w.buf = append(w.buf, js...)
		return
	}
	for i := 0; i < len(js); {
		switch c := js[i]; c {
		case ' ', '\n', '\t', '\r':
			i++
			continue
		case '"':
			n := stringEnd(js, i)
			w.element()
			w.buf = append(w.buf, js[i:n]...)
			i = n
			continue
		case '{', '[':
			w.element()
			w.open(c)
		case '}', ']':
			w.close(c)
		case ',':
			w.buf = append(w.buf, ',')
			w.line()
		case ':':
			w.buf = append(w.buf, ':', ' ')
		default:
			w.element()
			w.buf = append(w.buf, c)
		}
		i++
	}
	w.first = false
}

// element starts a line if the container that raw is in was empty so far.
func (w *writer) element() {
	if w.first {
		w.line()
		w.first = false
	}
}

const hexDigits = "0123456789abcdef"

func (w *writer) str(v string) {
	w.buf = append(w.buf, '"')
	from := 0
	for i := 0; i < len(v); {
		c := v[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(v[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			w.buf = append(append(w.buf, v[from:i]...), `\ufffd`...)
		} else {
			w.buf = append(w.buf, v[from:i]...)
			switch c {
			case '"', '\\':
				w.buf = append(w.buf, '\\', c)
			case '\n':
				w.buf = append(w.buf, '\\', 'n')
			default:
				w.buf = append(w.buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		i++
		from = i
	}
	w.buf = append(append(w.buf, v[from:]...), '"')
}

// key writes an instance key as a member, unless it is none.
func (w *writer) key(k address.Key) {
	if n, ok := k.Int(); ok {
		w.name("index_key")
		w.buf = strconv.AppendInt(w.buf, int64(n), 10)
	} else if s, ok := k.Str(); ok {
		w.stringMember("index_key", s)
	}
}

func (w *writer) base64Member(name string, b []byte) {
	if len(b) == 0 {
		return
	}
	w.name(name)
	w.buf = append(w.buf, '"')
	w.buf = base64.StdEncoding.AppendEncode(w.buf, b)
	w.buf = append(w.buf, '"')
}

func (w *writer) stringsMember(name string, v []string) {
	if len(v) == 0 {
		return
	}
	w.name(name)
	w.open('[')
	for _, s := range v {
		w.next()
		w.str(s)
	}
	w.close(']')
}

// pathsMember writes attribute paths as Terraform does: each an array of steps.
func (w *writer) pathsMember(name string, paths []cty.Path) {
	w.name(name)
	w.open('[')
	for _, p := range paths {
		w.next()
		w.open('[')
		for _, step := range storable(p) {
			w.next()
			w.step(step)
		}
		w.close(']')
	}
	w.close(']')
}

// storable cuts a path where version 4 has no way to write it: at an element
// of a set. What is left means the whole set.
func storable(p cty.Path) cty.Path {
	for i, step := range p {
		if ix, ok := step.(cty.IndexStep); ok {
			t := ix.Key.Type()
			if !ix.Key.IsKnown() || ix.Key.IsNull() || t != cty.String && t != cty.Number {
				return p[:i]
			}
		}
	}
	return p
}

func (w *writer) step(step cty.PathStep) {
	w.open('{')
	switch s := step.(type) {
	case cty.GetAttrStep:
		w.stringMember("type", "get_attr")
		w.stringMember("value", s.Name)
	case cty.IndexStep:
		w.stringMember("type", "index")
		w.name("value")
		w.open('{')
		if s.Key.Type() == cty.String {
			w.stringMember("value", s.Key.AsString())
			w.stringMember("type", "string")
		} else {
			w.name("value")
			if n, acc := s.Key.AsBigFloat().Int64(); acc == big.Exact {
				w.buf = strconv.AppendInt(w.buf, n, 10)
			} else {
				w.buf = s.Key.AsBigFloat().Append(w.buf, 'g', -1)
			}
			w.stringMember("type", "number")
		}
		w.close('}')
	}
	w.close('}')
}
