package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/history"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Options is what a session needs.
type Options struct {
	Spec        spec.Spec
	Name        string     // of the run, as its status has it; "": that of Folder
	Folder      run.Folder // of this coordinator: history, terms and status
	Credentials wire.Credentials
	Workers     net.Listener // where members connect
	API         net.Listener
	Servers     []string        // addresses of the servers that must hear of the end
	Claims      Claims          // where else terms are claimed; nil: only in Folder
	Control     io.Writer       // gets one spec.Control per line, for the supervisor; nil: there is none
	Stop        <-chan struct{} // ends the run as stopped
	Leave       <-chan struct{} // ends this coordinator: the run waits for the next one
	Log         *slog.Logger
	Turn        func()            // is called after each event of the loop; nil: it is not
	Usage       <-chan spec.Usage // samples of the coordinator's own process; nil: none
	Events      io.Writer         // gets a line for every event, as metrics.jsonl has it; nil: none. It may be slow, or fail

	// Ended is called with the run's end before members and servers hear of it;
	// nil: it is not. It is not called where the run continues under another
	// coordinator.
	Ended func(spec.Status)
	// Linger is how long the API still answers after the run's end, for results
	// to be collected; 0: not at all.
	Linger time.Duration
	// StopTime is how long the work has from a stop to its end; 0: half a minute.
	StopTime time.Duration
	// HearTime is how long members have to hear of the run's end; 0: ten seconds.
	HearTime time.Duration
}

// Times and limits of a run.
const (
	silence  = 5 * time.Second  // without a heartbeat, a member's connection is closed
	patience = 20 * time.Second // after that, the member is ended and replaced
	stopTime = 30 * time.Second // from a stop to the work's end
	maxRan   = 1e9              // seconds that are believed
)

// Session has the state of one run, except the state of its Work. The methods of
// the Work call its methods, and no other goroutine, except where it is named.
type Session struct {
	Options
	work    Work
	events  chan any
	history *history.File
	past    past

	termKeeper
	over       atomic.Pointer[wire.Leave] // what late members hear; nil: the run is not over
	output     *output                    // nil: Events is
	collected  chan struct{}              // closed once the run's results have been collected
	collecting sync.Once
	sending    atomic.Int32 // results that are being sent
	status     atomic.Pointer[spec.Status]
	keeping    sync.Mutex // while a status is written: the last one stays

	roll
	usages    usages
	changed   *spec.LastChange
	unwritten bool  // an event could not be written
	reason    error // why the run ends before its end
	message   string
	whyLog    string // last lines of the log that tells why
	account
}

// Open reads what earlier coordinators of the run have written. The caller closes
// the session.
func Open(o Options, w Work) (*Session, error) {
	if o.Name == "" {
		o.Name = o.Folder.Name()
	}
	if o.HearTime == 0 {
		o.HearTime = hearTime
	}
	s := &Session{
		Options: o, work: w, events: make(chan any, 256), roll: newRoll(),
		collected: make(chan struct{}),
	}
	s.termKeeper.hash, s.termKeeper.folder, s.termKeeper.place = o.Spec.Hash(), termsOf(o.Folder), o.Claims
	var err error
	if s.history, err = history.Open(o.Folder.Metrics(), s.follow); err != nil {
		return nil, err
	}
	s.generation = s.past.generation
	s.RaiseTerm(s.past.term)
	s.remember(o.Folder)
	s.changed = o.Folder.ReadChange()
	return s, nil
}

// follow keeps term and step of an event, and passes it to the work.
func (s *Session) follow(e spec.Event) {
	if s.past.follow(e) {
		s.resumed++
	}
	s.work.Follow(e)
}

// Close closes the history.
func (s *Session) Close() error { return s.history.Close() }

// past is what the history says of a run.
type past struct {
	term, generation int64 // the highest ones
	reached          int64 // the newest step
}

// follow takes an event, and reports whether it is a step back.
func (p *past) follow(e spec.Event) (back bool) {
	p.term = max(p.term, spec.TermOf(e.Term, e.Generation))
	p.generation = max(p.generation, e.Generation)
	if e.Type == spec.EventRestore {
		back = e.Step < p.reached
		p.reached = e.Step
	}
	p.reached = max(p.reached, e.Step)
	return back
}

// account is how often and how long the run has run.
type account struct {
	resumed   int // steps back
	started   time.Time
	ranBefore time.Duration // under earlier coordinators
	recalled  spec.Status   // as the last one wrote it
	gpus      gpus
	attended  Stopwatch // while there are enough members: see ran
}

// remember reads when the run was started first, and how long it has run.
func (a *account) remember(f run.Folder) {
	a.started = time.Now()
	var before spec.Status
	if err := run.ReadJSON(f.StatusFile(), &before); err != nil || before.Started.IsZero() {
		return
	}
	a.gpus.worst = before.GPUHealth
	a.started, a.resumed, a.recalled = before.Started, max(a.resumed, before.Resumed), before
	// Earlier versions did not count; the time that they trained is a part of it.
	a.RaiseTime(max(before.Ran, before.Metrics["training_seconds"]))
}

