package session

import (
	"context"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// retellTime is the pause between two tries to send the end to a server.
const retellTime = 2 * time.Second

// Conclude is Run for a run that is over, of a coordinator that was started again
// after the end: processes that still wait hear of the end, and the API answers
// as long as Options.Linger says. Nothing is claimed, computed or written.
func (s *Session) Conclude(ctx context.Context, outcome spec.Status) error {
	highest, err := s.folder.highest()
	if err != nil {
		return err
	}
	s.term.Store(max(outcome.Term, highest))
	s.status.Store(&outcome)
	s.Log.Info("the run is over", "phase", outcome.Phase, "message", outcome.Message)
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	if s.Events != nil {
		s.output = passOn(s.history, s.Events, s.Log)
		defer s.output.close()
	}
	serving.Go(func() { door{s}.accept(ctx) })
	serving.Go(func() { server{s}.serve(ctx) })
	s.partWith(ctx, outcome)
	return nil
}

// partWith sends the run's end to members and servers, and lingers.
func (s *Session) partWith(ctx context.Context, outcome spec.Status) {
	how := wire.Leave{Term: s.Term(), End: spec.EndOf(outcome.Phase), Reason: "the run is over: " + string(outcome.Phase)}
	s.over.Store(&how)
	p := parting{s, how}
	p.linger(ctx, p.farewell(ctx))
}

// linger answers the API until the run's results have been collected, until its
// time has passed, until the coordinator must leave, or until another one speaks
// for the run. A result that is being sent gets as much time again. Members and
// servers that connect now hear of the end.
func (p parting) linger(ctx context.Context, untold []string) {
	if p.Linger <= 0 {
		return
	}
	p.Log.Info("waiting for the run's results to be collected", "for", p.Linger)
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer cancel()
	for _, address := range untold {
		telling.Go(func() { p.repeatEnd(ctx, address) })
	}
	late, again := time.After(p.Linger), true
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if p.Turn != nil {
			p.Turn()
		}
		select {
		case <-tick.C:
		case <-p.collected:
			p.Log.Info("the run's results have been collected")
			return
		case <-late:
			if again && p.sending.Load() > 0 {
				late, again = time.After(p.Linger), false
				continue
			}
			p.Log.Info("the run's results have not been collected", "in", p.Linger)
			return
		case <-p.Leave:
			return
		case <-p.Stop:
			return
		case <-ctx.Done():
			return
		case e := <-p.events:
			p.late(e)
		}
	}
}

// repeatEnd sends the end to a server that did not answer before, until it does.
func (p parting) repeatEnd(ctx context.Context, address string) {
	tick := time.NewTicker(retellTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		trying, cancel := context.WithTimeout(ctx, farewellTime)
		err := tellServer(trying, p.Credentials, address, p.how)
		cancel()
		if err == nil {
			p.Log.Info("a server that connected late knows that the run is over", "server", address)
			return
		}
	}
}

// late takes an event after the run's end.
func (p parting) late(e any) {
	switch e := e.(type) {
	case memberLeft:
		if at := e.member.Seat(); p.members[at] == e.member {
			delete(p.members, at)
		}
	case joined:
		at := e.member.Seat()
		delete(p.away, at)
		p.members[at] = e.member
		p.Dismiss(e.member, p.how)
	case brokenLink:
		delete(p.away, seatOf(e.hello))
		e.answer(p.how)
	case *call:
		e.run()
	}
}
