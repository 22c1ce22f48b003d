package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// steady is a program that makes a checkpoint every 5 steps, for some seconds.
func steady(steps int) map[string]any {
	return map[string]any{"steps": steps, "pause": 0.02, "every": 5}
}

// held is a program that makes its last step once the test has called finish: however
// busy the machine is, it does not end before.
func held(t *testing.T, steps int) (parameters map[string]any, finish func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "finish")
	parameters = steady(steps)
	parameters["hold"] = path
	return parameters, func() { must(0, os.WriteFile(path, nil, 0o600)) }
}

// next waits for the second generation.
func (r *trial) next() {
	r.t.Helper()
	eventually(r.t, "the next generation runs", func() bool { return len(programEvents(r.t, r.folder, spec.EventGeneration)) >= 3 })
}

// running starts a run of a program, and returns once it has made a checkpoint.
func running(t *testing.T, s spec.Spec) *trial {
	t.Helper()
	r := launchProgram(t, s)
	r.start()
	eventually(t, "a checkpoint is made", func() bool { return status(t, r.folder).Saved > 0 })
	return r
}

// rankProcess returns the newest process of a rank.
func rankProcess(t *testing.T, s spec.Spec, rank int) (pid int) {
	t.Helper()
	pattern := regexp.MustCompile(fmt.Sprintf(`rank %d of \d+: process (\d+)`, rank))
	for _, line := range starts(t, s) {
		if m := pattern.FindStringSubmatch(line); m != nil {
			pid = must(strconv.Atoi(m[1]))
		}
	}
	return pid
}

// checkStarts fails where a rank was started twice in one generation.
func checkStarts(t *testing.T, s spec.Spec) {
	t.Helper()
	seen := make(map[string]bool)
	for _, line := range starts(t, s) {
		rank, _, _ := strings.Cut(line, ":") // the master's port names the generation
		if seen[rank] {
			t.Errorf("%s was started twice in one generation", rank)
		}
		seen[rank] = true
	}
}

// ended waits for the success of a run that had so many generations, each after the
// first one from a checkpoint, and looks for processes that are left.
func (r *trial) ended(s spec.Spec, generations int) spec.Status {
	r.t.Helper()
	st := r.wait()
	if st.Phase != spec.Succeeded || st.Metrics["restarts"] != 0 {
		r.dump()
		r.t.Errorf("status %+v", st)
	}
	began, resumed := 0, 0
	for _, text := range programEvents(r.t, r.folder, spec.EventGeneration) {
		if strings.Contains(text, "begins") {
			began++
		}
		if strings.Contains(text, "from the checkpoint") {
			resumed++
		}
	}
	if began != generations || resumed != generations-1 {
		r.t.Errorf("%d generations, %d of them from a checkpoint", began, resumed)
	}
	checkStarts(r.t, s)
	checkLeft(r.t, r.folder)
	return st
}

// A rank that is killed from outside ends the generation, and does not count as the
// program's error.
func TestKilledRank(t *testing.T) {
	t.Parallel()
	parameters, finish := held(t, 20)
	s := programRun(t, 2, 2, parameters)
	s.Program.MaxRestarts = 0
	r := running(t, s)
	syscall.Kill(rankProcess(t, s, 3), syscall.SIGKILL)
	r.next()
	finish()
	if st := r.ended(s, 2); st.Metrics["sum"] != 80 {
		t.Errorf("status %+v", st)
	}
	if got := programEvents(t, r.folder, spec.EventGeneration); len(got) < 2 || !strings.Contains(got[1], "rank 3 was killed") {
		t.Errorf("generations: %q", got)
	}
}

// The ranks of a killed agent end with it. The others start again with those of the
// next agent.
func TestKilledAgent(t *testing.T) {
	t.Parallel()
	parameters, finish := held(t, 20)
	s := programRun(t, 2, 1, parameters)
	r := running(t, s)
	kill(t, r.folder, "worker 1")
	r.next()
	finish()
	if st := r.ended(s, 2); st.Metrics["sum"] != 40 {
		t.Errorf("status %+v", st)
	}
}