// Recalled returns the last status that the coordinator before this one wrote.
func (a *account) Recalled() spec.Status { return a.recalled }

// RaiseTime makes sure that the run has run for so many seconds under earlier
// coordinators.
func (a *account) RaiseTime(seconds float64) {
	if seconds > 0 && seconds < maxRan {
		a.ranBefore = max(a.ranBefore, time.Duration(seconds*float64(time.Second)))
	}
}

// runTime returns how long the run has had the members that it needs, under all
// coordinators: its deadline bounds that. Waiting for a place on a full cluster
// does not count.
func (a *account) runTime() time.Duration { return a.ranBefore + a.attended.Read() }

// Run keeps the run together until the work is over, and returns how it ended.
func (s *Session) Run(ctx context.Context) spec.Status {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.Events != nil {
		s.output = passOn(s.history, s.Events, s.Log)
		defer s.output.close()
	}
	if err := s.Begin(); err != nil {
		s.publish(spec.Running)
		s.work.Close()
		return s.end(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer s.work.Close()
	defer cancel(nil)
	s.publish(spec.Running)
	s.TellSupervisor(spec.Control{Workers: &s.Spec.Worker.Replicas})
	serving.Go(func() { door{s}.accept(ctx) })
	serving.Go(func() { server{s}.serve(ctx) })
	serving.Go(func() { statusFile{s}.keep(ctx, cancel) })
	err := s.loop(ctx, cancel)
	if errors.Is(err, ErrLeft) {
		return s.leftAlone()
	}
	outcome := s.end(err)
	if outcome.Cause != spec.CauseSuperseded { // else the others are the other coordinator's
		s.partWith(ctx, outcome)
	}
	return outcome
}

// loop owns the state until the run is over: nil means succeeded.
func (s *Session) loop(ctx context.Context, cancel context.CancelCauseFunc) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	stop, leave := s.Stop, s.Leave
	working, end := context.WithCancel(ctx)
	defer end()
	for {
		s.attended.Set(s.Attended())
		if d := time.Duration(s.Spec.Deadline); d > 0 && s.runTime() > d {
			s.Finish(Stopped{spec.CauseDeadline, fmt.Sprintf("it has run for its deadline of %v", d)})
		}
		over, err := s.work.Advance(working)
		if over || err != nil {
			return err
		}
		select {
		case e := <-s.events:
			err = s.handle(e)
		case u := <-s.Usage:
			server{s}.takeUsage(time.Now(), wire.RoleCoordinator, u)
		case <-s.work.Wake():
		case <-tick.C:
			s.tick(time.Now())
		case <-stop:
			stop = nil
			s.Finish(errStop)
		case <-leave:
			leave = nil
			s.Finish(ErrLeft)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if s.reason != nil && cancel != nil {
			timer := time.AfterFunc(cmp.Or(s.StopTime, stopTime), func() { cancel(s.reason) })
			defer timer.Stop()
			cancel = nil
		}
	}
}

// Finish lets the run end at its present step, for a reason: the first one is
// kept.
func (s *Session) Finish(reason error) {
	if s.reason != nil {
		return
	}
	s.Log.Info("ending", "reason", reason)
	s.reason = reason
	s.work.Finish(reason)
}

// Reason returns why the run ends before its end; nil: it does not.
func (s *Session) Reason() error { return s.reason }

// KeepLog keeps the last lines of the log that tells why the run ends.
func (s *Session) KeepLog(lines string) { s.whyLog = lines }

// call is a function for the loop to call.
type call struct {
	function func()
	taken    atomic.Bool // by the loop, or by the caller who gives it up
	done     chan struct{}
}

// run calls the function, unless its caller has given it up.
func (c *call) run() {
	if c.taken.CompareAndSwap(false, true) {
		c.function()
		close(c.done)
	}
}

// Do lets the loop call a function, and waits for its end. It reports false
// where the context ended before the call: then the function is never called.
// Every goroutine except the loop may use it.
func (s *Session) Do(ctx context.Context, function func()) bool {
	c := &call{function: function, done: make(chan struct{})}
	if !s.Post(ctx, c) {
		return false
	}
	select {
	case <-c.done:
		return true
	case <-ctx.Done():
		if c.taken.CompareAndSwap(false, true) {
			return false
		}
		<-c.done // the loop calls it now
		return true
	}
}

// Post hands an event to the loop: false when the run is over. Every goroutine
// except the loop may use it.
func (s *Session) Post(ctx context.Context, event any) bool {
	select {
	case s.events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// handle takes one event.
func (s *Session) handle(e any) error {
	switch e := e.(type) {
	case *call:
		e.run()
		return nil
	case joined:
		return s.join(e.member)
	case memberLeft:
		return s.leave(e.member, e.err)
	case received:
		return s.work.Receive(e.member, e.message)
	case brokenLink:
		return s.unable(e)
	case higherTerm:
		if int64(e) > s.Term() {
			return takeHigherTerm(s, int64(e))
		}
		return nil
	}
	return s.work.Handle(e)
}

// tick looks after what happens by time.
func (s *Session) tick(now time.Time) {
	s.findSilent(now)
	s.usages.drop(now)
	s.work.Tick(now)
	s.Publish()
}
