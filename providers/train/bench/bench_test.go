package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// failing is a launcher whose runs begin, and whose Stop fails.
type failing struct {
	launch.Launcher
	stop, remove error
	calls        []string
}

func (f *failing) Start(context.Context, string, spec.Spec, launch.Code) (string, error) {
	return "run-1", errors.New("not started")
}
func (f *failing) Location(string) launch.Location { return launch.Location{Place: "the namespace x"} }

func (f *failing) Stop(ctx context.Context, _ string, _ time.Duration) error {
	f.calls = append(f.calls, "stop")
	return errors.Join(f.stop, ctx.Err())
}

func (f *failing) Remove(ctx context.Context, _ string) error {
	f.calls = append(f.calls, "remove")
	return errors.Join(f.remove, ctx.Err())
}

// A run whose processes cannot be stopped is removed all the same, and is told where
// something is left.
func TestMeasureRemovesItsRun(t *testing.T) {
	stop, remove := errors.New("no answer"), errors.New("refused")
	for _, c := range []struct{ stop, remove error }{{nil, nil}, {stop, nil}, {nil, remove}, {stop, remove}} {
		l := &failing{stop: c.stop, remove: c.remove}
		err := Measure(t.Context(), l, "stoke-trainer", 2, func(Result) error { return nil })
		var left *providers.RunLeftError
		if is, want := errors.As(err, &left), c.stop != nil || c.remove != nil; is != want || want && (left.Run != "run-1" || left.Place != "the namespace x") {
			t.Errorf("%v: error %v", c, err)
		}
		if errors.Is(err, stop) != (c.stop != nil) || errors.Is(err, remove) != (c.remove != nil) {
			t.Errorf("%v: error %v", c, err)
		}
		if !slices.Equal(l.calls, []string{"stop", "remove"}) {
			t.Errorf("%v: calls %v", c, l.calls)
		}
	}
}
