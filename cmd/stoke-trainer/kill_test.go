package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// long is a run that takes a few seconds, so that there is time to disturb it.
func long() spec.Spec {
	s := small()
	s.Epochs, s.Checkpoint.EverySteps = 16, 50
	if testing.Short() { // the race detector makes it six times as slow
		s.Epochs = 4
	}
	return s
}

// records is what all epochs of a run have.
func records(s spec.Spec) int64 { return int64(s.Epochs) * 1500 }

// disturbed launches a run, waits until it is ready and disturbs it. On a busy
// machine a run may end before this process gets its turn: disturb then returns
// false, and a longer one is launched.
func disturbed(t *testing.T, s spec.Spec, ready func(*trial) bool, disturb func(*trial) bool) (*trial, spec.Spec) {
	t.Helper()
	for {
		r := launch(t, s)
		r.start()
		final := func() bool { return status(t, r.folder).Phase.Final() }
		eventually(t, "the run is ready to be disturbed", func() bool { return ready(r) || final() })
		if !final() && disturb(r) {
			return r, s
		}
		if st := r.reap(); st.Phase != spec.Succeeded {
			r.dump()
			t.Fatalf("status %+v", st)
		}
		t.Logf("a run of %d epochs was over before it was disturbed", s.Epochs)
		s.Epochs *= 2
	}
}

// atStep is ready from a step on.
func atStep(t *testing.T, step int64) func(*trial) bool {
	return func(r *trial) bool { return status(t, r.folder).Step >= step }
}

// saved lists the whole checkpoints of a run, oldest first.
func saved(r *trial) []string {
	found := must(filepath.Glob(filepath.Join(r.folder.Checkpoints(), "step-*", "manifest.json")))
	for i, manifest := range found { // with which a checkpoint begins to exist
		found[i] = filepath.Dir(manifest)
	}
	return found
}

// part is the first of a checkpoint's files of parameters.
func part(checkpoint string) string {
	for _, path := range must(filepath.Glob(filepath.Join(checkpoint, "*"))) {
		if filepath.Base(path) != "manifest.json" {
			return path
		}
	}
	return filepath.Join(checkpoint, "no part")
}

// killSupervisor kills the supervisor, waits until no role is left and reports
// whether the run was under way.
func killSupervisor(r *trial) bool {
	r.t.Helper()
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatal(err)
	}
	<-r.reaped
	eventually(r.t, "no role is left", func() bool { return len(roles(r.t, r.folder)) == 0 })
	st, err := r.folder.Status()
	if err != nil || st.Phase != spec.Lost && st.Phase != spec.Succeeded {
		r.t.Fatalf("status %+v, %v", st, err)
	}
	return st.Phase == spec.Lost
}

