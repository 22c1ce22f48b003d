package coordinator

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Times and limits of saying goodbye.
const (
	farewellTime = 5 * time.Second // that workers and servers have to hear it
	maxUnfit     = 3               // times that a worker may say that it cannot work
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

// cannotWork answers a worker that cannot work.
func (c *coordinator) cannotWork(index int) wire.Leave {
	if c.unfit[index]++; c.unfit[index] < maxUnfit {
		return wire.Leave{Term: c.term, End: spec.EndError}
	}
	return wire.Leave{Term: c.term, End: spec.EndGivenUp, Reason: "this worker is given up"}
}

// farewell tells everybody how the run ended, and waits a moment for them to
// hang up: a connection that is closed with something unread in it may take
// the last message along.
func (c *coordinator) farewell(ctx context.Context, how wire.Leave) {
	for _, m := range c.members {
		c.dismiss(m, how)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellTime)
	defer cancel()
	var telling sync.WaitGroup
	defer telling.Wait()
	for _, address := range c.Servers {
		telling.Go(func() { c.tellServer(ctx, address, how) })
	}
	for len(c.members) > 0 {
		select {
		case e := <-c.events:
			switch e := e.(type) {
			case left:
				if c.members[e.member.index] == e.member {
					delete(c.members, e.member.index)
				}
			case joined:
				c.dismiss(e.member, how)
			case broken:
				e.answer(how)
			case change:
				e.done <- errors.New(how.Reason)
			}
		case <-ctx.Done():
			return
		}
	}
}

// tellServer lets one server end. One that is not there is not waited for.
func (c *coordinator) tellServer(ctx context.Context, address string, how wire.Leave) {
	conn, err := c.Credentials.Dial(ctx, address, wire.Hello{Role: "coordinator", PID: os.Getpid()})
	if err == nil {
		defer conn.Close()
		if err = conn.Send(wire.TypeLeave, how, nil); err == nil {
			err = answered(conn)
		}
	}
	if err != nil {
		c.Log.Warn("cannot tell a server that the run is over", "server", address, "error", err)
	}
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
