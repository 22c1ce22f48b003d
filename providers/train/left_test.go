package train

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// untidy is a place in which runs cannot be launched or removed.
type untidy struct {
	launch.Launcher
	err     error
	removed bool
}

func (u *untidy) Start(context.Context, string, spec.Spec, launch.Code) (string, error) {
	if errors.As(u.err, new(*launch.LeftError)) {
		return "run-1", u.err
	}
	return "", u.err
}
func (u *untidy) Stop(context.Context, string, time.Duration) error { return u.err }
func (u *untidy) Remove(context.Context, string) error              { u.removed = true; return nil }
func (u *untidy) Location(id string) launch.Location {
	return launch.Location{Place: "lab", Run: "lab/" + id}
}

// TestWhatIsLeft: a launch that left something is recorded, so that it is removed
// next time; messages say what was removed and what is left.
func TestWhatIsLeft(t *testing.T) {
	left := &launch.LeftError{Err: errors.New("the connection broke"), Place: "lab", Removed: []string{"Job a"}, Left: []string{"Pod b", "Secret c"}}
	unseen := &launch.LeftError{Err: errors.New("the connection broke"), Place: "lab", Unseen: errors.New("no route")}
	for _, tt := range []struct {
		err      error
		id, says string
		clean    bool // says that nothing is left, or was removed
	}{
		{left, "run-1", "in the namespace lab, removed: Job a; left: Pod b, Secret c", false},
		{unseen, "run-1", "the rest in the namespace lab is unknown: no route", false},
		{errors.New("forbidden"), "", "forbidden", true},
	} {
		l, m := &untidy{err: tt.err}, new(experimentModel)
		d := &draft{spec: spec.Default()}
		run, diags := (&experimentResource{settings: new(settings)}).launch(t.Context(), l, d, m)
		if len(diags) != 1 || !diags.HasError() || run.id != tt.id || m.ID.ValueString() != tt.id {
			t.Fatalf("%v: run %q, recorded %q, %v", tt.err, run.id, m.ID, diags)
		}
		if text := diags[0].Detail(); !strings.Contains(text, tt.says) || strings.Contains(text, "nothing is left") != tt.clean {
			t.Errorf("a launch: %s", text)
		}
		if !tt.clean && m.Status.ValueString() != string(spec.Lost) {
			t.Errorf("it is recorded as %s", m.Status)
		}
		diags = remove(t.Context(), trainingRun{l, "run-1"}, time.Second)
		if len(diags) != 1 || !diags.HasError() || l.removed {
			t.Fatalf("%v: %v, removed: %t", tt.err, diags, l.removed)
		}
		if text := diags[0].Detail(); !strings.Contains(text, tt.says) || strings.Contains(text, "Nothing was removed") != tt.clean {
			t.Errorf("a destroy: %s", text)
		}
	}
}

// TestStartsOver: a run of which nobody can tell how far it came is not resumed
// where what it saved is gone, and one that saved nothing does not go on from a
// checkpoint.
func TestStartsOver(t *testing.T) {
	lost := spec.Status{Phase: spec.Lost}
	for _, tt := range []struct {
		name      string
		is        launch.State
		resumable bool
		from      string
	}{
		{"perished", launch.State{Status: lost, Saved: -1, CheckpointsLost: true}, false, "it starts over, for it has saved nothing"},
		{"durable", launch.State{Status: lost}, true, "it continues from its newest checkpoint"},
		{"not begun", launch.State{Status: lost, Saved: -1}, true, "it starts over, for it has saved nothing"},
		{"saved", launch.State{Status: spec.Status{Phase: spec.Lost, Step: 9}, Saved: 5}, true, "it continues from its newest checkpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := remains{tt.is}
			if r.resumable() != tt.resumable || r.resumePoint() != tt.from {
				t.Errorf("resumable %t, %s", r.resumable(), r.resumePoint())
			}
		})
	}
}
