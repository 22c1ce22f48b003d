package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// reducing is a deterministic run by all-reduce, which takes a while.
func reducing(workers, epochs int) spec.Spec {
	s := small()
	s.Strategy, s.ParameterServer.Replicas = spec.StrategyAllReduce, 0
	s.Deterministic, s.Optimizer.Momentum, s.Worker.Replicas = true, 0.9, workers
	s.Epochs, s.Checkpoint.EverySteps, s.Checkpoint.EverySeconds = epochs, 0, 0
	return s
}

// finalModel returns the hash of a run's parameters and slots at its end.
func (r *trial) finalModel() string {
	r.t.Helper()
	place := must(checkpoint.Open(r.t.Context(), r.folder.Checkpoints()))
	names := must(place.Names(r.t.Context(), spec.FinalPrefix))
	if len(names) != 1 {
		r.t.Fatalf("final models %v", names)
	}
	m := must(place.Manifest(r.t.Context(), names[0]))
	if len(m.Parts) != 1 || m.Parts[0].To != model.Length(m.Vars) {
		r.t.Fatalf("parts %+v", m.Parts)
	}
	return m.Parts[0].SHA256
}

// storm disturbs a run of six workers, one event after the other, each once the run
// has made an update since the last one.
type storm struct {
	*trial
	random  *rand.Rand
	workers int          // wanted now
	stopped map[int]bool // processes that were stopped, killed or dismissed at some time
	kinds   map[string]int
	cuts    string // file of the partition
}

// live returns the workers that work.
func (s *storm) live() (all []process) {
	for _, p := range roles(s.t, s.folder) {
		if strings.HasPrefix(p.role, "worker ") {
			all = append(all, p)
		}
	}
	return all
}

// settle waits until all wanted workers hold the parameters: they have joined, two updates
// were made since, and the newest group has all of them. What is then done to one of them
// leaves another holder.
func (s *storm) settle() {
	joined := int64(-1)
	eventually(s.t, "the run goes on with all its workers", func() bool {
		now := status(s.t, s.folder)
		switch {
		case now.Phase.Final():
			return true
		case now.Workers < now.Wanted || len(s.live()) > now.Workers:
			joined = -1
		case joined < 0:
			joined = now.Step
		}
		return joined >= 0 && now.Step >= joined+2 && s.holders() >= now.Wanted
	})
}

// holders returns how many workers the newest group has, by the run's history.
func (s *storm) holders() int {
	all, _ := eventsOf(s.t, s.trial)
	for _, e := range slices.Backward(all) {
		if names, attached := strings.CutPrefix(e.Message, "attached to "); attached && e.Type == spec.EventRestore {
			return 1 + strings.Count(names, ",")
		}
		if e.Type == spec.EventRestore {
			break
		}
	}
	return s.workers // the message about the first group does not have its members
}

// strike does one thing to the run, and reports whether it did: a single worker is left as it
// is, and a coordinator that is away does not answer.
func (s *storm) strike() bool {
	all := s.live()
	victim := process{}
	if len(all) > 1 {
		victim = all[s.random.IntN(len(all))]
	}
	kind := []string{"kill", "kill", "stop", "scale", "coordinator", "cut", "hole"}[s.random.IntN(7)]
	switch {
	case kind == "coordinator":
		if !kill(s.t, s.folder, "coordinator") {
			return false
		}
	case kind == "scale":
		n := 1 + s.random.IntN(5)
		if n >= s.workers { // from 1 to 6, except the present number
			n++
		}
		for _, p := range all { // also where the answer is lost, the change may have come
			if index, _ := strconv.Atoi(strings.TrimPrefix(p.role, "worker ")); index >= n {
				s.stopped[p.pid] = true
			}
		}
		c := client(s.t, s.folder)
		if err := c.Change(context.Background(), spec.LiveChange{Workers: &n}); err != nil {
			return false // the coordinator is away, or the run has ended
		}
		s.workers = n
	case victim.pid == 0:
		return false
	case kind == "kill":
		s.stopped[victim.pid] = true
		if syscall.Kill(victim.pid, syscall.SIGKILL) != nil {
			return false
		}
	case kind == "stop":
		s.stopped[victim.pid] = true
		if syscall.Kill(victim.pid, syscall.SIGSTOP) != nil {
			return false
		}
		time.Sleep(time.Duration(s.random.IntN(5000)) * time.Millisecond)
		_ = syscall.Kill(victim.pid, syscall.SIGCONT) // it may have been replaced
	default:
		s.separate(victim, all, kind == "hole")
	}
	s.kinds[kind]++
	return true
}

