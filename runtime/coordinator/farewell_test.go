package coordinator

import (
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// guest is a worker that joins and does nothing by itself.
func (b *bench) guest(index int) *wire.Conn {
	b.t.Helper()
	return b.guestWith(wire.Hello{Role: "worker", Index: index})
}

func (b *bench) guestWith(hello wire.Hello) *wire.Conn {
	b.t.Helper()
	c, err := credentials.Dial(b.ctx, b.options.Workers.Addr().String(), hello)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	if err := c.Send(wire.TypeHeartbeat, wire.Heartbeat{}, nil); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// until waits for something to be true.
func (b *bench) until(what string, true func() bool) {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not so after five minutes: %s", what)
		}
	}
}

// dismissed receives until the guest is told to leave.
func (b *bench) dismissed(c *wire.Conn) (how wire.Leave) {
	b.t.Helper()
	for {
		m, err := c.Receive(time.Minute)
		if err != nil {
			b.t.Fatal(err)
		}
		if m.Type == wire.TypeLeave {
			if err := m.Decode(&how); err != nil {
				b.t.Fatal(err)
			}
			return how
		}
	}
}

// hears receives until the guest gets a lease.
func (b *bench) hears(c *wire.Conn) {
	b.t.Helper()
	for {
		m, err := c.Receive(time.Minute)
		if err != nil {
			b.t.Fatal(err)
		}
		if m.Type == wire.TypeLease {
			return
		}
	}
}

// Of two workers of one index, the one that came last stays: the other one is
// told to leave, also when it comes back, and no longer takes its place. A
// worker that lost its connection is the same one.
func TestTwoWorkersOfOneIndex(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	stop, ended := b.beginUntilStopped()
	as := func(instance string) *wire.Conn {
		return b.guestWith(wire.Hello{Role: "worker", Index: 0, Instance: instance})
	}
	first := as("first")
	b.hears(first)
	again := as("first") // its connection was lost
	b.hears(again)
	for {
		m, err := first.Receive(time.Minute)
		if err != nil { // it was closed
			break
		}
		if m.Type == wire.TypeLeave {
			t.Fatal("a worker that came back was told to leave")
		}
	}
	second := as("second")
	b.hears(second)
	for _, old := range []*wire.Conn{again, as("first"), as("first")} {
		if how := b.dismissed(old); how.End != spec.EndAsked || !strings.Contains(how.Reason, "--index") {
			t.Errorf("the older worker is told %+v", how)
		}
		old.Close()
	}
	b.until("one worker", func() bool { return strings.Count(b.logs.String(), "worker joined") == 3 })
	stop()
	if how := b.dismissed(second); how.End != spec.EndOtherwise {
		t.Errorf("the newer worker is told %+v", how)
	}
	second.Close()
	if st := <-ended; st.Phase != spec.Stopped {
		t.Errorf("status %+v", st)
	}
}

// A deterministic run is computed on machines of one class, also after it was
// started again.
func TestMachinesOfAnotherClass(t *testing.T) {
	s := pointsSpec()
	s.Deterministic, s.Worker.Replicas = true, 2
	b := newBench(t, s, linear{})
	stop, ended := b.beginUntilStopped()
	as := func(index int, class string) *wire.Conn {
		return b.guestWith(wire.Hello{Role: "worker", Index: index, Class: class, Threads: 3})
	}
	ours := as(0, "amd64 v1 fma")
	b.hears(ours)
	other := as(1, "amd64 v1")
	if how := b.dismissed(other); how.End != spec.EndGivenUp || !strings.Contains(how.Reason, `"amd64 v1 fma"`) || !strings.Contains(how.Reason, `"amd64 v1"`) {
		t.Errorf("a machine of another class is told %+v", how)
	}
	other.Close()
	alike := as(1, "amd64 v1 fma")
	b.hears(alike)
	stop()
	for _, c := range []*wire.Conn{ours, alike} {
		b.dismissed(c)
		c.Close()
	}
	<-ended
	noted := 0
	for _, e := range b.lines() {
		if strings.Contains(e.Message, "amd64 v1 fma, 3 threads") {
			noted++
		}
	}
	if noted != 2 {
		t.Errorf("%d workers noted with their class", noted)
	}
	c := b.opened()
	c.adopt(checkpoint.Manifest{Step: 5, Class: "arm64"}, ledger.NewBook(600))
	if c.otherClass(&session.Member{Hello: wire.Hello{Class: "amd64 v1"}}) == "" || c.otherClass(&session.Member{Hello: wire.Hello{Class: "arm64"}}) != "" {
		t.Error("the class of a checkpoint does not count")
	}
}

// beginUntilStopped runs the coordinator and gives what stops it and how it
// ended.
func (b *bench) beginUntilStopped() (stop func(), ended <-chan spec.Status) {
	b.options.HearTime = 10 * time.Minute
	asked, status := make(chan struct{}), make(chan spec.Status, 1)
	b.options.Stop = asked
	go func() {
		s, err := Run(b.ctx, b.options)
		if err != nil {
			b.t.Error(err)
		}
		status <- s
	}()
	return func() { close(asked) }, status
}

// A worker whose servers are gone before it has heard of the end would look for
// a coordinator that is gone as well.
func TestServersHearOfTheEndAfterTheWorkers(t *testing.T) {
	b := unserved(t, pointsSpec(), linear{})
	b.tapped = newTap()
	b.serve()
	stop, ended := b.beginUntilStopped()
	worker := b.guest(0)
	b.until("the worker is a member", func() bool { return b.seen("worker") > 0 })
	stop()
	b.dismissed(worker)
	told := func() int64 {
		b.tapped.mu.Lock()
		defer b.tapped.mu.Unlock()
		return b.tapped.received[wire.TypeLeave].frames
	}
	time.Sleep(200 * time.Millisecond) // in which nothing is to happen
	if told() != 0 {
		t.Error("a server is told to leave before the worker has hung up")
	}
	worker.Close()
	<-ended
	b.until("the server is told", func() bool { return told() == 1 })
}

// A worker that has just lost its connection hears of the end when it comes
// back.
func TestWorkerThatIsAwayHearsOfTheEnd(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	stop, ended := b.beginUntilStopped()
	worker := b.guest(0)
	b.until("the worker is a member", func() bool { return b.seen("worker") == 1 })
	worker.Close()
	b.until("it is gone", func() bool { return b.seen("worker") == 2 })
	stop()
	select {
	case <-ended:
		t.Fatal("the coordinator does not wait for it")
	case <-time.After(200 * time.Millisecond):
	}
	again := b.guest(0)
	b.dismissed(again)
	again.Close()
	<-ended
}