func client(t *testing.T, f run.Folder) *api.Client {
	t.Helper()
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// status asks the API, or tells what the files say when it does not answer.
func status(t *testing.T, f run.Folder) spec.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := client(t, f)
	st, err := c.Status(ctx)
	if err != nil {
		if st, err = f.Status(); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// kill sends SIGKILL to one live role whose name begins so.
func kill(t *testing.T, f run.Folder, role string) bool {
	t.Helper()
	for _, p := range roles(t, f) {
		if strings.HasPrefix(p.role, role) {
			return syscall.Kill(p.pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

func TestKilledRolesLoseNothing(t *testing.T) {
	for i, tt := range []struct {
		role         string
		asynchronous bool
		servers      int
	}{{"worker 0", false, 1}, {"worker", false, 1}, {"ps", false, 1}, {"coordinator", false, 1}, {"worker", true, 1}, {"ps", true, 1}, {"ps 1", false, 3}} {
		if testing.Short() && i%2 == 1 || !raceBuild && i%2 == 0 { // make test has one half, the gate's race detector the other, race-all both
			continue
		}
		role := tt.role
		t.Run(fmt.Sprintf("%s of %d asynchronous=%v", role, tt.servers, tt.asynchronous), func(t *testing.T) {
			t.Parallel()
			s := long()
			s.ParameterServer.Replicas = tt.servers
			if s.Asynchronous = tt.asynchronous; s.Asynchronous {
				s.Optimizer.Momentum = 0
			}
			random := rand.New(rand.NewPCG(1, uint64(len(role))))
			killed := 0
			var st spec.Status
			r, s := disturbed(t, s, atStep(t, 5), func(r *trial) bool {
				for at := int64(5); killed < 3; at += 80 + random.Int64N(60) {
					eventually(t, "the run reaches the next step", func() bool {
						st := status(t, r.folder)
						return st.Step >= at || st.Phase.Final()
					})
					if status(t, r.folder).Phase.Final() {
						break
					}
					if kill(t, r.folder, role) {
						killed++
					}
				}
				st = r.wait()
				return killed > 0
			})
			if st.Phase != spec.Succeeded {
				r.dump()
				t.Fatalf("status %+v", st)
			}
			checkLedger(t, r.folder, s, 1500)
			if st.Records != records(s) {
				t.Errorf("%d records", st.Records)
			}
			t.Logf("killed %d times; %v", killed, st.Metrics)
		})
	}
}

// TestKilledWorkerCostsLittle measures; it only fails if training stops.
func TestKilledWorkerCostsLittle(t *testing.T) {
	t.Parallel()
	s := long()
	s.Worker.Replicas, s.Checkpoint.EverySteps = 2, 0
	var before spec.Status
	var at time.Time
	r, _ := disturbed(t, s, atStep(t, 5), func(r *trial) bool {
		before, at = status(t, r.folder), time.Now()
		return kill(t, r.folder, "worker 0")
	})
	if st := r.wait(); st.Phase != spec.Succeeded {
		r.dump()
		t.Fatalf("status %+v", st)
	}
	all, _ := events(t, r.folder.Metrics())
	var usual []time.Duration
	var last time.Time
	for _, e := range all {
		if e.Type != spec.EventUpdate {
			continue
		}
		if !last.IsZero() && last.Before(at) && e.Time.After(at) {
			t.Logf("after the kill at step %d, step %d was committed in %v", before.Step, e.Step, e.Time.Sub(at))
		} else if !last.IsZero() {
			usual = append(usual, e.Time.Sub(last))
		}
		last = e.Time
	}
	slices.Sort(usual)
	t.Logf("usual time per update: median %v, longest %v", usual[len(usual)/2], usual[len(usual)-1])
}

func TestScaleWhileTraining(t *testing.T) {
	t.Parallel()
	r, s := disturbed(t, long(), atStep(t, 1), func(r *trial) bool {
		c, ctx := client(t, r.folder), context.Background()
		final := func() bool { return status(t, r.folder).Phase.Final() }
		for _, workers := range []int{4, 1, 3} {
			from := status(t, r.folder).Step
			eventually(t, "steps are made", func() bool { return final() || status(t, r.folder).Step >= from+20 })
			if err := c.Change(ctx, spec.LiveChange{Workers: &workers}); err != nil && !final() {
				t.Fatal(err)
			}
			eventually(t, "the workers are as many as asked for", func() bool {
				st := status(t, r.folder)
				return st.Phase.Final() || st.Workers == workers && st.Wanted == workers
			})
		}
		if err := c.Change(ctx, spec.LiveChange{Workers: new(0)}); err == nil {
			t.Error("0 workers were taken")
		}
		if err := c.Change(ctx, spec.LiveChange{Workers: new(1_000_000)}); err == nil {
			t.Error("a million workers were taken")
		}
		return !final()
	})
	st := r.wait()
	if st.Phase != spec.Succeeded {
		r.dump()
		t.Fatalf("status %+v", st)
	}
	checkLedger(t, r.folder, s, 1500)
}

func TestSupervisorKilledLeavesNoRole(t *testing.T) {
	t.Parallel()
	// The checkpoint of step 50 is written while training goes on: how far it has
	// come by then nobody knows.
	r, s := disturbed(t, long(), func(r *trial) bool { return len(saved(r)) > 0 }, killSupervisor)
	// A new supervisor goes on from the checkpoint.
	again := relaunch(t, r.folder)
	again.start()
	if st := again.wait(); st.Phase != spec.Succeeded || st.Records != records(s) {
		again.dump()
		t.Fatalf("status %+v", st)
	}
	checkLedger(t, r.folder, s, 1500)
	all, _ := events(t, r.folder.Metrics())
	resumed := false
	for _, e := range all {
		resumed = resumed || e.Type == spec.EventRestore && e.Step >= 50
	}
	if !resumed {
		t.Error("the run did not resume from a checkpoint")
	}
}

func TestPipeClosedBeforeGoStartsNothing(t *testing.T) {
	t.Parallel()
	r := launch(t, small())
	if !r.self.Alive() {
		t.Error("the supervisor that announced itself is not alive")
	}
	if got, err := r.folder.ReadSupervisor(); err != nil || got != r.self {
		t.Errorf("supervisor.json has %+v, %v; announced was %+v", got, err, r.self)
	}
	r.in.Close()
	<-r.reaped
	if r.end != spec.EndAsked {
		t.Errorf("the supervisor ended with %d", r.end)
	}
	if st, err := r.folder.Status(); err != nil || st.Phase != spec.Pending {
		t.Errorf("status %+v, %v", st, err)
	}
	if logs, _ := os.ReadDir(r.folder.Logs()); len(logs) != 1 {
		t.Errorf("logs of roles that were never to start: %v", logs)
	}
}

func TestSecondSupervisorIsRefused(t *testing.T) {
	t.Parallel()
	r := launch(t, small())
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	second := trial{t: t, folder: r.folder}
	if text, ok := second.refused(in); ok || !strings.Contains(text, "already has a supervisor") {
		t.Errorf("second supervisor: %v %q", ok, text)
	}
	if got, err := r.folder.ReadSupervisor(); err != nil || got != r.self {
		t.Errorf("the second supervisor put itself into supervisor.json: %+v, %v", got, err)
	}
	r.start()
	if st := r.wait(); st.Phase != spec.Succeeded {
		t.Errorf("status %+v", st)
	}
	third := trial{t: t, folder: r.folder}
	if text, ok := third.refused(in); ok || !strings.Contains(text, "already succeeded") {
		t.Errorf("supervisor of a finished run: %v %q", ok, text)
	}
}

// TestSpentRestartsAreTheCause kills one role as soon as it is there, until the
// supervisor gives the run up: no status says at any time that the run ended for
// another reason, neither the API nor the file.
func TestSpentRestartsAreTheCause(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ps", "worker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := long()
			s.Epochs, s.Worker.Replicas, s.Worker.MinReplicas = 100_000, 1, 1
			f := run.Folder(filepath.Join(t.TempDir(), "run"))
			if err := f.Create(s); err != nil {
				t.Fatal(err)
			}
			supervisor := exec.Command(os.Args[0], "supervise", "--run", string(f))
			supervisor.Env = append(os.Environ(), inSteps("20ms")...)
			r := relaunchBy(t, f, supervisor)
			r.start()
			for over := false; !over; {
				kill(t, r.folder, name)
				time.Sleep(5 * time.Millisecond)
				for _, st := range []spec.Status{status(t, r.folder), must(r.folder.Status())} {
					if st.Phase.Final() && st.Cause != spec.CauseRestarts {
						r.dump()
						t.Fatalf("on its way to the end: %+v", st)
					}
				}
				select {
				case <-r.reaped:
					over = true
				default:
				}
			}
			st := must(r.folder.Status())
			if st.Phase != spec.Stopped || st.Cause != spec.CauseRestarts || !strings.Contains(st.Message, name+" 0 ended") {
				r.dump()
				t.Fatalf("it ended as %+v", st)
			}
		})
	}
}

func TestStopKeepsACheckpoint(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *trial) error{
		"signal":  func(_ *testing.T, r *trial) error { return r.cmd.Process.Signal(syscall.SIGTERM) },
		"request": func(t *testing.T, r *trial) error { return client(t, r.folder).Stop(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := long()
			s.Checkpoint.EverySteps = 0
			var st spec.Status
			r, s := disturbed(t, s, atStep(t, 3), func(r *trial) bool {
				err := stop(t, r)
				st = r.wait()
				if err != nil && st.Phase != spec.Succeeded {
					t.Fatal(err)
				}
				return st.Phase != spec.Succeeded
			})
			if st.Phase != spec.Stopped || st.Step < 3 {
				r.dump()
				t.Fatalf("status %+v", st)
			}
			if want := map[string]spec.End{"signal": spec.EndAsked, "request": spec.EndOtherwise}[name]; r.end != want {
				t.Errorf("the supervisor ended with %d, want %d", r.end, want)
			}
			again := relaunch(t, r.folder)
			again.start()
			end := again.wait()
			if end.Phase != spec.Succeeded || end.Records != records(s) {
				again.dump()
				t.Fatalf("status %+v", end)
			}
			all, _ := events(t, r.folder.Metrics())
			last := int64(-1)
			for _, e := range all {
				if e.Type == spec.EventRestore {
					last = e.Step
				}
			}
			if last != st.Step {
				t.Errorf("stopped at step %d, resumed from %d", st.Step, last)
			}
			checkLedger(t, r.folder, s, 1500)
		})
	}
}

// refused starts a supervisor that is to refuse, and returns what it said.
func (r *trial) refused(in *os.File) (string, bool) {
	r.t.Helper()
	cmd := supervise(r.folder)
	cmd.Stdin = in
	out, err := cmd.StderrPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	text, _ := io.ReadAll(out)
	return string(text), cmd.Wait() == nil
}

// TestDamagedCheckpointIsPassedOver spoils the newest checkpoint of a lost run:
// the run goes on from the one before.
func TestDamagedCheckpointIsPassedOver(t *testing.T) {
	t.Parallel()
	spoilers := map[string]func(path string) error{
		"parameters": func(path string) error {
			file, err := os.OpenFile(part(path), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = file.WriteAt([]byte{1, 2, 3}, 1000)
			return err
		},
		"truncated":   func(path string) error { return os.Truncate(part(path), 100) },
		"manifest":    func(path string) error { return os.Truncate(filepath.Join(path, "manifest.json"), 100) },
		"no manifest": func(path string) error { return os.Remove(filepath.Join(path, "manifest.json")) },
	}
	if testing.Short() { // the processes do the same after these as after other parameters
		delete(spoilers, "truncated")
		delete(spoilers, "manifest")
	}
	for name, spoil := range spoilers {
		t.Run(name, func(t *testing.T) {
			r, s := disturbed(t, long(), func(r *trial) bool { return len(saved(r)) >= 2 }, killSupervisor)
			have := saved(r)
			newest := have[len(have)-1]
			if err := spoil(newest); err != nil {
				t.Fatal(err)
			}
			again := relaunch(t, r.folder)
			again.start()
			if st := again.wait(); st.Phase != spec.Succeeded || st.Records != records(s) {
				again.dump()
				t.Fatalf("status %+v", st)
			}
			checkLedger(t, r.folder, s, 1500)
			log := string(must(os.ReadFile(r.folder.Log("coordinator", 0))))
			if name == "no manifest" { // it was never one
				return
			}
			if !strings.Contains(log, "checkpoint is not usable") || !strings.Contains(log, filepath.Base(newest)) {
				t.Error("the log does not name the damaged checkpoint")
			}
		})
	}
}

// TestResumeWithMoreServers cuts the parameters anew.
func TestResumeWithMoreServers(t *testing.T) {
	t.Parallel()
	r, s := disturbed(t, long(), atStep(t, 3), func(r *trial) bool {
		err := client(t, r.folder).Stop(context.Background())
		st := r.wait()
		if st.Phase != spec.Stopped && st.Phase != spec.Succeeded {
			t.Fatalf("status %+v, %v", st, err)
		}
		return st.Phase == spec.Stopped
	})
	s.ParameterServer.Replicas = 3
	if err := r.folder.WriteSpec(s); err != nil {
		t.Fatal(err)
	}
	again := relaunch(t, r.folder)
	again.start()
	st := again.wait()
	if st.Phase != spec.Succeeded || st.Records != records(s) {
		again.dump()
		t.Fatalf("status %+v", st)
	}
	t.Logf("%v", st.Metrics)
}
