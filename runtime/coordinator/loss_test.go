package coordinator

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// reportAndDie joins as a worker, reports a lease that it has not pushed, and
// closes its connections, as the kernel does for a process that is killed: after
// a while, in which the server waits for the push, or at once.
func (b *bench) reportAndDie(instance string, after time.Duration) {
	b.t.Helper()
	hello := wire.Hello{Role: "worker", Index: 1, Instance: instance, Session: instance}
	server, err := credentials.Dial(b.ctx, b.options.Servers[0], hello)
	if err != nil {
		b.t.Fatal(err)
	}
	defer server.Close()
	c := b.guestWith(hello)
	defer c.Close()
	for {
		m, err := c.Receive(time.Minute)
		if err != nil {
			b.t.Fatal(err)
		}
		if m.Type != wire.TypeLease {
			continue
		}
		var l wire.Lease
		if err := m.Decode(&l); err != nil {
			b.t.Fatal(err)
		}
		loss := 1.0
		r := wire.Report{ID: l.ID, Term: l.Term, Version: l.Version, Weight: float64(l.End - l.Start), Loss: &loss, Finite: true}
		if err := c.Send(wire.TypeReport, r, nil); err != nil {
			b.t.Fatal(err)
		}
		time.Sleep(after)
		return
	}
}

// A server never waits for the push of a worker whose connection is closed: of
// 100 workers that were killed between report and push, no timer had to fire.
func TestKilledWorkersAreNotWaitedFor(t *testing.T) {
	const kills = 100
	s := pointsSpec()
	s.Worker.Replicas, s.Worker.MinReplicas, s.Epochs, s.LearningRate = 2, 1, 1<<40, 0.01
	b := newBench(t, s, linear{})
	stop := make(chan struct{})
	b.options.Stop, b.options.HearTime = stop, time.Millisecond // the killed one will not come back
	var running sync.WaitGroup
	running.Go(func() { b.work(b.ctx, 0) })
	running.Go(func() {
		if st, err := Run(b.ctx, b.options); err != nil || st.Phase != spec.Stopped {
			t.Errorf("status %+v, %v", st, err)
		}
	})
	for i := range kills {
		b.reportAndDie(string(rune('A'+i)), time.Duration(i%2)*2*time.Millisecond)
	}
	close(stop)
	running.Wait()
	again := strings.Count(b.logs.String(), "a contribution is computed again")
	if again < kills/4 {
		t.Errorf("%d pushes of %d were missed: the kills came too early", again, kills)
	}
	if n := b.ps[0].Late(); n > 0 {
		t.Errorf("the server waited until a timer fired %d times for connections that were closed", n)
	}
	t.Logf("%d pushes of %d were missed", again, kills)
}
