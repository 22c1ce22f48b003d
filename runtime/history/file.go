package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/durable"
	"github.com/stokehq/stoke/runtime/spec"
)

// File is the history of a run. One goroutine adds events; any number of others
// read them.
type File struct {
	path string

	keep      int // updates that stay in full
	keepUsage int // samples of a role's usage that stay in full

	mu      sync.Mutex
	file    *os.File // nil: there is none yet
	begun   bool     // the file is of this term: it may be written to
	last    int64    // number of the last event
	size    int64
	lines   int           // in the file
	updates int           // lines of updates, merged or not
	samples samples       // lines of usage, merged or not
	marks   []mark        // of every stride-th line
	bad     []extent      // lines that cannot be read
	changed chan struct{} // closed at the next change

	thinning sync.Mutex // held while the file is written again
}

// mark is where a line begins, and the number of its event.
type mark struct{ number, offset int64 }

// extent is a part of the file: [from, to).
type extent struct{ from, to int64 }

const (
	stride  = 256       // lines between two marks
	newest  = 10_000    // updates that stay in full
	recent  = 200       // samples of a role's usage that stay in full
	longest = 1 << 20   // bytes of a line
	copied  = 4 << 20   // bytes of one answer of Send, about
	buffer  = 256 << 10 // bytes read at a time
)

// errNotBegun is about an event that is added before Renew.
var errNotBegun = errors.New("write event: the history is another term's")

// Open reads the events of a file, which need not exist, and gives each to see.
// A last line without its end, of a coordinator that was killed while it wrote,
// is left out, and so are lines that cannot be read.
func Open(path string, see func(spec.Event)) (*File, error) {
	f := &File{path: path, keep: newest, keepUsage: recent, changed: make(chan struct{})}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = f.load(file, see)
	}
	if err != nil {
		file.Close() //nolint:errcheck // it was only read
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	f.file = file
	return f, nil
}

func (f *File) load(file *os.File, see func(spec.Event)) error {
	r := bufio.NewReaderSize(file, buffer)
	for at := int64(0); ; {
		line, size, err := readLine(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var e spec.Event
		if json.Unmarshal(line, &e) != nil || e.Number <= f.last {
			f.bad = append(f.bad, extent{at, at + size})
			f.size += size
		} else {
			f.advance(e, int(size))
			if see != nil {
				see(e)
			}
		}
		at += size
	}
}

// readLine returns the next whole line and its size. Of a line that is too long
// the beginning is returned.
func readLine(r *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(line) < longest {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, size, err
		}
	}
}

// advance notes a line of the file. Called with mu held, or by Open.
func (f *File) advance(e spec.Event, size int) {
	if f.lines%stride == 0 {
		f.marks = append(f.marks, mark{e.Number, f.size})
	}
	if e.Type == spec.EventUpdate || e.Type == spec.EventUpdates {
		f.updates++
	}
	f.samples.add(e)
	f.last, f.lines, f.size = e.Number, f.lines+1, f.size+int64(size)
}

// Renew lets events be added, in a new file that takes the old one's place and
// has all its events: a process that still writes to the old one changes nothing.
// The file of an earlier Renew stays, as long as no other process has replaced it:
// no other one writes to it. check is called last; its error keeps the old file.
// Damaged lines are moved to a file next to it, and counted.
func (f *File) Renew(check func() error) (damaged int, err error) {
	f.thinning.Lock()
	defer f.thinning.Unlock()
	if f.isOwn() {
		return 0, check()
	}
	if len(f.bad) > 0 {
		if err := f.putAside(); err != nil {
			return 0, err
		}
	}
	var l lines
	f.mu.Lock()
	file, size := f.file, f.size
	f.mu.Unlock()
	if file != nil {
		if err := l.read(file, size, f.bad, f.keep); err != nil {
			return 0, err
		}
		l.thin(f.keep)
		l.thinUsage(f.keepUsage)
	}
	damaged = len(f.bad)
	return damaged, f.rewrite(&l, check, func() { f.begun, f.bad = true, nil })
}

