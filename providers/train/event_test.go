package train

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers"
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
