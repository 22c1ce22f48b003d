package rendezvous

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// A coordinator that dies after the success, or the failure, of a generation has had no
// time to declare it. The next one does, and begins nothing.
func TestEndIsDeclaredByTheNextCoordinator(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]spec.Phase{keySucceeded: spec.Succeeded, keyFailed: spec.Failed} {
		t.Run(run, func(t *testing.T) {
			b := newBench(t, 1, 1, 0)
			r, err := open(b.options)
			if err == nil {
				err = r.session.Begin()
			}
			if err != nil {
				t.Fatal(err)
			}
			r.note(event{number: 1, members: []session.Seat{{Role: wire.RoleWorker}}, ended: true, run: run, text: "has ended"})
			if err := r.session.Close(); err != nil {
				t.Fatal(err)
			}
			b.begin()
			if st := b.over(); st.Phase != want {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// An agent that comes back after its ranks were given up is halted like the others. The
// next generation begins only once its ranks have ended.
func TestLateAgentIsHalted(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 1, 0)
	b.options.LostTime = time.Second
	b.begin()
	first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
	first.ready(0)
	second.ready(0)
	begin, other := first.start(), second.start()
	second.conn.Close()
	receive[wire.Halt](first, wire.TypeHalt) // worker-1 is lost
	second.connect()
	second.send(wire.TypeRunning, wire.Running{Begin: other})
	receive[wire.Halt](second, wire.TypeHalt)
	first.end(begin, program.Stopped, "stopped")
	second.end(other, program.Stopped, "stopped")
	if a, b := first.start(), second.start(); a.Generation != 2 || b.World != 2 {
		t.Errorf("it goes on with %+v and %+v", a, b)
	}
}

// A checkpoint that is made at the very end of a generation is waited for in the lists
// of the other agents.
func TestLastCheckpointIsUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 2, 0)
	b.options.ListTime = time.Hour
	b.begin()
	first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
	first.ready(0)
	second.ready(0)
	begin, other := first.start(), second.start()
	second.end(other, program.Failed, "rank 1 ended with 3", "a")
	receive[wire.Halt](first, wire.TypeHalt)
	first.end(begin, program.Stopped, "stopped", "a", "b")
	time.Sleep(200 * time.Millisecond)
	second.ready(1, "a", "b")
	if a, b := first.start(), second.start(); a.Resume != "b" || b.Resume != "b" {
		t.Errorf("it goes on from %q and %q", a.Resume, b.Resume)
	}
}

// A metric that is not a number any more has no value; an older one would pass for the
// newest. The next coordinator knows that, too.
func TestNotFiniteMetrics(t *testing.T) {
	t.Parallel()
	p := newProgress()
	take := func(point wire.Point) {
		values, notFinite := p.take(point)
		p.follow(spec.Event{Type: spec.EventUpdate, Step: point.Step, Metrics: values, NotFinite: notFinite})
	}
	take(wire.Point{Step: 1, Values: map[string]float64{"loss": 0.5, "accuracy": 0.9}})
	take(wire.Point{Step: 2, Values: map[string]float64{"accuracy": 0.8}, NotFinite: []string{"loss"}})
	if _, ok := p.metrics["loss"]; ok || p.metrics["accuracy"] != 0.8 {
		t.Errorf("metrics %v", p.metrics)
	}
	for i := range 2 * maxMetrics {
		take(wire.Point{Step: 3, Values: map[string]float64{fmt.Sprint("m", i): 1}})
	}
	if len(p.metrics) > maxMetrics {
		t.Errorf("%d metrics", len(p.metrics))
	}
}

// A run whose code is gone stops, in place of agents that ask for it for ever.
func TestCodeIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, 1, 0)
	hash := strings.Repeat("ab", 32)
	b.options.Spec.Program.Code = hash
	b.begin()
	g := b.guest(wire.RoleWorker, 0)
	if body, err := b.client().Code(t.Context(), hash); err == nil {
		body.Close()
		t.Fatal("code is sent that is not there")
	}
	if st := b.over(g); st.Phase != spec.Stopped || st.Cause != spec.CauseData || !strings.Contains(st.Message, "apply again") {
		t.Errorf("status %+v", st)
	}
}