// isOwn reports whether the file is the one that this process began.
func (f *File) isOwn() bool {
	f.mu.Lock()
	file, begun := f.file, f.begun
	f.mu.Unlock()
	if !begun {
		return false
	}
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	present, err := os.Stat(f.path)
	return err == nil && os.SameFile(ours, present)
}

// putAside copies the lines that cannot be read to a file of their own.
func (f *File) putAside() error {
	for n := 1; ; n++ {
		to, err := os.OpenFile(fmt.Sprintf("%s.damaged-%d", f.path, n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("move damaged lines: %w", err)
		}
		for _, e := range f.bad {
			if _, err = io.Copy(to, io.NewSectionReader(f.file, e.from, e.to-e.from)); err != nil {
				break
			}
		}
		if err = errors.Join(err, to.Close()); err != nil {
			return fmt.Errorf("move damaged lines: %w", err)
		}
		return nil
	}
}

// rewrite gives the file new lines, and behind them the lines that were added
// since. done is called with mu held once the new file is in place.
func (f *File) rewrite(l *lines, check func() error, done func()) error {
	draft, err := durable.Create(f.path)
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	defer draft.Abort()
	if err = l.write(draft); err == nil {
		err = draft.Sync()
	}
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := File{changed: f.changed}
	for _, line := range l.all {
		next.advance(line.event, len(line.text))
	}
	if f.file != nil && f.size > l.size {
		var rest lines
		if err = rest.read(io.NewSectionReader(f.file, l.size, f.size-l.size), f.size-l.size, nil, 0); err == nil {
			err = rest.write(draft)
		}
		for _, line := range rest.all {
			next.advance(line.event, len(line.text))
		}
	}
	if err == nil {
		err = check()
	}
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(draft.Name(), os.O_RDWR, 0) // the path may be another coordinator's in a moment
	}
	if err == nil {
		if err = draft.Commit(); err != nil {
			file.Close() //nolint:errcheck // nothing was written by it
		}
	}
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	// A reader may have the old file open: it is closed with its last reader.
	f.file, f.size, f.lines, f.updates, f.samples, f.marks = file, next.size, next.lines, next.updates, next.samples, next.marks
	f.last = max(f.last, next.last)
	done()
	return nil
}

// Add writes one event, numbers it and sets its time.
func (f *File) Add(e spec.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.begun {
		return errNotBegun
	}
	e.Number, e.Time = f.last+1, time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	line = append(line, '\n')
	if _, err := f.file.WriteAt(line, f.size); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	f.advance(e, len(line))
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Sync makes the events durable.
func (f *File) Sync() error {
	f.mu.Lock()
	file := f.file
	f.mu.Unlock()
	if file == nil {
		return nil
	}
	return file.Sync()
}

// HasAfter reports whether there are events after number n, and else a channel that
// is closed once there are.
func (f *File) HasAfter(n int64) (bool, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last > n, f.changed
}

// Send writes the lines of the events after number n, up to a limit of bytes, and
// returns the number of the last one; n where there is none.
func (f *File) Send(w io.Writer, n int64) (last int64, err error) {
	f.mu.Lock()
	file, size, bad, from := f.file, f.size, f.bad, int64(0)
	for low, high := 0, len(f.marks); low < high; {
		middle := (low + high) / 2
		if m := f.marks[middle]; m.number <= n+1 {
			from, low = m.offset, middle+1
		} else {
			high = middle
		}
	}
	f.mu.Unlock()
	if file == nil {
		return n, nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(file, from, size-from), 64<<10)
	for at, sent := from, int64(0); sent < copied; {
		line, size, err := readLine(r)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("read events: %w", err)
		}
		number, ok := numberOf(line)
		damaged := slices.ContainsFunc(bad, func(e extent) bool { return e.from == at })
		if at += size; !ok || damaged || number <= n {
			continue
		}
		if _, err := w.Write(line); err != nil {
			return n, err
		}
		n, sent = number, sent+size
	}
	return n, nil
}

// numberOf returns the number of a line's event.
func numberOf(line []byte) (int64, bool) {
	text, found := bytes.CutPrefix(line, []byte(`{"n":`))
	end := bytes.IndexByte(text, ',')
	if !found || end < 1 || end > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range text[:end] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}
