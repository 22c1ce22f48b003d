package coordinator

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Times and limits of saying goodbye.
const (
	hearTime     = 10 * time.Second // that workers have to hear it
	farewellTime = 5 * time.Second  // that servers have then
)

// errLeft ends the coordinator and leaves the run to the next one.
var errLeft = errors.New("the coordinator was asked to leave")

// leftAlone is the status of a run whose coordinator leaves: workers and
// servers keep looking for the next one.
func (c *coordinator) leftAlone() spec.Status {
	c.clock.pause()
	c.reason, c.message = nil, "its coordinator was asked to leave; it goes on with the next one"
	c.publish(spec.Pending)
	s := *c.status.Load()
	if err := c.writeStatus(&s); err != nil {
		c.Log.Error("cannot write the status", "error", err)
	}
	return s
}

// unable answers a worker that cannot work. Others work; their launcher knows
// whether they are enough.
func (c *coordinator) unable(e broken) error {
	c.Log.Error("a worker cannot work", "worker", e.hello.Index, "fault", e.Fault, "error", e.Error)
	if len(c.members) == 0 {
		c.whyLog = strings.Join(e.log, "\n")
	}
	needed := len(c.members) < c.Spec.Worker.MinReplicas
	how := wire.Leave{Term: c.term, End: c.evidence.unable(e.hello.Index, e.Failure, needed)}
	var err error
	switch {
	case e.Fault == spec.FaultChecksum:
		err = c.evidence.wrongData(e.hello.Machine, e.Error)
	case len(c.evidence.lacking) >= min(enough, c.Spec.Worker.Replicas) && len(c.members) == 0 && c.version == 0:
		err = fail(spec.ReasonRejected, "worker %d cannot work: %s", e.hello.Index, e.Error)
	}
	if err != nil {
		e.answer(wire.Leave{Term: c.term, End: spec.EndOtherwise, Reason: err.Error()})
		return err
	}
	if how.End == spec.EndGivenUp {
		how.Reason = "this worker is given up"
	}
	e.answer(how)
	return nil
}

// farewell tells everybody how the run ended: the workers first, and once they
// have hung up the servers. A worker whose servers went before it had heard
// would look for a coordinator that is no more. It gives the addresses of the
// servers that were not there to hear it.
func (c *coordinator) farewell(ctx context.Context, how wire.Leave) (untold []string) {
	ctx = context.WithoutCancel(ctx)
	c.tellWorkers(ctx, how)
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	var telling sync.WaitGroup
	errs := make([]error, len(c.Servers))
	for i, address := range c.Servers {
		telling.Go(func() { errs[i] = c.tellServer(ctx, address, how) })
	}
	telling.Wait()
	for i, err := range errs {
		if err != nil {
			c.Log.Warn("cannot tell a server that the run is over", "server", c.Servers[i], "error", err)
			untold = append(untold, c.Servers[i])
		}
	}
	return untold
}

// tellWorkers waits a moment for the workers to hang up, because a connection
// that is closed with something unread in it may take the last message along,
// and for those that have just lost their connection.
func (c *coordinator) tellWorkers(ctx context.Context, how wire.Leave) {
	for _, m := range c.members {
		c.dismiss(m, how)
	}
	ctx, cancel := context.WithTimeout(ctx, c.HearTime)
	defer cancel()
	for {
		back := c.awaited()
		if len(c.members) == 0 && back == 0 {
			return
		}
		var late <-chan time.Time
		if len(c.members) == 0 {
			late = time.After(back)
		}
		select {
		case e := <-c.events:
			c.late(ctx, e, how)
		case <-late:
		case <-ctx.Done():
			return
		}
	}
}

// awaited is how long a worker that has lost its connection may still come
// back: half of the time from when it went, since it tries every two seconds.
// 0: none is away.
func (c *coordinator) awaited() time.Duration {
	longest := time.Duration(0)
	for _, since := range c.away {
		longest = max(longest, c.HearTime/2-time.Since(since))
	}
	return longest
}

// tellServer lets one server end. One that is not there is not waited for.
func (c *coordinator) tellServer(ctx context.Context, address string, how wire.Leave) error {
	conn, err := c.Credentials.Dial(ctx, address, wire.Hello{Role: "coordinator", PID: os.Getpid()})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Send(wire.TypeLeave, how, nil); err != nil {
		return err
	}
	return answered(conn)
}

// answered reads a server's answer.
func answered(conn *wire.Conn) error {
	m, err := conn.Receive(farewellTime)
	if err != nil {
		return err
	}
	var a wire.Answer
	if err := m.Decode(&a); err != nil {
		return err
	}
	if a.Error != "" || a.Refused != "" {
		return errors.New(a.Error + a.Refused)
	}
	return nil
}
