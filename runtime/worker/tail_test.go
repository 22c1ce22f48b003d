package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

func TestTailKeepsTheLastLines(t *testing.T) {
	tail := new(Tail)
	for i := range 1000 {
		fmt.Fprintf(tail, "line %d\n", i)
	}
	if got := tail.Lines(); len(got) != wire.LogLines || got[0] != "line 800" || got[len(got)-1] != "line 999" {
		t.Errorf("%d lines, %q to %q", len(got), got[0], got[len(got)-1])
	}
	for i := range 10 {
		fmt.Fprintf(tail, "%d%s\xff\n", i, strings.Repeat("x", 7000))
	}
	if got := tail.Lines(); len(got) != 4 || !strings.HasPrefix(got[0], "6x") || !strings.HasSuffix(got[3], "x?") {
		t.Errorf("%d lines of 7,000 bytes", len(got))
	}
	fmt.Fprint(tail, strings.Repeat("y", 1<<20), "\nshort\n")
	if got := tail.Lines(); len(got) != 1 || got[0] != "short" {
		t.Errorf("%d lines after one that is too long", len(got))
	}
}

// A worker whose run is over hears it from the coordinator even where it finds
// no server, and leaves the last lines of its log.
func TestLastLinesAreSent(t *testing.T) {
	logs := make(chan wire.Log, 1)
	address := serve(t, func(c *wire.Conn, _ wire.Hello) {
		if err := c.Send(wire.TypeLeave, wire.Leave{End: spec.EndFinished, Reason: "over"}, nil); err != nil {
			return
		}
		for {
			m, err := c.Receive(time.Minute)
			if err != nil {
				return
			}
			var l wire.Log
			if m.Type == wire.TypeLog && m.Decode(&l) == nil {
				logs <- l
			}
		}
	})
	o := options(t, address, "127.0.0.1:1")
	o.Tail = new(Tail)
	fmt.Fprint(o.Tail, "first\nsecond\n")
	err := Run(t.Context(), o)
	if how, ok := err.(wire.Leave); !ok || how.End != spec.EndFinished {
		t.Errorf("the worker ended with %v", err)
	}
	select {
	case l := <-logs:
		if strings.Join(l.Lines, ",") != "first,second" {
			t.Errorf("log %q", l.Lines)
		}
	case <-time.After(time.Minute):
		t.Error("no log came")
	}
}
