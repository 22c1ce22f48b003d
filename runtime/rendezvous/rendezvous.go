package rendezvous

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Options is what a rendezvous needs. Times that are 0 have their usual value.
type Options struct {
	session.Options
	// LostTime is how long an agent may be without a connection before its ranks
	// count as lost.
	LostTime time.Duration
	// ChangeTime is how long a change of the members waits for a checkpoint.
	ChangeTime time.Duration
	// SettleTime is how long the members must have been the same before a change
	// interrupts the program, so that several changes cost one interruption.
	SettleTime time.Duration
	// ListTime is how long a generation waits for all agents to see a checkpoint that
	// one of them reports.
	ListTime time.Duration
}

// Times and limits of a run of a program.
const (
	lostTime   = 15 * time.Second
	changeTime = 5 * time.Minute
	settleTime = 3 * time.Second
	listTime   = 3 * time.Second
	killTime   = 15 * time.Second // from the end of the time of grace to the end of all processes
	maxLosses  = 5                // generations in a row that were lost without progress
	firstPause = 500 * time.Millisecond
	lastPause  = time.Minute
)

// rendezvous is the work of the session.
type rendezvous struct {
	Options
	session  *session.Session
	agents   map[session.Seat]*agent
	current  *generation // nil: none is under way
	past     past
	ready    time.Time // when enough agents were ready; zero: they are not
	listed   time.Time // when an agent reported its checkpoints last
	next     time.Time // before this time no generation begins
	losses   int       // generations in a row that were lost without progress
	change   change
	progress progress
	clock    session.Stopwatch // while a generation runs
	done     bool
	now      func() time.Time
}

// seatNamed returns the seat with a name; false: the name is not a seat.
func seatNamed(name string) (session.Seat, bool) {
	role, digits, ok := strings.Cut(name, "-")
	index, err := strconv.Atoi(digits)
	return session.Seat{Role: role, Index: index}, ok && err == nil && (role == wire.RoleWorker || role == wire.RoleServer)
}

// agent is a connected agent.
type agent struct {
	*session.Member
	ready *wire.Ready // nil: it runs a generation, or has not reported yet
}

// past is what the history says of the run's generations.
type past struct {
	number    int            // of the newest generation
	members   []session.Seat // of it
	open      bool           // it was not seen to end
	restarts  int            // that count against max_restarts
	succeeded bool           // with it the run is over
	failed    string         // why the run has failed with it; "": it has not
}

// Run has agents run the program to its end, and returns how that went. The error
// is about the coordinator itself.
func Run(ctx context.Context, o Options) (spec.Status, error) {
	r, err := open(o)
	if err != nil {
		return spec.Status{}, err
	}
	defer r.session.Close()
	return r.session.Run(ctx), nil
}

// Conclude is Run for a run that is over, because a coordinator was started again
// after its end: see session.Session.Conclude.
func Conclude(ctx context.Context, o Options, outcome spec.Status) error {
	r, err := open(o)
	if err != nil {
		return err
	}
	defer r.session.Close()
	return r.session.Conclude(ctx, outcome)
}

// open returns the rendezvous of a run as its history has it.
func open(o Options) (*rendezvous, error) {
	for to, usual := range map[*time.Duration]time.Duration{
		&o.LostTime: lostTime, &o.ChangeTime: changeTime, &o.SettleTime: settleTime, &o.ListTime: listTime,
	} {
		if *to == 0 {
			*to = usual
		}
	}
	r := &rendezvous{Options: o, agents: make(map[session.Seat]*agent), progress: newProgress(), now: time.Now}
	s, err := session.Open(o.Options, r)
	if err != nil {
		return nil, err
	}
	r.session = s
	r.clock.Start(time.Duration(s.Recalled().Metrics["training_seconds"] * float64(time.Second)))
	r.done = r.past.succeeded // the coordinator before this one had no time to declare it
	if r.past.open {          // its agents may still run it
		r.current = newGeneration(r.past.number, len(r.past.members), r.now())
		for _, at := range r.past.members {
			r.current.parts[at] = &part{lost: r.now()}
		}
	}
	return r, nil
}

// Advance begins a generation, or takes the present one towards its end.
func (r *rendezvous) Advance(context.Context) (over bool, err error) {
	for {
		if r.done {
			return true, nil
		}
		if r.past.failed != "" {
			return false, session.Fail(spec.ReasonProgram, "%s", r.past.failed)
		}
		reason := r.session.Reason()
		if r.current == nil || reason == session.ErrLeft {
			if reason != nil {
				return true, reason
			}
			r.form()
			return false, nil
		}
		if !r.review() {
			return false, nil
		}
		if err := r.conclude(); err != nil {
			return false, err
		}
	}
}

// Finish halts the generation. A coordinator that leaves lets it run.
func (r *rendezvous) Finish(reason error) {
	r.session.StopTime = time.Duration(r.Spec.Program.StopGrace) + killTime
	if r.current != nil && reason != session.ErrLeft {
		r.halt(reason.Error())
	}
}

// Change takes on a live change. Workers that are too many leave between two
// generations.
func (r *rendezvous) Change(next spec.Spec) {
	r.Spec = next
	if r.current == nil {
		r.session.DismissSurplus()
	}
}

// Tick looks after what happens by time: Advance follows.
func (r *rendezvous) Tick(time.Time) {}

// Wake returns no channel: all that happens is an event.
func (r *rendezvous) Wake() <-chan struct{} { return nil }

// codeGone is the event that an agent has asked for code that the run does not have.
type codeGone struct{}

// Handle stops a run that has lost its code. Ranks that have it run on.
func (r *rendezvous) Handle(event any) error {
	if _, ok := event.(codeGone); !ok {
		panic(fmt.Sprintf("rendezvous: unknown event %T", event))
	}
	if r.current == nil {
		r.session.Finish(session.Stopped{Cause: spec.CauseData, Text: "the run's folder has lost the program's code: apply again"})
	}
	return nil
}

// Dismissed forgets that an agent is ready: it leaves.
func (r *rendezvous) Dismissed(m *session.Member) {
	if a := r.agents[m.Seat()]; a != nil && a.Member == m {
		a.ready = nil
	}
}

// Close has nothing to end.
func (r *rendezvous) Close() {}

// Sync has no files.
func (r *rendezvous) Sync() error { return nil }
