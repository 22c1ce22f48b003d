package coordinator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// journal is metrics.jsonl: appended to by loop, read by the API.
type journal struct {
	path       string
	term       int64 // highest in it when it was opened
	generation int64 // likewise
	restores   []point
	saved      int64 // newest step of the run's history that was saved; 0: none

	mu      sync.Mutex
	file    *os.File // nil: there is none yet
	begun   bool     // the file is of this term: it may be written to
	last    int64    // number of the last event
	size    int64
	marks   []int64       // marks[i]: where event i×stride+1 begins
	changed chan struct{} // closed at the next append
}

// stride is how many events lie between two marks.
const stride = 256

// openJournal reads what there is. A torn last line, of a coordinator that was
// killed while writing, is left out.
func openJournal(path string) (*journal, error) {
	j := &journal{path: path, changed: make(chan struct{})}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	if err := j.load(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("open metrics: %s at byte %d: %w", path, j.size, err)
	}
	j.file = file
	return j, nil
}

func (j *journal) load(file *os.File) error {
	r := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var e struct {
			Number     int64          `json:"n"`
			Type       spec.EventType `json:"type"`
			Term       int64          `json:"term"`
			Generation int64          `json:"generation"`
			Step       int64          `json:"step"`
			Message    string         `json:"message"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Number != j.last+1 {
			return fmt.Errorf("event %d follows event %d", e.Number, j.last)
		}
		j.advance(len(line))
		term := spec.TermOf(e.Term, e.Generation)
		j.term, j.generation = max(j.term, term), max(j.generation, e.Generation)
		j.follow(e.Type, point{term, e.Step}, e.Message)
	}
}

// renew goes on in a file of its own that takes the old one's place and has all
// its events: whoever still writes to that reaches nobody.
func (j *journal) renew(check func() error) error {
	file, err := replace(j.path, func(to *os.File) error {
		if j.file == nil {
			return nil
		}
		if _, err := j.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.CopyN(to, j.file, j.size)
		return err
	}, check)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	// The old one may be being read: it is closed with its last reader.
	j.file, j.begun = file, true
	return nil
}

// follow keeps what an event says about where the run can go back to.
func (j *journal) follow(kind spec.EventType, at point, message string) {
	switch kind {
	case spec.EventRestore:
		j.restores = append(j.restores, at)
		j.saved = min(j.saved, at.version)
	case spec.EventCheckpoint:
		if _, err := fmt.Sscanf(message, savedMessage, &at.version); err == nil {
			j.saved = at.version
		}
	}
}

// savedMessage says in an event which step was saved.
const savedMessage = "step %d"

func (j *journal) advance(bytes int) {
	if j.last%stride == 0 {
		j.marks = append(j.marks, j.size)
	}
	j.last++
	j.size += int64(bytes)
}

// add writes one event and numbers it.
func (j *journal) add(e spec.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.begun {
		return errors.New("write event: the journal is another term's")
	}
	e.Number, e.Time = j.last+1, time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	line = append(line, '\n')
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	j.advance(len(line))
	j.follow(e.Type, point{e.Term, e.Step}, e.Message)
	close(j.changed)
	j.changed = make(chan struct{})
	return nil
}

// sync makes what was written durable.
func (j *journal) sync() error { return j.file.Sync() }

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// after reports whether there are events after number n, and else a channel
// that is closed once there are.
func (j *journal) after(n int64) (bool, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last > n, j.changed
}

// from gives the events that begin at byte at and how many bytes they have; nil
// where there are none yet, and a channel that is closed once there are.
func (j *journal) from(at int64) (events io.Reader, size int64, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size <= at {
		return nil, 0, j.changed
	}
	// A reader of its own, for the file may get a successor: with the same bytes.
	return io.NewSectionReader(j.file, at, j.size-at), j.size - at, j.changed
}

// maxCopied bounds the bytes of one answer; the reader asks again.
const maxCopied = 4 << 20

// send writes the lines of the events after number n, up to a limit.
func (j *journal) send(w io.Writer, n int64) error {
	j.mu.Lock()
	last, size := j.last, j.size
	if n < 0 || n >= last {
		n = min(max(n, 0), last)
	}
	if n == last {
		j.mu.Unlock()
		return nil
	}
	from, file := j.marks[n/stride], j.file
	j.mu.Unlock()
	r := bufio.NewReaderSize(io.NewSectionReader(file, from, size-from), 64<<10)
	copied := 0
	for at := n / stride * stride; at < last && copied < maxCopied; at++ {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if at < n {
			continue
		}
		copied += len(line)
		if _, err := io.Copy(w, bytes.NewReader(line)); err != nil {
			return err
		}
	}
	return nil
}
