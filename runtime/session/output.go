package session

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/stokehq/stoke/runtime/history"
	"github.com/stokehq/stoke/runtime/wire"
)

// flushTime is how long the reader of the output has for its last lines, after
// the coordinator's end; maxLogs, how many workers' logs may wait to be read.
const (
	flushTime = 5 * time.Second
	maxLogs   = 256
)

// output passes on every event of the history, in order: the events of earlier
// coordinators are the first. It reads events back from the file, so that a slow reader
// never blocks the loop. Between them are the last lines of the logs of workers.
type output struct {
	history *history.File
	to      io.Writer
	log     *slog.Logger
	logs    chan []byte   // lines that are whole
	ending  chan struct{} // closed when nothing more will be written
	ended   chan struct{} // closed when all of it is passed on, or never will be
}

func passOn(from *history.File, to io.Writer, log *slog.Logger) *output {
	o := &output{history: from, to: to, log: log, logs: make(chan []byte, maxLogs), ending: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		if err := o.follow(); err != nil {
			log.Warn("events are no longer passed on", "error", err)
		}
	}()
	return o
}

// follow writes until the end, or until an error.
func (o *output) follow() error {
	for n := int64(0); ; {
		select {
		case lines := <-o.logs:
			if _, err := o.to.Write(lines); err != nil {
				return err
			}
			continue
		default:
		}
		more, changed := o.history.HasAfter(n)
		if more {
			last, err := o.history.Send(o.to, n)
			if err != nil {
				return err
			}
			if last > n {
				n = last
				continue
			}
		}
		select {
		case <-changed:
		case lines := <-o.logs:
			if _, err := o.to.Write(lines); err != nil {
				return err
			}
		case <-o.ending:
			if more, _ := o.history.HasAfter(n); !more && len(o.logs) == 0 {
				return nil
			}
		}
	}
}

// close waits a moment until everything is passed on. A reader that takes nothing
// is left behind: this process ends.
func (o *output) close() {
	close(o.ending)
	select {
	case <-o.ended:
	case <-time.After(flushTime):
		o.log.Warn("the last events are not passed on: the reader is too slow")
	}
}

// logLine is a line of a role's log in the output.
type logLine struct {
	Role string `json:"role"` // worker-0
	Log  string `json:"log"`  // one line
}

// printLog passes on the last lines of a worker's log, unless too many wait
// already.
func (o *output) printLog(index int, log []string) {
	if o == nil {
		return
	}
	var text []byte
	for _, line := range log {
		data, err := json.Marshal(logLine{fmt.Sprintf("worker-%d", index), line})
		if err != nil {
			o.log.Warn("a worker's log is not passed on", "worker", index, "error", err)
			return
		}
		text = append(append(text, data...), '\n')
	}
	select {
	case o.logs <- text:
	default:
		o.log.Warn("a worker's log is not passed on: the reader is too slow", "worker", index)
	}
}

// bounded gives as many of the last lines as a worker may send.
func bounded(lines []string) []string {
	size := 0
	for i := len(lines) - 1; i >= 0; i-- {
		if size += len(lines[i]); size > wire.LogBytes || len(lines)-i > wire.LogLines {
			return lines[i+1:]
		}
	}
	return lines
}
