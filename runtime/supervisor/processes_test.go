package supervisor

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// restarting gives the processes of a run without starting any.
func restarting(t *testing.T, workers, least int) *processes {
	t.Helper()
	s := spec.Default()
	s.Model, s.Dataset = "mlp", spec.Dataset{Path: "/nowhere", Hash: "x"}
	s.Worker.Replicas, s.Worker.MinReplicas = workers, least
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	c := newProcesses(Options{Folder: f, Log: slog.New(slog.DiscardHandler)}, s, nil, nil)
	c.roles = []*role{{name: Coordinator}, {name: Server}}
	c.scale(workers)
	return c
}

func (c *processes) find(name string, index int) *role {
	for _, r := range c.roles {
		if r.name == name && r.index == index {
			return r
		}
	}
	return nil
}

// end lets a role end after it has lived for so long.
func (c *processes) end(r *role, lived time.Duration) string {
	r.started = time.Now().Add(-lived)
	return c.noteEnd(processEnd{role: r, state: "signal: killed"})
}

// age moves what has happened into the past.
func (r *role) age(by time.Duration) {
	for i := range r.ends {
		r.ends[i] = r.ends[i].Add(-by)
	}
}

func TestLossesOverALongTimeAreNoReasonToEnd(t *testing.T) {
	c := restarting(t, 1, 1)
	for _, r := range c.roles {
		for i := range 100 {
			if why := c.end(r, time.Hour); why != "" {
				t.Fatalf("%s: loss %d ends the run: %s", r, i, why)
			}
			r.age(time.Hour)
		}
		if len(r.ends) > 1 {
			t.Errorf("%s: %d ends are remembered", r, len(r.ends))
		}
	}
}

func TestLossesInAShortTimeStopTheRun(t *testing.T) {
	for _, name := range []string{Coordinator, Server} {
		c := restarting(t, 1, 1)
		r := c.find(name, 0)
		for i := range maxEnds - 1 {
			if why := c.end(r, time.Minute); why != "" {
				t.Fatalf("%s: loss %d ends the run: %s", r, i, why)
			}
		}
		if why := c.end(r, time.Minute); !strings.Contains(why, "ended 5 times") {
			t.Errorf("%s: %q", r, why)
		}
		s := spent(spec.Status{}, "x", "")
		if s.Phase != spec.Stopped || s.Cause != spec.CauseRestarts {
			t.Errorf("a run whose processes cannot be kept running ends as %+v", s)
		}
	}
}

// A coordinator that commits updates between its ends gets on, however often it
// ends: budget and pause begin again.
func TestCommittedUpdateResetsTheBudget(t *testing.T) {
	c := restarting(t, 1, 1)
	r := c.find(Coordinator, 0)
	for i := range 50 {
		r.pulse = pulse{}
		r.pulse.take(spec.Control{Committed: true})
		r.pulse.take(spec.Control{Beat: new(spec.Beat)})
		if why := c.end(r, time.Second); why != "" {
			t.Fatalf("end %d behind a committed update stops the run: %s", i, why)
		}
		if pause := r.due.Sub(r.endedAt); pause != firstPause {
			t.Fatalf("after end %d it pauses for %v", i, pause)
		}
	}
	for i := range maxEnds - 1 {
		r.pulse = pulse{}
		why := c.end(r, time.Second)
		if last := i == maxEnds-2; last != strings.Contains(why, "ended 5 times") {
			t.Errorf("end %d without a committed update: %q", i, why)
		}
	}
}

func TestWorkerThatIsGivenUpIsOneLess(t *testing.T) {
	c := restarting(t, 3, 2)
	fail := func(index int) (why string) {
		for range maxQuick {
			why = c.end(c.find(Worker, index), time.Second)
		}
		return why
	}
	if why := fail(1); why != "" {
		t.Fatalf("the run ends although two of at least two workers are left: %s", why)
	}
	due := func() (names []string) {
		for _, r := range c.roles {
			if r.name == Worker && !r.givenUp {
				names = append(names, r.String())
			}
		}
		return names
	}
	if got := due(); len(got) != 2 || got[0] != "worker 0" || got[1] != "worker 2" {
		t.Errorf("workers %v are kept running", got)
	}
	c.scale(3) // somebody asks for them again
	if got := due(); len(got) != 3 {
		t.Errorf("workers %v are kept running", got)
	}
	if why := fail(1); why != "" {
		t.Error(why)
	}
	if why := fail(0); !strings.Contains(why, "worker 0") {
		t.Errorf("one of at least two workers is left: %q", why)
	}
}

