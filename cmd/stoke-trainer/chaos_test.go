package main

import (
	"context"
	"math/rand/v2"
	"os"
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

// settle waits until all wanted workers hold the parameters: they have joined, and two
// updates were made since. What is then done to one of them leaves another holder.
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
		return joined >= 0 && now.Step >= joined+2
	})
}

// strike does one thing to the run. At least one worker is left as it is.
func (s *storm) strike() {
	all := s.live()
	victim := process{}
	if len(all) > 1 {
		victim = all[s.random.IntN(len(all))]
	}
	kind := []string{"kill", "kill", "stop", "scale", "coordinator"}[s.random.IntN(5)]
	switch {
	case kind == "coordinator":
		kill(s.t, s.folder, "coordinator")
	case kind == "scale":
		n := 2 + s.random.IntN(5)
		for _, p := range all { // also where the answer is lost, the change may have come
			if index, _ := strconv.Atoi(strings.TrimPrefix(p.role, "worker ")); index >= n {
				s.stopped[p.pid] = true
			}
		}
		c := client(s.t, s.folder)
		if err := c.Change(context.Background(), spec.LiveChange{Workers: &n}); err != nil {
			return // the coordinator is away, or the run has ended
		}
		s.workers = n
	case victim.pid == 0:
		return
	case kind == "kill":
		s.stopped[victim.pid] = true
		_ = syscall.Kill(victim.pid, syscall.SIGKILL) // it may have ended
	case kind == "stop":
		s.stopped[victim.pid] = true
		if syscall.Kill(victim.pid, syscall.SIGSTOP) != nil {
			return
		}
		time.Sleep(time.Duration(s.random.IntN(5000)) * time.Millisecond)
		_ = syscall.Kill(victim.pid, syscall.SIGCONT) // it may have been replaced
	}
	s.kinds[kind]++
}

// chaosEvents is how many events a run is disturbed by: STOKE_CHAOS, or 20; 6 under the
// race detector.
func chaosEvents(t *testing.T) int {
	text := os.Getenv("STOKE_CHAOS")
	switch {
	case text == "" && testing.Short():
		return 6
	case text == "":
		return 20
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
	s := reducing(4, 3*events)
	calm := launch(t, reducing(1, s.Epochs))
	calm.start()
	if st := calm.wait(); st.Phase != spec.Succeeded {
		calm.dump()
		t.Fatalf("undisturbed: %+v", st)
	}
	r := launch(t, s)
	r.start()
	st := &storm{trial: r, random: rand.New(rand.NewPCG(3, uint64(events))), workers: 4, stopped: make(map[int]bool), kinds: make(map[string]int)}
	var before []process
	for range events {
		st.settle()
		now := st.live()
		if status(t, r.folder).Phase.Final() {
			break
		}
		for _, p := range before {
			if !st.stopped[p.pid] && !slices.Contains(now, p) {
				t.Errorf("%s has another process, though nothing was done to it", p.role)
			}
		}
		before = now
		st.strike()
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
	if formed < events/4 {
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
