package coordinator

import (
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// guest is a worker that joins and does nothing by itself.
func (b *bench) guest(index int) *wire.Conn {
	b.t.Helper()
	c, err := credentials.Dial(b.ctx, b.options.Workers.Addr().String(), wire.Hello{Role: "worker", Index: index})
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
	for end := time.Now().Add(time.Minute); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not so after a minute: %s", what)
		}
	}
}

// dismissed receives until the guest is told to leave.
func (b *bench) dismissed(c *wire.Conn) {
	b.t.Helper()
	for {
		m, err := c.Receive(time.Minute)
		if err != nil {
			b.t.Fatal(err)
		}
		if m.Type == wire.TypeLeave {
			return
		}
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