// separate lets a worker and another one not reach each other for a while. Both stay as
// they are.
func (s *storm) separate(one process, all []process, hole bool) {
	s.t.Helper()
	others := slices.DeleteFunc(slices.Clone(all), func(p process) bool { return p == one })
	other := others[s.random.IntN(len(others))]
	p := &partition{Hole: hole}
	for role, to := range map[string]*int{one.role: &p.One, other.role: &p.Other} {
		*to, _ = strconv.Atoi(strings.TrimPrefix(role, "worker "))
	}
	if err := p.write(s.cuts); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(time.Duration(s.random.IntN(6000)) * time.Millisecond)
	p = nil
	if err := p.write(s.cuts); err != nil {
		s.t.Fatal(err)
	}
}

// chaosEvents is how many events a run is disturbed by: STOKE_CHAOS, or 4. The gate's stage
// chaos has 20, make e2e-chaos has 200.
func chaosEvents(t *testing.T) int {
	text := os.Getenv("STOKE_CHAOS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("STOKE_CHAOS: %v", err)
	}
	return n
}

// Whatever becomes of single processes, a run by all-reduce gives the bits of an
// undisturbed one: the other workers go on as they are, and no checkpoint is used.
func TestChaosOfAllReduce(t *testing.T) {
	t.Parallel()
	events := chaosEvents(t)
	s := reducing(4, 2*events) // some six updates for each event, of the 38 in an epoch
	calm := launch(t, reducing(1, s.Epochs))
	calm.start()
	if st := calm.wait(); st.Phase != spec.Succeeded {
		calm.dump()
		t.Fatalf("undisturbed: %+v", st)
	}
	cuts := filepath.Join(t.TempDir(), "partition")
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	self := exec.Command(must(os.Executable()), "supervise", "--run", string(f))
	self.Env = append(os.Environ(), asTrainer+"=1", partitionFile+"="+cuts, "STOKE_ACCOUNTS="+accounts(f))
	r := relaunchBy(t, f, self)
	r.start()
	st := &storm{trial: r, cuts: cuts, random: rand.New(rand.NewPCG(3, uint64(events))), workers: 4, stopped: make(map[int]bool), kinds: make(map[string]int)}
	if err := (*partition)(nil).write(cuts); err != nil {
		t.Fatal(err)
	}
	var before []process
	for done := 0; done < events; {
		st.settle()
		now := st.live()
		if is := status(t, r.folder); is.Phase.Final() {
			t.Fatalf("the run ended after %d of %d events: %+v", done, events, is)
		}
		for _, p := range before {
			if !st.stopped[p.pid] && !slices.Contains(now, p) {
				t.Errorf("%s has another process, though nothing was done to it", p.role)
			}
		}
		before = now
		if st.strike() {
			done++
		}
	}
	if err := os.Remove(cuts); err != nil {
		t.Fatal(err)
	}
	end := r.wait()
	if end.Phase != spec.Succeeded || end.Records != records(s) {
		r.dump()
		t.Fatalf("status %+v", end)
	}
	t.Logf("events %v", st.kinds)
	if got, want := r.finalModel(), calm.finalModel(); got != want {
		t.Errorf("the final parameters are %s, undisturbed %s", got, want)
	}
	checkMembers(t, r, s, 1500)
	all, _ := eventsOf(t, r)
	formed := 0
	for _, e := range all {
		if e.Type != spec.EventRestore {
			continue
		}
		if formed++; formed > 1 && !strings.HasPrefix(e.Message, "attached to ") {
			t.Errorf("the run went back: %+v", e)
		}
	}
	if formed < max(2, events/4) {
		t.Errorf("only %d groups were formed", formed)
	}
}

