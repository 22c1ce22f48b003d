package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Whoever reads the events slowly, not at all or never again holds nobody up.
func TestEventsAreNotWaitedFor(t *testing.T) {
	blocked, unblock := io.Pipe()
	defer unblock.Close()
	defer blocked.Close()
	for name, to := range map[string]io.Writer{"nobody reads": unblock, "closed": broke{}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.options.Events = to
			w := b.opened()
			w.want = 1000
			ended := b.begin(w)
			member := b.guest(wire.Hello{Index: 0})
			for range w.want {
				b.send(member, wire.TypeReport, wire.Report{Weight: 1})
			}
			b.dismissed(member)
			member.Close()
			if st := <-ended; st.Phase != spec.Succeeded || st.Step != 1000 {
				t.Errorf("status %+v", st)
			}
			if !strings.Contains(b.logs.String(), "passed on") {
				t.Error("the log does not tell that events are lost")
			}
		})
	}
}

// broke is an output that nobody reads any more.
type broke struct{}

func (broke) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// The last lines of a worker's log come out as lines of their own, no more of
// them than it may send, and only for who asked.
func TestLogsOfWorkersArePrinted(t *testing.T) {
	b := newBench(t, 1)
	out := new(locked)
	b.options.Events, b.options.HearTime = out, 10*time.Minute
	ended := b.begin(b.opened())
	worker := b.guest(wire.Hello{Index: 0})
	b.until("worker joined", 1)
	if err := b.client().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.dismissed(worker)
	var lines []string
	for i := range 3 * wire.LogLines {
		lines = append(lines, fmt.Sprintf("line <%d>", i))
	}
	if err := worker.Send(wire.TypeLog, wire.Log{Lines: lines}, nil); err != nil {
		t.Fatal(err)
	}
	if err := worker.Send(wire.TypeLog, wire.Log{Lines: []string{strings.Repeat("x", wire.LogBytes+1), "end"}}, nil); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(out.String(), `"log":"end"`) {
		time.Sleep(time.Millisecond)
	}
	worker.Close()
	if st := <-ended; st.Phase != spec.Stopped {
		t.Errorf("status %+v", st)
	}
	var logs []string
	events := 0
	for line := range bytes.Lines([]byte(out.String())) {
		var l logLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		switch l.Role {
		case "worker-0":
			logs = append(logs, l.Log)
		case "":
			events++
		default:
			t.Errorf("a log of %q", l.Role)
		}
	}
	if len(logs) != wire.LogLines+1 || logs[0] != "line <400>" || logs[wire.LogLines-1] != "line <599>" || logs[wire.LogLines] != "end" {
		t.Errorf("%d lines of log: %q", len(logs), logs)
	}
	if want := 2; events != want { // it joined, and the run's end
		t.Errorf("%d events of %d", events, want)
	}
}
