package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

func TestKillsOfAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("a few kills take some seconds")
	}
	t.Parallel()
	killProgram(t, 6)
}

// killProgram kills roles of a run again and again, at any moment. No rank may be
// started twice in one generation, and no process be left behind.
func killProgram(t *testing.T, kills int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := programRun(t, 3, 2, map[string]any{"steps": 1 << 20, "pause": 0.01, "every": 10})
	s.ParameterServer.Replicas = 1
	r := launchProgram(t, s)
	r.start()
	for i := range kills {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		switch n := random.IntN(10); {
		case n < 3:
			kill(t, r.folder, "coordinator")
		case n < 6:
			kill(t, r.folder, []string{"worker 0", "worker 1", "worker 2", "ps 0"}[random.IntN(4)])
		case n < 9: // several at once
			kill(t, r.folder, "coordinator")
			kill(t, r.folder, "worker 1")
			kill(t, r.folder, "ps 0")
		default:
			if !killSupervisor(r) {
				t.Fatal("the run is over")
			}
			checkLeft(t, r.folder)
			r = relaunch(t, r.folder)
			r.start()
		}
		before := status(t, r.folder).Step
		eventually(t, "the program makes steps", func() bool {
			st := status(t, r.folder)
			if st.Phase.Final() {
				t.Fatalf("after %d kills: %+v", i+1, st)
			}
			return st.Phase == spec.Running && st.Step != before
		})
	}
	if err := client(t, r.folder).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := r.wait(); st.Phase != spec.Stopped || st.Cause != spec.CauseRequest {
		t.Errorf("status %+v", st)
	}
	checkStarts(t, s)
	checkLeft(t, r.folder)
}
