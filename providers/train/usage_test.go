package train

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/spec"
)

// Usage reaches commands as rates by role, and the values of an event by name.
func TestUsageForCommands(t *testing.T) {
	u := spec.Usage{
		Role: "worker-1", At: time.Unix(7, 0), CPU: 1.5, Memory: 2, Limit: 3, Processes: 4, Partly: "a\x1b[31mreason",
		Received: spec.Flow{Bytes: 90, PerSecond: 5}, Sent: spec.Flow{Bytes: 91, PerSecond: 6},
		Read: spec.Flow{Bytes: 92, PerSecond: 7}, Written: spec.Flow{Bytes: 93, PerSecond: 8},
	}
	want := &providers.RunUsage{At: u.At, CPU: 1.5, Memory: 2, Limit: 3, Processes: 4, Partly: printable(u.Partly), Received: 5, Sent: 6, Read: 7, Written: 8, Network: true}
	if d := cmp.Diff(want, usageOf(&u)); d != "" {
		t.Error(d)
	}
	if usageOf(nil) != nil {
		t.Error("a role without usage has one")
	}
	values := map[string]float64{
		"worker-1.cpu": 1.5, "worker-1.memory_bytes": 2, "worker-1.processes": 4, "worker-1.received_per_second": 5,
		"worker-1.sent_per_second": 6, "worker-1.read_per_second": 7, "worker-1.written_per_second": 8,
	}
	if d := cmp.Diff(values, measured(spec.Event{Type: spec.EventUsage, Usage: &u})); d != "" {
		t.Error(d)
	}
	u.Received, u.Sent = spec.Flow{}, spec.Flow{} // on a machine
	delete(values, "worker-1.received_per_second")
	delete(values, "worker-1.sent_per_second")
	if d := cmp.Diff(values, measured(spec.Event{Type: spec.EventUsage, Usage: &u})); d != "" {
		t.Error(d)
	}
}
