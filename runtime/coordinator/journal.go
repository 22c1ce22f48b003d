package coordinator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// journal is metrics.jsonl: appended to by loop, read by the API.
type journal struct {
	file       *os.File
	generation int64 // of the last line when it was opened
	restores   []restored

	mu      sync.Mutex
	last    int64 // number of the last event
	size    int64
	marks   []int64       // marks[i]: where event i×stride+1 begins
	changed chan struct{} // closed at the next append
}

// restored is a point of the run's history to which it went back.
type restored struct{ generation, step int64 }

// stride is how many events lie between two marks.
const stride = 256

// openJournal goes on where the file ends. A torn last line, of a coordinator
// that was killed while writing, is cut off.
func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	j := &journal{file: file, changed: make(chan struct{})}
	r := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var e struct {
			Number     int64          `json:"n"`
			Type       spec.EventType `json:"type"`
			Generation int64          `json:"generation"`
			Step       int64          `json:"step"`
		}
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err == nil && e.Number != j.last+1 {
			err = fmt.Errorf("event %d follows event %d", e.Number, j.last)
		}
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("open metrics: %s at byte %d: %w", path, j.size, err)
		}
		j.advance(len(line))
		j.generation = max(j.generation, e.Generation)
		if e.Type == spec.EventRestore {
			j.restores = append(j.restores, restored{e.Generation, e.Step})
		}
	}
	if err := file.Truncate(j.size); err != nil {
		file.Close()
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	if _, err := file.Seek(j.size, io.SeekStart); err != nil {
		file.Close()
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	return j, nil
}

func (j *journal) advance(bytes int) {
	if j.last%stride == 0 {
		j.marks = append(j.marks, j.size)
	}
	j.last++
	j.size += int64(bytes)
}

// append writes one event and numbers it.
func (j *journal) append(e spec.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
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
	if e.Type == spec.EventRestore {
		j.restores = append(j.restores, restored{e.Generation, e.Step})
	}
	close(j.changed)
	j.changed = make(chan struct{})
	return nil
}

// sync makes what was written durable.
func (j *journal) sync() error { return j.file.Sync() }

func (j *journal) close() error { return j.file.Close() }

// after reports whether there are events after number n, and else a channel
// that is closed once there are.
func (j *journal) after(n int64) (bool, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last > n, j.changed
}

// maxCopied bounds the bytes of one answer; the reader asks again.
const maxCopied = 4 << 20

// copy writes the lines of the events after number n, up to a limit.
func (j *journal) copy(w io.Writer, n int64) error {
	j.mu.Lock()
	last, size := j.last, j.size
	if n < 0 || n >= last {
		n = min(max(n, 0), last)
	}
	if n == last {
		j.mu.Unlock()
		return nil
	}
	from := j.marks[n/stride]
	j.mu.Unlock()
	r := bufio.NewReaderSize(io.NewSectionReader(j.file, from, size-from), 64<<10)
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