func eventsOf(t *testing.T, r *trial) (all, valid []spec.Event) { return events(t, r.folder.Metrics()) }

// checkMembers compares the ledger with what the members noted of the updates that
// they made: those of the highest term that made an update count, and all of them
// are of the same contributions.
func checkMembers(t *testing.T, r *trial, s spec.Spec, records int64) {
	t.Helper()
	made := make(map[int64]spec.Event)
	for _, path := range must(filepath.Glob(filepath.Join(accounts(r.folder), "applied-*.jsonl"))) {
		_, noted := events(t, path)
		for _, e := range noted {
			if e.Type != spec.EventUpdate {
				continue
			}
			before, ok := made[e.Step]
			switch {
			case !ok || e.Term > before.Term:
				made[e.Step] = e
			case e.Term == before.Term && len(e.Taken) != len(before.Taken):
				t.Errorf("update %d of term %d is of %v and of %v", e.Step, e.Term, e.Taken, before.Taken)
			}
		}
	}
	told := updates(t, r.folder)
	book := ledger.NewBook(records)
	for _, u := range told {
		e, ok := made[u.Step]
		if !ok {
			t.Fatalf("no member made update %d of the ledger", u.Step)
		}
		if err := book.Commit(e.Taken...); err != nil {
			t.Fatalf("update %d: %v", u.Step, err)
		}
	}
	for epoch := range s.Epochs {
		if !book.IsComplete(epoch) {
			t.Errorf("epoch %d lacks %v", epoch, book.Gaps(epoch))
		}
	}
}

// A run whose updates stay on the device of its only worker keeps its account exact: while
// the worker or the coordinator is killed, and while a second worker comes and goes.
func TestChaosOfOneWorker(t *testing.T) {
	t.Parallel()
	s := reducing(1, 40)
	s.Deterministic, s.Checkpoint.EverySteps = false, 10
	r := launch(t, s)
	r.start()
	scale := func(n int) func() {
		return func() {
			c := client(t, r.folder)
			if err := c.Change(context.Background(), spec.LiveChange{Workers: &n}); err != nil && !status(t, r.folder).Phase.Final() {
				t.Errorf("scale to %d: %v", n, err)
			}
			eventually(t, "the workers change", func() bool {
				now := status(t, r.folder)
				return now.Phase.Final() || now.Workers == n
			})
		}
	}
	for _, strike := range []func(){
		func() { kill(t, r.folder, "coordinator") },
		scale(2), scale(1),
		func() { kill(t, r.folder, "worker 0") },
		scale(2),
		func() { kill(t, r.folder, "worker 1") },
		scale(1),
		func() { kill(t, r.folder, "coordinator") },
	} {
		from := int64(-1)
		eventually(t, "the run gets on", func() bool {
			now := status(t, r.folder)
			if from < 0 || now.Step < from { // it may have gone back
				from = now.Step
			}
			return now.Phase.Final() || now.Step >= from+3
		})
		if status(t, r.folder).Phase.Final() {
			break
		}
		strike()
	}
	end := r.wait()
	if end.Phase != spec.Succeeded || end.Records != records(s) {
		r.dump()
		t.Fatalf("status %+v", end)
	}
	checkMembers(t, r, s, 1500)
	if accuracy := end.Metrics["accuracy"]; accuracy < 0.9 {
		t.Errorf("accuracy %.3f", accuracy)
	}
}
