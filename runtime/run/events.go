package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// EventFilter selects events of a run, and parts of each. The zero value selects all of
// all events.
type EventFilter struct {
	After int64     // number of the last event that the caller has
	Since time.Time // leaves out older events; zero: none
	Usage UsageFilter
	Role  string // of usage: this role's only; "": of all roles
	Brief bool   // leaves out the contributions of updates: most of a file is about them
}

// UsageFilter selects samples of usage, other events, or both.
type UsageFilter int

// The values of UsageFilter.
const (
	WithUsage UsageFilter = iota
	WithoutUsage
	OnlyUsage
)

// Accepts reports whether an event is wanted.
func (f EventFilter) Accepts(e spec.Event) bool {
	if f.isBefore(head{number: e.Number, time: e.Time, kind: e.Type}) || !f.Usage.accepts(e.Type == spec.EventUsage) {
		return false
	}
	return f.Role == "" || e.Usage == nil || e.Usage.Role == f.Role
}

// isBefore reports whether an event is older than the wanted ones.
func (f EventFilter) isBefore(h head) bool {
	return h.number <= f.After || !f.Since.IsZero() && h.time.Before(f.Since)
}

// accepts reports whether events are wanted that are samples of usage, or are not.
func (f UsageFilter) accepts(isUsage bool) bool {
	return f == WithUsage || isUsage == (f == OnlyUsage)
}

// Events reads metrics.jsonl while a coordinator adds lines. It begins at the first
// wanted event, and decodes the lines of wanted events only.
type Events struct {
	file   *os.File
	reader *bufio.Reader
	want   EventFilter
	part   []byte // the beginning of a line: its end is not written yet, or not read
	isLong bool   // the line is too long for an event: the rest of it is left out
	read   int64
}

// Bounds of reading events.
const (
	longestEvent = 8 << 20   // bytes of a line
	eventBuffer  = 128 << 10 // bytes read at a time
	nearEnough   = 256 << 10 // bytes that are read rather than searched
)

