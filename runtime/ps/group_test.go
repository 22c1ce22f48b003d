package ps

import (
	"io"
	"testing"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/wire"
)

// Another group that begins with the same parameters leaves a checkpoint in the making
// alone; a restore of other parameters ends it.
func TestCheckpointSurvivesAnotherGroup(t *testing.T) {
	alone := &wire.Group{Members: []string{"127.0.0.1:1"}}
	s := newServer(io.Discard)
	s.place = checkpoint.Folder(t.TempDir())
	begin := wire.Restore{Term: 3, Version: 10, To: 4, Group: alone}
	if a := restore(t, s, begin, []float32{1, 2, 3, 4}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	keep := func(term int64) {
		t.Helper()
		if a := s.keep(wire.CutRequest{Term: term, Version: 10}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
	}
	keep(3)
	if a := s.attach(wire.Attach{Term: 4, Held: 3, Version: 10, Group: alone}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	if a := write(t, s, wire.Write{Term: 3, Checkpoint: "step-10", Part: "x"}); a.Part.To != 4 || a.Refused != "" {
		t.Errorf("the checkpoint of the term before: %+v", a)
	}
	keep(4)
	begin.Term = 5
	if a := restore(t, s, begin, []float32{5, 6, 7, 8}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	if a := write(t, s, wire.Write{Term: 4, Checkpoint: "step-10", Part: "y"}); a.Refused == "" {
		t.Errorf("a checkpoint of parameters that were replaced: %+v", a)
	}
}
