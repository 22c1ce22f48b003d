package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// programRun is a run of the program in cmd/programtest/ranktest.
func programRun(t *testing.T, workers, processes int, parameters map[string]any) spec.Spec {
	t.Helper()
	s := spec.DefaultProgram()
	s.Name = "program"
	s.Worker.Replicas, s.Worker.MinReplicas = workers, 1
	s.Program.Processes, s.Program.StopGrace = processes, spec.Duration(2*time.Second)
	starts := filepath.Join(t.TempDir(), "starts")
	s.Program.Command = must(spec.JSONOf([]string{ranks}))
	s.Program.Environment = must(spec.JSONOf(map[string]string{"TEST_STARTS": starts}))
	s.Program.Parameters = must(spec.JSONOf(parameters))
	return s
}

// launchProgram is launch for a run of a program: its processes are known by the
// run's name.
func launchProgram(t *testing.T, s spec.Spec) *trial {
	t.Helper()
	f := run.Folder(filepath.Join(t.TempDir(), "run-"+strings.ToLower(rand.Text()[:8])))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	return relaunch(t, f)
}

// starts returns what the ranks noted at their start.
func starts(t *testing.T, s spec.Spec) []string {
	t.Helper()
	for _, v := range s.Program.Variables() {
		if path, ok := strings.CutPrefix(v, "TEST_STARTS="); ok {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Split(strings.TrimSpace(string(text)), "\n")
		}
	}
	t.Fatal("it notes nothing")
	return nil
}

// checkLeft fails where processes of the run's program are left.
func checkLeft(t *testing.T, f run.Folder) {
	t.Helper()
	pids, err := program.EndMarked(t.Context(), program.Mark{Run: f.Name()}, 0)
	if err != nil || len(pids) > 0 {
		t.Errorf("processes %v are left, %v", pids, err)
	}
}

// programEvents returns the events of a type.
func programEvents(t *testing.T, f run.Folder, of spec.EventType) (messages []string) {
	t.Helper()
	all, _ := events(t, f.Metrics())
	for _, e := range all {
		if e.Type == of {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

func TestProgramToItsEnd(t *testing.T) {
	t.Parallel()
	s := programRun(t, 2, 2, map[string]any{"steps": 20, "pause": 0.01, "every": 5})
	r := launchProgram(t, s)
	r.start()
	st := r.wait()
	if st.Phase != spec.Succeeded || st.Step != 20 || st.Metrics["sum"] != 80 || st.Metrics["world"] != 4 || st.Saved != 20 {
		t.Errorf("status %+v", st)
	}
	if got := starts(t, s); len(got) != 4 {
		t.Errorf("ranks were started: %q", got)
	}
	if got := programEvents(t, r.folder, spec.EventCheckpoint); fmt.Sprint(got) != "[step-5 step-10 step-15 step-20]" {
		t.Errorf("checkpoints %q", got)
	}
	if got := programEvents(t, r.folder, spec.EventGeneration); len(got) != 2 {
		t.Errorf("generations: %q", got)
	}
	checkLeft(t, r.folder)
}

// An error of the program ends its ranks everywhere. The next generation goes on
// from the newest complete checkpoint.
func TestProgramsErrorIsRestarted(t *testing.T) {
	t.Parallel()
	s := programRun(t, 2, 1, map[string]any{
		"steps": 20, "pause": 0.01, "every": 5, "fail": 12, "failing": 1, "once": filepath.Join(t.TempDir(), "failed"),
	})
	r := launchProgram(t, s)
	r.start()
	st := r.wait()
	if st.Phase != spec.Succeeded || st.Step != 20 || st.Metrics["sum"] != 40 || st.Metrics["restarts"] != 1 || st.Resumed != 1 {
		t.Errorf("status %+v", st)
	}
	if got := starts(t, s); len(got) != 4 || !strings.Contains(got[3], "restart 1") {
		t.Errorf("ranks were started: %q", got)
	}
	if got := programEvents(t, r.folder, spec.EventGeneration); len(got) != 4 || !strings.Contains(got[1], "ended with 3 on worker-1") ||
		!strings.Contains(got[2], `from the checkpoint "step-10"`) {
		t.Errorf("generations: %q", got)
	}
	checkLeft(t, r.folder)
}

// A program that fails more often than it may fails the run, and the run says why.
func TestProgramFailsTheRun(t *testing.T) {
	t.Parallel()
	s := programRun(t, 2, 1, map[string]any{"steps": 20, "fail": 3, "failing": 1})
	s.Program.MaxRestarts = 1
	r := launchProgram(t, s)
	r.start()
	st := r.wait()
	if st.Phase != spec.Failed || st.Reason != spec.ReasonProgram || !strings.Contains(st.Message, "rank 1 ended with 3 on worker-1") ||
		!strings.HasSuffix(st.Message, ", after one restart") ||
		!strings.Contains(st.Log, "a mistake in the program") {
		t.Errorf("status %+v", st)
	}
	if got := starts(t, s); len(got) != 4 {
		t.Errorf("ranks were started: %q", got)
	}
	checkLeft(t, r.folder)
}

// The processes of servers never end by themselves: they are ended once the workers
// have done their work.
func TestServersOfAProgram(t *testing.T) {
	t.Parallel()
	s := programRun(t, 2, 1, map[string]any{"steps": 10, "pause": 0.05, "serve": true})
	s.ParameterServer.Replicas = 2
	r := launchProgram(t, s)
	r.start()
	st := r.wait()
	if st.Phase != spec.Succeeded || st.Metrics["sum"] != 20 {
		t.Errorf("status %+v", st)
	}
	if got := starts(t, s); len(got) != 4 {
		t.Errorf("ranks were started: %q", got)
	}
	checkLeft(t, r.folder)
}
