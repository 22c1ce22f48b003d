package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
)

// eventLines returns the lines of a history: each fifth event is a sample of usage, and
// updates are made of so many contributions.
func eventLines(t testing.TB, n, taken int) (text []byte, all []spec.Event) {
	t.Helper()
	var b bytes.Buffer
	start := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	for i := range n {
		e := spec.Event{Number: int64(i + 1), Time: start.Add(time.Duration(i) * time.Second), Type: spec.EventUpdate, Step: int64(i), Loss: 0.5}
		switch {
		case i%5 == 0:
			e.Type, e.Loss, e.Usage = spec.EventUsage, 0, &spec.Usage{Role: fmt.Sprintf("worker-%d", i/5%3), CPU: 1.5}
		case i%97 == 0:
			e.Type, e.Loss, e.Message = spec.EventEvaluation, 0, `says ,"taken":[1,2] and "type":"usage"`
		default:
			e.Taken = make([]spec.Contribution, taken)
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
		all = append(all, e)
	}
	return b.Bytes(), all
}

// readEvents returns the wanted events of a file, and how many bytes were read for them.
func readEvents(t testing.TB, path string, want EventFilter) (all []spec.Event, read int64) {
	t.Helper()
	events, err := OpenEvents(path, want)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for {
		e, ok, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all, events.read
		}
		all = append(all, e)
	}
}

func write(t testing.TB, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Events are those that a filter accepts one by one, wherever they begin.
func TestEventsAreFiltered(t *testing.T) {
	text, all := eventLines(t, 4000, 12)
	path := write(t, text)
	for range 40 {
		want := EventFilter{Usage: UsageFilter(rand.IntN(3)), Brief: rand.IntN(2) == 0}
		if rand.IntN(2) == 0 {
			want.After = rand.Int64N(4100)
		}
		if rand.IntN(2) == 0 {
			want.Since = all[rand.IntN(len(all))].Time
		}
		if rand.IntN(2) == 0 {
			want.Role = "worker-1"
		}
		var expected []spec.Event
		for _, e := range all {
			if want.Accepts(e) {
				if want.Brief {
					e.Taken = nil
				}
				expected = append(expected, e)
			}
		}
		got, _ := readEvents(t, path, want)
		if d := cmp.Diff(expected, got); d != "" {
			t.Fatalf("%+v: %s", want, d)
		}
	}
}

// The bytes that are read for the newest events do not grow with the history.
func TestNewestEventsAreFoundBySearch(t *testing.T) {
	var read [2]int64
	for i, n := range []int{4000, 32_000} {
		text, all := eventLines(t, n, 12)
		path := write(t, text)
		for _, want := range []EventFilter{{After: int64(n - 10)}, {Since: all[n-10].Time}} {
			got, bytes := readEvents(t, path, want)
			if len(got) < 10 || len(got) > 11 {
				t.Errorf("%+v: %d events", want, len(got))
			}
			read[i] = max(read[i], bytes)
		}
	}
	if read[1] > 2*nearEnough || read[1] > read[0]+nearEnough {
		t.Errorf("%d bytes of a short history, %d of one of eight times its length", read[0], read[1])
	}
}

// Contributions of updates, and events that are not wanted, take no memory.
func TestBriefEventsTakeLittleMemory(t *testing.T) {
	count := func(taken int, want EventFilter) float64 {
		text, _ := eventLines(t, 1000, taken)
		path := write(t, text)
		return testing.AllocsPerRun(3, func() { readEvents(t, path, want) })
	}
	few, many := count(1, EventFilter{Brief: true}), count(64, EventFilter{Brief: true})
	if many > few*1.05+50 {
		t.Errorf("%.0f allocations with a contribution each, %.0f with 64", few, many)
	}
	usage, others := count(64, EventFilter{Brief: true, Usage: OnlyUsage}), count(64, EventFilter{Brief: true, Usage: WithoutUsage})
	if usage+others > many*1.05+50 {
		t.Errorf("%.0f allocations for samples of usage and %.0f for other events, %.0f for all", usage, others, many)
	}
	if others > 1600 {
		t.Errorf("%.0f allocations for 800 events, most of them updates", others)
	}
}

// Lines that are torn, foreign or too long are left out, and a line is read once its
// end is there.
func TestEventsOfDamagedFiles(t *testing.T) {
	long := `{"n":4,"time":"2026-03-04T09:00:00Z","type":"end","step":1,"epoch":0,"message":"` + string(bytes.Repeat([]byte("x"), longestEvent)) + `"}`
	path := write(t, []byte("{\"n\":1,\"type\":\"scale\"}\n{\"n\":2,\"ty\n\n\x00\xff\n{\"n\":3}\n"+long+"\n{\"type\":\"end\",\"n\":5}\n{\"n\":6,\"type\""))
	events, err := OpenEvents(path, EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	next := func(want int64) {
		t.Helper()
		e, ok, err := events.Next()
		if err != nil || ok != (want > 0) || e.Number != want {
			t.Fatalf("event %d, %t, %v; want %d", e.Number, ok, err, want)
		}
	}
	next(1)
	next(3)
	next(5)
	next(0)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(":\"end\"}\n"); err != nil {
		t.Fatal(err)
	}
	next(6)
	if events.IsReplaced(path) {
		t.Error("the same file is another one")
	}
	if err := WriteFile(path, []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if !events.IsReplaced(path) {
		t.Error("another file is the same one")
	}
}
