package main

import (
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// TestCoordinatorsAttach kills the coordinator again and again, each time after
// an update: no update is made again, and the other processes go on.
func TestCoordinatorsAttach(t *testing.T) {
	t.Parallel()
	kills := 5
	switch {
	case testing.Short():
		kills = 3
	case raceBuild: // the suite race-all
		kills = 12
	}
	s := long()
	s.Worker.Replicas, s.ParameterServer.Replicas = 2, 2
	s.Epochs, s.Checkpoint.EverySteps = 1_000_000, 0 // the test stops it
	s.Checkpoint.EverySeconds = 3600                 // none is written before the end
	others := func(r *trial) map[string]int {
		all := make(map[string]int)
		for _, p := range roles(t, r.folder) {
			if p.role != "coordinator" {
				all[p.role] = p.pid
			}
		}
		return all
	}
	r := launch(t, s)
	r.start()
	at := int64(0)
	trains := func() bool {
		st := status(t, r.folder)
		if st.Phase.Final() {
			r.dump()
			t.Fatalf("status %+v", st)
		}
		return st.Step > at && st.Workers == 2
	}
	eventually(t, "the run trains", trains)
	before := others(r)
	for range kills {
		st := status(t, r.folder)
		at = st.Step
		eventually(t, "an update is made", trains)
		if !kill(t, r.folder, "coordinator") {
			t.Fatal("there is no coordinator")
		}
		eventually(t, "the next coordinator makes updates", func() bool { // the status may tell of updates before it
			all, _ := events(t, r.folder.Metrics())
			return trains() && slices.ContainsFunc(all, func(e spec.Event) bool { return e.Type == spec.EventUpdate && e.Term > st.Term })
		})
	}
	if after := others(r); !maps.Equal(before, after) {
		t.Errorf("the other processes were %v and are %v", before, after)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	st := r.wait()
	if st.Phase != spec.Stopped || st.Resumed != 0 {
		r.dump()
		t.Fatalf("status %+v", st)
	}
	all, _ := events(t, r.folder.Metrics())
	step := int64(0)
	for _, e := range all {
		if e.Type == spec.EventRestore && e.Step < step {
			t.Errorf("term %d went back from step %d to %d", e.Term, step, e.Step)
		}
		step = max(step, e.Step)
	}
	told := updates(t, r.folder)
	for i := range 2 {
		noted := applied(t, r.folder, i)
		if len(noted) != len(told) {
			t.Fatalf("server %d applied %d updates, the ledger has %d", i, len(noted), len(told))
		}
		for k, e := range noted {
			if e.Step != int64(k+1) || e.Taken[0].Start != told[k].Start {
				t.Fatalf("server %d, update %d: %+v, the ledger has %+v", i, k, e, told[k])
			}
		}
	}
}