// A program does not notice that the coordinator is killed.
func TestKilledCoordinatorOfAProgram(t *testing.T) {
	t.Parallel()
	parameters, finish := held(t, 20)
	s := programRun(t, 2, 1, parameters)
	r := running(t, s)
	for range 3 {
		term := status(t, r.folder).Term
		kill(t, r.folder, "coordinator")
		eventually(t, "another coordinator is there", func() bool {
			st := status(t, r.folder)
			return st.Term > term || st.Phase.Final()
		})
	}
	finish()
	if st := r.ended(s, 1); st.Metrics["sum"] != 40 {
		t.Errorf("status %+v", st)
	}
	if got := starts(t, s); len(got) != 2 {
		t.Errorf("ranks were started: %q", got)
	}
}

func TestKilledSupervisorOfAProgram(t *testing.T) {
	t.Parallel()
	parameters, finish := held(t, 20)
	s := programRun(t, 2, 1, parameters)
	r := running(t, s)
	rank := rankProcess(t, s, 1)
	killSupervisor(r)
	eventually(t, "the ranks end", func() bool { return syscall.Kill(rank, 0) != nil })
	checkLeft(t, r.folder)
	again := relaunch(t, r.folder)
	again.start()
	finish()
	again.ended(s, 2)
}

// A change of the members waits for a checkpoint.
func TestScaleAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("each change waits until the members have settled")
	}
	t.Parallel()
	s := programRun(t, 2, 1, map[string]any{"steps": 1 << 20, "pause": 0.02, "every": 20})
	r := running(t, s)
	for _, workers := range []int{4, 1} {
		if err := client(t, r.folder).Change(t.Context(), spec.LiveChange{Workers: &workers}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the program runs with the new members", func() bool { return status(t, r.folder).Metrics["world"] == float64(workers) })
		if st := status(t, r.folder); st.Workers != workers {
			t.Errorf("%d workers are connected, not %d", st.Workers, workers)
		}
	}
	all, _ := events(t, r.folder.Metrics())
	saved := ""
	for _, e := range all {
		switch {
		case e.Type == spec.EventCheckpoint:
			saved = e.Message
		case e.Type == spec.EventRestore && e.Message != saved:
			t.Errorf("a generation began from %q, after the checkpoint %q", e.Message, saved)
		}
	}
	if got := programEvents(t, r.folder, spec.EventGeneration); len(got) != 5 || !strings.Contains(got[1], "2 workers become 4") ||
		!strings.Contains(got[3], "4 workers become 1") {
		t.Errorf("generations: %q", got)
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

// A program that ignores SIGTERM is killed after the time of grace. The run is
// stopped, not failed.
func TestStopAStubbornProgram(t *testing.T) {
	t.Parallel()
	parameters := steady(1 << 20)
	parameters["stubborn"] = true
	s := programRun(t, 2, 1, parameters)
	s.Program.StopGrace = spec.Duration(time.Second)
	r := running(t, s)
	r.cmd.Process.Signal(syscall.SIGTERM)
	if st := r.wait(); st.Phase != spec.Stopped || st.Cause != spec.CauseRequest || st.Saved == 0 {
		r.dump()
		t.Errorf("status %+v", st)
	}
	checkLeft(t, r.folder)
}

// Processes that have left their rank, with its group, environment and parent, end with
// the agent: whether that is killed, or the supervisor.
func TestProcessesThatLeaveTheirRank(t *testing.T) {
	t.Parallel()
	for i, role := range []string{"supervisor", "worker"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			asleep := fmt.Sprintf("9%d.%d", os.Getpid(), i)
			left := func() (n int) {
				for _, path := range must(filepath.Glob("/proc/[0-9]*/cmdline")) {
					if text, err := os.ReadFile(path); err == nil && string(text) == "sleep\x00"+asleep+"\x00" {
						n++
					}
				}
				return n
			}
			parameters := steady(1 << 20)
			parameters["leave"] = asleep
			r := running(t, programRun(t, 1, 2, parameters))
			if n := left(); n != 2 {
				t.Fatalf("%d processes sleep", n)
			}
			if role == "supervisor" {
				killSupervisor(r)
				eventually(t, "no process is left", func() bool { return left() == 0 })
				return
			}
			kill(t, r.folder, "worker 0")
			r.next()
			if err := client(t, r.folder).Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := r.wait(); st.Phase != spec.Stopped {
				t.Errorf("status %+v", st)
			}
			if n := left(); n > 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}
