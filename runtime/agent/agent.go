package agent

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Options is the place of an agent in a run.
type Options struct {
	Spec        spec.Spec
	Run         string // name of the run
	Role        string // wire.RoleWorker or wire.RoleServer
	Index       int
	Credentials wire.Credentials
	Coordinator string      // address for members, host:port
	API         *api.Client // of the coordinator; nil where the program has no code
	Folder      string      // of the agent, for code and scratch; an absolute name
	Logs        string      // where a folder for the logs of the ranks is made, an absolute name
	Checkpoints string      // the run's folder of checkpoints; "": there is none
	Devices     []string    // of the agent, as CUDA numbers or names them
	Log         *slog.Logger
	Foreign     func(pid int) bool          // reports a child of this process that the program does not own; nil: it owns all
	Output      func(rank int, line []byte) // gets each line of the ranks' outputs; nil: it does not
	// Patience is how long the agent looks for a coordinator before it ends its
	// ranks and itself; 0: for ever.
	Patience time.Duration
}

// Times of an agent.
const (
	heartbeat = time.Second
	flushTime = 200 * time.Millisecond // between two reports of what ranks do
	maxListed = 100                    // checkpoints that the coordinator hears of
)

// The states of an agent.
type state int

const (
	preparing state = iota // the code is on its way
	idle                   // ready for a generation
	starting
	running
)

// agent is the state of an agent, which its loop owns.
type agent struct {
	Options
	link     *link
	events   chan any
	state    state
	ports    ports
	begin    wire.Begin // of the newest generation
	result   *wire.Result
	listed   []string // checkpoints that the coordinator has heard of
	running  *program.Generation
	observer *observer
	halted   bool  // the generation is to end
	leave    error // the result of Run, after the end of all ranks; nil: the agent stays
	term     int64 // the highest heard of
}

// The events of the loop, except events of the link.
type (
	prepared struct{ err error }
	started  struct {
		generation *program.Generation
		err        error
	}
	finished struct{ result program.Result }
)

// Run runs the agent until it is to leave: the error is then a wire.Leave that says
// how its process ends. All of its ranks have ended then.
func Run(ctx context.Context, o Options) error {
	a := &agent{Options: o, events: make(chan any, 64), observer: newObserver()}
	if err := a.makeFolders(); err != nil {
		return err
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.link = &link{
		credentials: o.Credentials, address: o.Coordinator, log: o.Log, patience: o.Patience, events: a.events,
		hello: wire.Hello{Role: o.Role, Index: o.Index, PID: os.Getpid(), Instance: rand.Text()},
	}
	go a.link.run(working)
	go func() { a.post(working, prepared{a.prepare(working)}) }()
	defer a.ports.release()
	err := a.loop(ctx, working)
	a.link.close()
	return err
}

// name returns the agent's name, such as worker-0.
func (o *Options) name() string { return run.RoleName(o.Role, o.Index) }

// makeFolders makes the agent's folders. The run's own folder must exist: where it
// does not, the run is gone.
func (a *agent) makeFolders() error {
	for _, dir := range []string{a.Folder, a.logs(), a.scratch(), a.work(), a.Checkpoints} {
		if dir == "" {
			continue
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	return nil
}

func (a *agent) logs() string    { return filepath.Join(a.Logs, a.name()) }
func (a *agent) scratch() string { return filepath.Join(a.Folder, "scratch") }
func (a *agent) work() string    { return filepath.Join(a.Folder, "work") }

// post hands an event to the loop.
func (a *agent) post(ctx context.Context, event any) {
	select {
	case a.events <- event:
	case <-ctx.Done():
	}
}

// loop owns the agent's state until it leaves.
func (a *agent) loop(ctx, working context.Context) error {
	beat, flush := time.NewTicker(heartbeat), time.NewTicker(flushTime)
	defer beat.Stop()
	defer flush.Stop()
	asked := ctx.Done()
	for {
		if a.leave != nil && a.state != starting && a.state != running {
			a.flush()
			return a.leave
		}
		select {
		case e := <-a.events:
			a.handle(working, e)
		case <-beat.C:
			a.link.send(wire.TypeHeartbeat, wire.Heartbeat{Term: a.term})
			if a.state == idle {
				a.reportCheckpoints()
			}
		case <-flush.C:
			a.flush()
		case <-asked:
			asked = nil
			a.depart(wire.Leave{End: spec.EndAsked, Reason: "asked to leave"})
		}
	}
}

// handle takes one event.
func (a *agent) handle(ctx context.Context, e any) {
	switch e := e.(type) {
	case connected:
		a.announce()
	case abandoned:
		a.depart(e.err)
	case wire.Leave:
		if a.heeds(e.Term) {
			a.depart(e)
		}
	case wire.Begin:
		if a.heeds(e.Term) {
			a.start(ctx, e)
		}
	case wire.Halt:
		if a.heeds(e.Term) {
			a.halt(e)
		}
	case prepared:
		if e.err != nil {
			a.depart(e.err)
			return
		}
		a.becomeReady()
	case started:
		a.noteStart(ctx, e)
	case finished:
		a.noteEnd(e.result)
	}
}

// heeds reports whether the agent obeys a coordinator of this term.
func (a *agent) heeds(term int64) bool {
	if term < a.term {
		a.Log.Warn("a coordinator speaks in an earlier term", "term", term, "newest", a.term)
		return false
	}
	a.term = term
	return true
}

// depart has the agent end once its ranks have. The first reason is kept.
func (a *agent) depart(why error) {
	if a.leave != nil {
		return
	}
	a.Log.Info("leaving", "reason", why)
	a.leave = why
	a.stop()
}

// announce sends the state of the agent, on each connection. Values that wait to be reported
// come before the result: it may end the run.
func (a *agent) announce() {
	a.link.send(wire.TypeHeartbeat, wire.Heartbeat{Term: a.term}) // which makes it a member
	switch a.state {
	case running:
		a.link.send(wire.TypeRunning, wire.Running{Begin: a.begin})
	case idle:
		if a.result != nil {
			a.flush()
			a.link.send(wire.TypeResult, *a.result)
		}
		a.reportReady()
	}
}

// becomeReady takes ports for the next generation.
func (a *agent) becomeReady() {
	a.state = idle
	if err := a.ports.hold(a.Spec.ProcessesPerWorker()); err != nil {
		a.depart(err)
		return
	}
	a.reportReady()
}

// reportReady sends the coordinator that the agent is ready.
func (a *agent) reportReady() {
	a.listed = a.checkpoints()
	r := wire.Ready{Began: a.begin.Generation, Address: outgoing(a.Coordinator), Checkpoints: a.listed}
	r.Port, r.Ports = a.ports.numbers()
	a.link.send(wire.TypeReady, r)
}

// reportCheckpoints reports again that the agent is ready where other members have
// made a checkpoint since.
func (a *agent) reportCheckpoints() {
	if seen := a.checkpoints(); len(seen) != len(a.listed) || len(seen) > 0 && seen[len(seen)-1] != a.listed[len(seen)-1] {
		a.reportReady()
	}
}

// checkpoints returns the names of the newest complete checkpoints.
func (a *agent) checkpoints() (names []string) {
	if a.Checkpoints == "" {
		return nil
	}
	all, err := program.Checkpoints(a.Checkpoints)
	if err != nil {
		a.Log.Warn("checkpoints cannot be listed", "error", err)
	}
	for _, c := range all[max(0, len(all)-maxListed):] {
		names = append(names, filepath.Base(c.Path))
	}
	return names
}
