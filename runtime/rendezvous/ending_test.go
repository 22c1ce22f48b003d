package rendezvous

import (
	"fmt"
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
