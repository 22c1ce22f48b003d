package train

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestMergedEvents checks that events which the history has merged keep their weight
// and their range.
func TestMergedEvents(t *testing.T) {
	loss := map[string]providers.RunRange{"loss": {Min: 1, Max: 4}}
	for name, test := range map[string]struct {
		event spec.Event
		want  providers.RunEvent
	}{
		"updates": {
			spec.Event{Type: spec.EventUpdates, Step: 9, Count: 5, Skips: 1, Records: 320, Loss: 2, Norm: 3, LossMin: 1, LossMax: 4},
			providers.RunEvent{Type: "updates", Step: 9, Count: 4, Ranges: loss, Values: map[string]float64{"loss": 2, "norm": 3, "records": 64}},
		},
		"updates that were all skipped": {
			spec.Event{Type: spec.EventUpdates, Step: 9, Count: 5, Skips: 5, Records: 320},
			providers.RunEvent{Type: "updates", Step: 9, Ranges: map[string]providers.RunRange{"loss": {}}, Values: map[string]float64{"records": 64}},
		},
		"updates of a program: the newest values": {
			spec.Event{Type: spec.EventUpdates, Step: 9, Count: 5, Metrics: map[string]float64{"loss": 2}},
			providers.RunEvent{Type: "updates", Step: 9, Values: map[string]float64{"loss": 2}},
		},
	} {
		if d := cmp.Diff(test.want, eventOf(test.event, nil)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if got := eventOf(spec.Event{Type: spec.EventUsage, Count: 8, Usage: &spec.Usage{Role: "ps-0"}}, nil); got.Role != "ps-0" || got.Count != 8 {
		t.Errorf("usage: %+v", got)
	}
}

// updating is a launcher whose run has made so many updates, each of one lease.
type updating struct {
	launch.Launcher
	updates int64
}

func (u updating) Status(context.Context, string) (launch.State, error) { return launch.State{}, nil }

func (u updating) Metrics(_ context.Context, _ string, _ run.EventFilter, _ bool, event func(spec.Event) error) error {
	for step := int64(1); step <= u.updates; step++ {
		taken := []spec.Contribution{{Worker: int(step % 2), Start: 0, End: 8, Attempt: 1}}
		if err := event(spec.Event{Type: spec.EventUpdate, Step: step, Taken: taken}); err != nil {
			return err
		}
	}
	return nil
}

// The leases of a ledger are those of the newest updates.
func TestLeasesOfTheNewestUpdates(t *testing.T) {
	for updates, want := range map[int64]providers.RunLedger{
		0:    {},
		10:   {First: 1, Updates: 10, Leases: []providers.RunLeases{{Worker: 0, Leases: 5, Records: 40}, {Worker: 1, Leases: 5, Records: 40}}},
		5301: {First: 4302, Updates: 1000, Leases: []providers.RunLeases{{Worker: 0, Leases: 500, Records: 4000}, {Worker: 1, Leases: 500, Records: 4000}}},
	} {
		var got providers.RunLedger
		r := experimentRun{trainingRun: trainingRun{Launcher: updating{updates: updates}}}
		if err := r.addLeases(t.Context(), &got); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d updates (-want +got):\n%s", updates, d)
		}
	}
}
