package coordinator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// retellTime is between two tries to tell a server that the run is over.
const retellTime = 2 * time.Second

// Conclude is Run for a run that is over, because a coordinator was started
// again behind its end: who still waits to hear of the end is told, and the API
// answers as long as Options.Linger says. Nothing is claimed, computed or
// written. The error is for what kept the coordinator itself from working.
func Conclude(ctx context.Context, o Options, outcome spec.Status) error {
	j, err := openJournal(o.Folder)
	if err != nil {
		return err
	}
	defer j.close()
	c := newCoordinator(o, j)
	highest, err := c.terms.highest()
	if err != nil {
		return err
	}
	c.term = max(outcome.Term, highest)
	c.status.Store(&outcome)
	c.Log.Info("the run is over", "phase", outcome.Phase, "message", outcome.Message)
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	if c.Events != nil {
		c.output = passOn(j.history, c.Events, c.Log)
		defer c.output.close()
	}
	serving.Go(func() { c.acceptWorkers(ctx) })
	serving.Go(func() { c.serveAPI(ctx) })
	c.partWith(ctx, outcome)
	return nil
}

// partWith tells everybody how the run ended, and lingers.
func (c *coordinator) partWith(ctx context.Context, outcome spec.Status) {
	how := wire.Leave{Term: c.term, End: spec.EndOf(outcome.Phase), Reason: "the run is over: " + string(outcome.Phase)}
	c.over.Store(&how)
	c.linger(ctx, how, c.farewell(ctx, how))
}

// linger goes on answering the API, for whoever wants status, events or model:
// until that has been collected, time is up, the coordinator is to leave, or
// another one speaks for the run. A model that is being sent gets as much time
// again. Workers and servers that come only now hear of the end.
func (c *coordinator) linger(ctx context.Context, how wire.Leave, untold []string) {
	if c.Linger <= 0 {
		return
	}
	c.Log.Info("waiting for the run's results to be collected", "for", c.Linger)
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer cancel()
	for _, address := range untold {
		telling.Go(func() { c.retell(ctx, address, how) })
	}
	late, again := time.After(c.Linger), true
	for {
		select {
		case <-c.collected:
			c.Log.Info("the run's results have been collected")
			return
		case <-late:
			if again && c.sending.Load() > 0 {
				late, again = time.After(c.Linger), false
				continue
			}
			c.Log.Info("the run's results have not been collected", "in", c.Linger)
			return
		case <-c.Leave:
			return
		case <-c.Stop:
			return
		case <-ctx.Done():
			return
		case e := <-c.events:
			c.late(ctx, e, how)
		}
	}
}

// retell tells a server that was not there before, once it is.
func (c *coordinator) retell(ctx context.Context, address string, how wire.Leave) {
	tick := time.NewTicker(retellTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		trying, cancel := context.WithTimeout(ctx, farewellTime)
		err := c.tellServer(trying, address, how)
		cancel()
		if err == nil {
			c.Log.Info("a server that came late was told that the run is over", "server", address)
			return
		}
	}
}

// late takes an event behind the run's end.
func (c *coordinator) late(ctx context.Context, e any, how wire.Leave) {
	switch e := e.(type) {
	case left:
		if c.members[e.member.index] == e.member {
			delete(c.members, e.member.index)
		}
	case joined:
		delete(c.away, e.member.index)
		c.members[e.member.index] = e.member
		c.dismiss(e.member, how)
	case broken:
		delete(c.away, e.hello.Index)
		e.answer(how)
	case change:
		e.done <- errors.New(how.Reason)
	case ask:
		e.done <- c.ledger(ctx)
	}
}
