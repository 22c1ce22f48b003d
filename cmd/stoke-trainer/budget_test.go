package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestKilledCoordinatorsSpendNoBudget kills the coordinator seven times, each time
// after it has committed an update: the run goes on.
func TestKilledCoordinatorsSpendNoBudget(t *testing.T) {
	t.Parallel()
	s := long()
	s.Epochs, s.Checkpoint.EverySteps = 10_000, 10
	r := launch(t, s)
	r.start()
	const kills = 7 // the budget is 5
	goesOn := func() {
		t.Helper()
		began := time.Now()
		eventually(t, "an update is committed", func() bool {
			st := must(r.folder.Status())
			if st.Phase.Final() {
				r.dump()
				t.Fatalf("status %+v", st)
			}
			return committed(r.folder, began)
		})
	}
	for range kills {
		goesOn()
		for _, p := range roles(t, r.folder) {
			if p.role != "coordinator" {
				continue
			}
			syscall.Kill(p.pid, syscall.SIGKILL)
			eventually(t, "the coordinator has ended", func() bool { return !slices.Contains(roles(t, r.folder), p) })
		}
	}
	goesOn()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if st := r.wait(); st.Phase != spec.Stopped || st.Cause != spec.CauseRequest {
		r.dump()
		t.Errorf("status %+v", st)
	}
	restarts := 0
	for _, role := range must(r.folder.ReadRoles()) {
		if role.Name == "coordinator" {
			restarts = role.Restarts
		}
	}
	if restarts != kills {
		t.Errorf("the coordinator was started again %d times, killed %d times", restarts, kills)
	}
}

// committed reports whether an update was committed after a moment.
func committed(f run.Folder, after time.Time) bool {
	data, _ := os.ReadFile(f.Metrics()) // which the coordinator makes
	for line := range bytes.Lines(data) {
		var e spec.Event
		if json.Unmarshal(line, &e) == nil && e.Type == spec.EventUpdate && e.Time.After(after) { // else it is being written
			return true
		}
	}
	return false
}