// A role gets all that it needs by argument, and no secret among it.
func TestArguments(t *testing.T) {
	c := restarting(t, 2, 1)
	var err error
	if c.ports, err = listen(2); err != nil {
		t.Fatal(err)
	}
	defer c.ports.close()
	secret, err := c.Folder.ReadToken()
	if err != nil {
		t.Fatal(err)
	}
	at := c.ports.endpoints()
	for name, want := range map[string][]string{
		Coordinator: {"--state " + string(c.Folder), "--servers " + strings.Join(at.Servers, ","), "--data /nowhere"},
		Server:      {"--index 0", "--spec " + c.Folder.Spec()},
		Worker:      {"--index 0", "--coordinator " + at.Coordinator, "--servers " + strings.Join(at.Servers, ","), "--data /nowhere"},
	} {
		got := strings.Join(c.arguments(c.find(name, 0)), " ")
		for _, w := range append(want, "--token-file "+c.Folder.Token()) {
			if !strings.Contains(got, w) {
				t.Errorf("%s gets %q, without %q", name, got, w)
			}
		}
		if strings.Contains(got, secret) {
			t.Errorf("%s gets the token as an argument", name)
		}
	}
}

// Each worker of a program sees its own GPUs and no other's. A worker of a built-in
// model sees all of them, and takes one that no other run has.
func TestWorkersShareTheGPUs(t *testing.T) {
	s := spec.DefaultProgram()
	s.Program.Command = `["train"]`
	s.Worker.GPUs = 2
	worker := &role{name: Worker, index: 1}
	for ours, want := range map[string]string{
		"A=1":                            "CUDA_VISIBLE_DEVICES=2,3",
		"CUDA_VISIBLE_DEVICES=4,5,6,7":   "CUDA_VISIBLE_DEVICES=6,7",
		"CUDA_VISIBLE_DEVICES=4,5,GPU-6": "CUDA_VISIBLE_DEVICES=GPU-6",
		"CUDA_VISIBLE_DEVICES=4,5":       "CUDA_VISIBLE_DEVICES=",
	} {
		if got := environment([]string{ours}, &s, worker); len(got) != 2 || got[1] != want {
			t.Errorf("of %s it gets %q, want %s", ours, got, want)
		}
	}
	if got := environment([]string{"A=1"}, &s, &role{name: Server}); len(got) != 1 {
		t.Errorf("a server gets %q", got)
	}
	s = spec.Default()
	s.Worker.GPUs = 1
	if got := environment([]string{"A=1"}, &s, worker); len(got) != 1 {
		t.Errorf("a worker of a model gets %q", got)
	}
}

// How a process ended decides what becomes of it.
func TestEndsDecide(t *testing.T) {
	c := restarting(t, 3, 1)
	end := func(name string, index int, how spec.End) string {
		r := c.find(name, index)
		r.started = time.Now()
		return c.noteEnd(processEnd{role: r, state: "exit status", end: how})
	}
	if why := end(Worker, 1, spec.EndGivenUp); why != "" || !c.find(Worker, 1).givenUp {
		t.Errorf("a worker that cannot work is not given up at once: %q", why)
	}
	if why := end(Worker, 0, spec.EndNoCoordinator); why != "" || c.find(Worker, 0).givenUp || c.find(Worker, 0).due.IsZero() {
		t.Errorf("a worker without a coordinator is not started again: %q", why)
	}
	if why := end(Server, 0, spec.EndUsage); !strings.Contains(why, "cannot be started") {
		t.Errorf("a server that cannot be started is started again: %q", why)
	}
	if why := end(Worker, 2, spec.EndGivenUp); why != "" {
		t.Error(why)
	}
	if why := end(Worker, 0, spec.EndGivenUp); !strings.Contains(why, "worker 0") {
		t.Errorf("no worker is left: %q", why)
	}
}