// A surplus worker whose connection breaks comes back, and runs on until the others have
// saved a checkpoint, too.
func TestSurplusWorkerComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 1, 0)
	b.begin()
	first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
	first.ready(0)
	second.ready(0)
	begin, other := first.start(), second.start()
	one := 1
	if err := b.client().Change(t.Context(), spec.LiveChange{Workers: &one, MinReplicas: &one}); err != nil {
		t.Fatal(err)
	}
	second.conn.Close()
	second.connect()
	second.send(wire.TypeRunning, wire.Running{Begin: other})
	second.send(wire.TypeObserved, wire.Observed{Generation: 1, Checkpoints: []wire.Checkpoint{{Name: "a", Step: 3}}})
	receive[wire.Halt](first, wire.TypeHalt)
	receive[wire.Halt](second, wire.TypeHalt)
	first.end(begin, program.Stopped, "stopped", "a")
	second.end(other, program.Stopped, "stopped", "a")
	receive[wire.Leave](second, wire.TypeLeave)
	if next := first.start(); next.World != 1 || next.Resume != "a" {
		t.Errorf("it goes on with %+v", next)
	}
}

// Where some ranks have ended and others have not, the status names both.
func TestPartialEnd(t *testing.T) {
	t.Parallel()
	g := newGeneration(1, 3, time.Now())
	worker := func(i int) *part { return g.part(session.Seat{Role: wire.RoleWorker, Index: i}) }
	for i := range 3 {
		worker(i)
	}
	g.part(session.Seat{Role: wire.RoleServer}) // which never ends
	if text := g.partial(); text != "" {
		t.Errorf("all run: %q", text)
	}
	worker(1).done = []int{2, 3}
	worker(2).result = &wire.Result{Cause: string(program.Succeeded)}
	want := "rank 2, rank 3 of worker-1, all ranks of worker-2 have ended with 0, and ranks of worker-0, worker-1 still run"
	if text := g.partial(); text != want {
		t.Errorf("%q", text)
	}
}

// A rank that is halted first makes others fail before SIGTERM has reached them. That is
// not the program's error: the generation ends by its halt.
func TestHaltedRankIsTheCause(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 1, 0)
	b.options.Spec.Program.MaxRestarts = 0
	b.begin()
	first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
	first.ready(0)
	second.ready(0)
	begin, other := first.start(), second.start()
	one := 1
	if err := b.client().Change(t.Context(), spec.LiveChange{Workers: &one, MinReplicas: &one}); err != nil {
		t.Fatal(err)
	}
	first.send(wire.TypeObserved, wire.Observed{Generation: 1, Checkpoints: []wire.Checkpoint{{Name: "a", Step: 3}}})
	receive[wire.Halt](first, wire.TypeHalt)
	receive[wire.Halt](second, wire.TypeHalt)
	second.end(other, program.Failed, "rank 1 ended with 1", "a")
	first.end(begin, program.Stopped, "stopped", "a")
	receive[wire.Leave](second, wire.TypeLeave)
	next := first.start()
	if next.World != 1 || next.Resume != "a" || next.Restarts != 0 {
		t.Errorf("it goes on with %+v", next)
	}
	first.end(next, program.Succeeded, "")
	if st := b.over(first); st.Phase != spec.Succeeded || st.Metrics["restarts"] != 0 {
		t.Errorf("status %+v", st)
	}
	data, err := os.ReadFile(b.options.Folder.Metrics())
	if err != nil || !strings.Contains(string(data), "generation 1 has ended: 2 workers become 1") {
		t.Errorf("history %s, %v", data, err)
	}
}