// OpenEvents opens the events of a file. The caller closes them.
func OpenEvents(path string, want EventFilter) (*Events, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	e := &Events{file: file, want: want}
	at, err := e.start()
	if err == nil {
		_, err = file.Seek(at, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	e.reader = bufio.NewReaderSize(counted{file, &e.read}, eventBuffer)
	return e, nil
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n *int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}

// Close closes the file.
func (e *Events) Close() error { return e.file.Close() }

// IsReplaced reports whether the path has another file now: a coordinator writes its
// events to a new file when it starts, and when it merges older events. A path
// without a file has not been replaced: the open file has the events.
func (e *Events) IsReplaced(path string) bool {
	found, err := os.Stat(path)
	if err != nil {
		return false
	}
	own, err := e.file.Stat()
	return err == nil && !os.SameFile(own, found)
}

// start returns the offset of a line: all wanted events follow it. Numbers and
// times of events rise, so that a binary search finds it.
func (e *Events) start() (int64, error) {
	if e.want.After <= 0 && e.want.Since.IsZero() {
		return 0, nil
	}
	stat, err := e.file.Stat()
	if err != nil {
		return 0, err
	}
	low, high := int64(0), stat.Size()
	for high-low > nearEnough {
		middle := low + (high-low)/2
		at, h, err := e.lineBehind(middle, high)
		if err != nil {
			return 0, err
		}
		if at < 0 || !e.want.isBefore(h) {
			high = middle
		} else {
			low = at
		}
	}
	return low, nil
}

// lineBehind returns the offset and the head of the first line with an event that
// begins in (from, to); -1 where there is none.
func (e *Events) lineBehind(from, to int64) (int64, head, error) {
	section := io.NewSectionReader(e.file, from, to-from)
	r := bufio.NewReaderSize(counted{section, &e.read}, 4<<10)
	at := from
	for isFirst := true; ; isFirst = false {
		line, size, err := readStart(r)
		if err == io.EOF {
			return -1, head{}, nil
		}
		if err != nil {
			return -1, head{}, err
		}
		if h, ok := headOf(line); ok && !isFirst { // the first one is the rest of a line
			return at, h, nil
		}
		at += size
	}
}

// readStart returns the beginning of the next whole line, and the line's size.
func readStart(r *bufio.Reader) (start []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if size == 0 {
			start = bytes.Clone(part[:min(len(part), longestHead)])
		}
		size += int64(len(part))
		if err != bufio.ErrBufferFull {
			return start, size, err
		}
	}
}

// Next returns the next wanted event; ok is false where the file has none yet. It skips
// lines without a valid event: a crash may leave such lines.
func (e *Events) Next() (event spec.Event, ok bool, err error) {
	for {
		line, err := e.line()
		if line == nil || err != nil {
			return spec.Event{}, false, err
		}
		h, known := headOf(line)
		if known && !e.isWanted(h, line) {
			continue
		}
		if e.want.Brief {
			line = withoutTaken(line)
		}
		isUpdate := false
		if known {
			event, isUpdate = decodeUpdate(h, line)
		}
		if !isUpdate {
			event = spec.Event{}
			if json.Unmarshal(line, &event) != nil {
				continue
			}
		}
		if !e.want.Accepts(event) {
			continue
		}
		e.want.After = event.Number
		return event, true, nil
	}
}

// isWanted reports whether the event of a line may be wanted, before it is decoded.
func (e *Events) isWanted(h head, line []byte) bool {
	switch isUsage := h.kind == spec.EventUsage; {
	case e.want.isBefore(h) || !e.want.Usage.accepts(isUsage):
		return false
	case !isUsage || e.want.Role == "":
		return true
	}
	role, err := json.Marshal(e.want.Role)
	return err != nil || bytes.Contains(line, append([]byte(`"role":`), role...))
}

// line returns the next whole line, valid until the next call; nil at the present end of
// the file.
func (e *Events) line() ([]byte, error) {
	for {
		data, err := e.reader.ReadSlice('\n')
		switch {
		case err == nil && len(e.part) == 0 && !e.isLong:
			return data, nil
		case err != nil && err != io.EOF && err != bufio.ErrBufferFull:
			return nil, err
		}
		isWhole := err == nil
		if len(e.part)+len(data) > longestEvent {
			e.part, e.isLong = nil, true
		}
		if !e.isLong {
			e.part = append(e.part, data...)
		}
		switch {
		case isWhole && e.isLong:
			e.isLong = false
		case isWhole:
			whole := e.part
			e.part = nil
			return whole, nil
		case err == io.EOF:
			return nil, nil
		}
	}
}

// head is the beginning of an event's line, which needs no decoding of the rest.
type head struct {
	number int64
	time   time.Time
	kind   spec.EventType
	size   int // bytes of the line that it takes
}

// longestHead bounds the bytes of a line that have its head.
const longestHead = 128

// headOf returns the head of a line as encoding/json writes spec.Event; ok is false for
// any other line.
func headOf(line []byte) (h head, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"n":`))
	i := 0
	for ; ok && i < len(rest) && i < 18 && rest[i] >= '0' && rest[i] <= '9'; i++ {
		h.number = 10*h.number + int64(rest[i]-'0')
	}
	if !ok || i == 0 {
		return head{}, false
	}
	text, rest, ok := quoted(rest[i:], `,"time":"`)
	if !ok || h.time.UnmarshalText(text) != nil {
		return head{}, false
	}
	if text, rest, ok = quoted(rest, `,"type":"`); !ok {
		return head{}, false
	}
	h.kind, h.size = typeOf(text), len(line)-len(rest)
	return h, true
}

// typeOf returns a type of events. The types of most lines take no memory.
func typeOf(text []byte) spec.EventType {
	for _, known := range []spec.EventType{spec.EventUpdate, spec.EventUpdates, spec.EventUsage} {
		if string(text) == string(known) {
			return known
		}
	}
	return spec.EventType(text)
}

// quoted returns the text between a prefix and the next quotation mark, and the bytes
// behind that.
func quoted(line []byte, prefix string) (text, rest []byte, ok bool) {
	line, ok = bytes.CutPrefix(line, []byte(prefix))
	if !ok {
		return nil, nil, false
	}
	text, rest, ok = bytes.Cut(line, []byte{'"'})
	return text, rest, ok && !bytes.ContainsRune(text, '\\')
}

// withoutTaken removes the contributions of an update from its line. No text of an event
// has the bytes that begin them, as a quotation mark within a text is escaped; they have
// numbers only.
func withoutTaken(line []byte) []byte {
	from := bytes.Index(line, []byte(`,"taken":[`))
	if from < 0 {
		return line
	}
	size := bytes.IndexByte(line[from:], ']')
	if size < 0 {
		return line
	}
	return append(line[:from], line[from+size+1:]...)
}
