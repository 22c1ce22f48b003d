package worker

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/wire"
)

// tellTime is how long the coordinator has to take the last lines of a log.
const tellTime = 2 * time.Second

// Tail keeps the last lines of a worker's log, as many as it may send when it
// leaves: its log may be gone a moment later. The zero Tail is ready for use.
type Tail struct {
	mu    sync.Mutex
	lines []string
	bytes int
}

// Write adds whole lines, as a logger writes them. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(p) {
		text := strings.ToValidUTF8(strings.TrimRight(string(line[:min(len(line), wire.LogBytes)]), "\r\n"), "?")
		t.lines, t.bytes = append(t.lines, text), t.bytes+len(text)
	}
	first := 0
	for len(t.lines)-first > wire.LogLines || t.bytes > wire.LogBytes {
		t.bytes -= len(t.lines[first])
		first++
	}
	t.lines = append(t.lines[:0], t.lines[first:]...)
	return len(p), nil
}

// Lines are those that are kept, the last ones last.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}

// tellLog sends the last lines of the worker's log, if it keeps them. Whether
// they arrive changes nothing, and takes no longer than a moment.
func (o *Options) tellLog(c *wire.Conn) {
	if o.Tail == nil {
		return
	}
	lines := o.Tail.Lines()
	if len(lines) == 0 {
		return
	}
	late := time.AfterFunc(tellTime, func() { c.Close() })
	defer late.Stop()
	if err := c.Send(wire.TypeLog, wire.Log{Lines: lines}, nil); err != nil {
		o.Log.Warn("cannot send the last lines of the log", "error", err)
	}
}
