package view

import (
	"bufio"
	"encoding/json"
	"io"
)

// jsonWriter writes a JSON document piece by piece, so that a large one is
// never in memory as a whole. The first error is kept and ends the writing.
type jsonWriter struct {
	out   *bufio.Writer
	comma bool // something stands before, in the innermost container
	err   error
}

func newJSONWriter(out io.Writer) *jsonWriter {
	return &jsonWriter{out: bufio.NewWriterSize(out, 64<<10)}
}

// object writes an object whose members body writes.
func (w *jsonWriter) object(body func()) { w.enclose('{', '}', body) }

// array writes an array whose elements body writes.
func (w *jsonWriter) array(body func()) { w.enclose('[', ']', body) }

func (w *jsonWriter) enclose(open, end byte, body func()) {
	w.separate()
	w.byte(open)
	w.comma = false
	body()
	w.byte(end)
	w.comma = true
}

// name starts a member; its value must follow.
func (w *jsonWriter) name(n string) {
	w.value(n)
	w.byte(':')
	w.comma = false
}

// member writes a member of an object.
func (w *jsonWriter) member(n string, v any) {
	w.name(n)
	w.value(v)
}

// optional writes a string member unless it is empty.
func (w *jsonWriter) optional(n, v string) {
	if v != "" {
		w.member(n, v)
	}
}

// value writes an element of an array, or the value of a member.
func (w *jsonWriter) value(v any) {
	w.separate()
	text, err := json.Marshal(v)
	if err != nil {
		w.fail(err)
		return
	}
	if _, err := w.out.Write(text); err != nil {
		w.fail(err)
	}
	w.comma = true
}

func (w *jsonWriter) separate() {
	if w.comma {
		w.byte(',')
	}
}

func (w *jsonWriter) byte(c byte) {
	if err := w.out.WriteByte(c); err != nil {
		w.fail(err)
	}
}

func (w *jsonWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// finish writes what is buffered and says what went wrong.
func (w *jsonWriter) finish() error {
	if err := w.out.Flush(); err != nil {
		w.fail(err)
	}
	return w.err
}
