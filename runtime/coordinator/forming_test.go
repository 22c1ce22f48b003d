package coordinator

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// A run whose servers do not answer yet hears of its members, takes settings and
// can be stopped.
func TestRestoringRunHearsOfMembers(t *testing.T) {
	s := pointsSpec()
	s.Worker.Replicas = 2
	b := unserved(t, s, linear{})
	b.options.Servers = []string{listen(t).Addr().String()} // which accepts nothing
	b.options.HearTime = 10 * time.Millisecond
	done := b.begin()
	worker := b.guest(1)
	b.until("the worker is a member", func() bool { return b.seen("worker") == 1 })
	c := api.New("http://"+b.options.API.Addr().String(), token, nil)
	defer c.Close()
	one := 1
	if err := c.Change(b.ctx, spec.LiveChange{Workers: &one}); err != nil {
		t.Fatal(err)
	}
	if how := b.dismissed(worker); how.End != spec.EndAsked {
		t.Errorf("the worker that is not needed is told %+v", how)
	}
	if st, err := c.Status(b.ctx); err != nil || st.Wanted != 1 || st.Message != "connecting to the parameter servers" {
		t.Errorf("status %+v, %v", st, err)
	}
	worker.Close()
	if err := c.Stop(b.ctx); err != nil {
		t.Fatal(err)
	}
	if st := <-done; st.Phase != spec.Stopped || st.Cause != spec.CauseRequest {
		t.Errorf("status %+v", st)
	}
}

// held is a listener whose connections send nothing while gate is set and open.
type held struct {
	net.Listener
	gate *atomic.Pointer[chan struct{}]
}

func (l held) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return heldConn{c, l.gate}, nil
}

type heldConn struct {
	net.Conn
	gate *atomic.Pointer[chan struct{}]
}

func (c heldConn) Write(p []byte) (int, error) {
	if g := c.gate.Load(); g != nil {
		<-*g
	}
	return c.Conn.Write(p)
}

// While the servers take their time with a commit, the run hears of its members,
// and goes on once they answer.
func TestCommittingRunHearsOfMembers(t *testing.T) {
	s := pointsSpec()
	s.Epochs, s.Worker.Replicas = 1<<20, 2 // it is stopped
	b := unserved(t, s, linear{})
	b.options.HearTime = 10 * time.Millisecond
	stop := make(chan struct{})
	b.options.Stop = stop
	gate := new(atomic.Pointer[chan struct{}])
	b.wrap = func(l net.Listener) net.Listener { return held{l, gate} }
	b.serve()
	open := make(chan struct{})
	release := sync.OnceFunc(func() {
		gate.Store(nil)
		close(open)
	})
	defer release()
	done := b.begin()
	var workers sync.WaitGroup
	defer workers.Wait()
	defer b.cancel()
	for i := range s.Worker.Replicas {
		workers.Go(func() { b.work(b.ctx, i) }) // its run ends
	}
	b.until("some updates", func() bool { return b.seen("update") >= 3 })
	before := b.seen("worker")
	gate.Store(&open)
	updates := b.seen("update") // the answers to one more may have been on their way
	third := b.guest(0)         // takes the place of the first one
	b.until("the worker is a member", func() bool { return b.seen("worker") > before })
	third.Close()
	b.until("it is gone", func() bool { return b.seen("worker") > before+1 })
	held := b.seen("update")
	if held > updates+2 {
		t.Errorf("%d updates, %d before: the servers were not held", held, updates)
	}
	release()
	b.until("the run goes on", func() bool { return b.seen("update") > held+10 })
	close(stop)
	if st := <-done; st.Phase != spec.Stopped || st.Resumed != 0 {
		t.Errorf("status %+v", st)
	}
}
