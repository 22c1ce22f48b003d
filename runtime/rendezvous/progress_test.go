package rendezvous

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// A checkpoint that only the folder tells of is noted before a generation begins from it,
// once: one of before the run has step 0, a later one the newest reported step.
func TestUntoldCheckpointIsNoted(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, 1, 0)
	b.begin()
	g := b.guest(wire.RoleWorker, 0)
	g.ready(0, "old")
	begin := g.start()
	g.send(wire.TypeObserved, wire.Observed{Generation: 1, Points: []wire.Point{{Step: 2}}})
	g.end(begin, program.Killed, "", "old")
	begin = g.start()
	g.send(wire.TypeObserved, wire.Observed{Generation: 2, Points: []wire.Point{{Step: 5}}, Checkpoints: []wire.Checkpoint{{Name: "a", Step: 3}}})
	g.end(begin, program.Killed, "", "old", "a", "b") // its rank saved b, and told of it no more
	begin = g.start()
	g.end(begin, program.Killed, "", "old", "a", "b")
	begin = g.start()
	if begin.Resume != "b" {
		t.Errorf("it continues with %+v", begin)
	}
	g.end(begin, program.Succeeded, "")
	if st := b.over(g); st.Phase != spec.Succeeded || st.Saved != 5 {
		t.Errorf("status %+v", st)
	}
	var noted []string
	history, err := os.ReadFile(b.options.Folder.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(history) {
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == spec.EventCheckpoint || e.Type == spec.EventRestore {
			noted = append(noted, fmt.Sprintf("%s %s %d", e.Type, e.Message, e.Step))
		}
	}
	want := []string{"checkpoint old 0", "restore old 0", "checkpoint a 5", "checkpoint b 5", "restore b 5", "restore b 5"}
	if !slices.Equal(noted, want) {
		t.Errorf("the history has %q, not %q", noted, want)
	}
}

// The steps of the newest checkpoints are known, however many there were.
func TestStepsOfManyCheckpoints(t *testing.T) {
	p := newProgress()
	for i := range 3 * maxCheckpoints {
		p.follow(spec.Event{Type: spec.EventCheckpoint, Message: strconv.Itoa(i / 2), Metrics: map[string]float64{keyStep: float64(i)}})
	}
	if newest := 3*maxCheckpoints/2 - 1; len(p.steps) != maxCheckpoints || len(p.names) != maxCheckpoints ||
		p.steps[strconv.Itoa(newest)] != int64(2*newest+1) || p.steps[strconv.Itoa(newest-maxCheckpoints+1)] == 0 {
		t.Errorf("%d steps of %d names are known; the newest one is %d", len(p.steps), len(p.names), p.steps[strconv.Itoa(newest)])
	}
}
