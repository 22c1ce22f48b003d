package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/process"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// Times and limits of restarting.
const (
	quickly      = 5 * time.Second // an end this soon after the start counts as quick
	firstPause   = 100 * time.Millisecond
	lastPause    = 10 * time.Second
	window       = 10 * time.Minute // that budgets of restarts are about
	maxQuick     = 8                // quick ends of one worker in a window
	maxEnds      = 5                // ends of a server or of the coordinator in a window
	stopTime     = 40 * time.Second
	terminate    = 5 * time.Second // from SIGTERM to SIGKILL
	maxControlLn = 16 << 20
)

// processes are those of the run. One goroutine (run) owns them.
type processes struct {
	Options
	patience patience
	home     *home
	spec     spec.Spec
	ports    *ports
	thread   *process.Thread // that starts the roles: they end with it
	alive    *os.File        // the roles' standard input
	hold     *os.File        // its other end: closed when this process ends
	roles    []*role
	wanted   int // workers
	over     bool
	recorded []run.Role
	events   chan any
	readers  sync.WaitGroup // of processes and control pipes
}

// processEnd is the event of a process that ended.
type processEnd struct {
	role  *role
	state string   // for people
	end   spec.End // -1: it was killed
	crash bool     // it ended by itself, and not in good order
}

// crashed reports whether a process ended by its own fault: a Go program that
// panics ends with 2, others by a signal that only the process causes.
func crashed(state *os.ProcessState) bool {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		switch status.Signal() {
		case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGSYS:
			return true
		}
		return false
	}
	return state.ExitCode() == 2
}

func newProcesses(o Options, s spec.Spec, p *ports, h *home) *processes {
	return &processes{
		Options: o, patience: usualPatience(), home: h, spec: s, ports: p, wanted: s.Worker.Replicas, events: make(chan any, 64),
	}
}

// run starts everything and returns the outcome once everything has ended. The
// error is ErrFolderGone.
func (c *processes) run(ctx context.Context, began spec.Status) (spec.Status, error) {
	c.thread = process.NewThread(beginStarting)
	defer c.thread.Close()
	var err error
	if c.alive, c.hold, err = os.Pipe(); err != nil {
		return spent(began, "cannot make a pipe: "+err.Error(), ""), nil
	}
	defer c.alive.Close()
	defer c.hold.Close()
	c.roles = append(c.roles, &role{name: Coordinator})
	for i := range c.spec.ParameterServer.Replicas {
		c.roles = append(c.roles, &role{name: Server, index: i})
	}
	c.scale(c.wanted)
	c.endPrograms(began.Run)
	outcome, told, err := c.watch(ctx, began)
	if err != nil {
		c.Log.Error("every process is killed", "why", err)
		c.killAll()
		if c.spec.HasProgram() {
			c.endAdopted()
		}
		return outcome, err
	}
	c.stopAll(told, farewellOf(outcome))
	if c.spec.HasProgram() {
		c.endAdopted()
	}
	if outcome.Cause == spec.CauseRestarts { // which the coordinator does not know
		outcome = spent(c.last(outcome), outcome.Message, outcome.Log)
		if err := writable(c.Folder); err != nil {
			outcome = unwritten(outcome, err)
		}
	}
	c.over = true
	c.record()
	wantsLog := outcome.Phase == spec.Failed || outcome.Cause == spec.CauseDisk || outcome.Cause == spec.CauseData
	if wantsLog && outcome.Log == "" && !c.spec.HasProgram() {
		outcome.Log = tail(c.Folder, c.roles[0])
	}
	outcome.Workers = 0
	outcome.Updated = time.Now()
	if outcome.Ended.IsZero() {
		outcome.Ended = outcome.Updated
	}
	c.Log.Info("run ended", "phase", outcome.Phase, "message", outcome.Message)
	return outcome, nil
}

// spent is the outcome of a run whose processes cannot be kept running. The
// machine may be at fault: the user can let the run continue from its newest
// checkpoint.
func spent(s spec.Status, message, log string) spec.Status {
	s.Phase, s.Cause, s.Message, s.Log = spec.Stopped, spec.CauseRestarts, message, log
	return s
}

// farewellOf returns the signal that ends the coordinator. After a request, the
// coordinator writes the final status itself. Where the run cannot go on, the
// supervisor writes it, and the coordinator only leaves.
func farewellOf(outcome spec.Status) syscall.Signal {
	if outcome.Cause == spec.CauseRestarts {
		return LeaveSignal
	}
	return syscall.SIGTERM
}

// last is the newest status that the coordinator wrote.
func (c *processes) last(began spec.Status) spec.Status {
	s := began
	if err := run.ReadJSON(c.Folder.StatusFile(), &s); err != nil {
		return began
	}
	return s
}

// watch keeps the roles running until there is an outcome; told says that the
// coordinator declared it, so that all roles hear of it and end. The error is
// ErrFolderGone.
func (c *processes) watch(ctx context.Context, began spec.Status) (outcome spec.Status, told bool, err error) {
	look := time.NewTicker(c.patience.look)
	defer look.Stop()
	looked := time.Now()
	stop := ctx.Done()
	var late <-chan time.Time
	for {
		next, err := c.startDue()
		if err != nil && errors.Is(err, fs.ErrNotExist) && c.home.isMissing() {
			return spec.Status{}, false, ErrFolderGone
		}
		c.record()
		if err != nil {
			return spent(c.last(began), err.Error(), ""), false, nil
		}
		select {
		case e := <-c.events:
			switch e := e.(type) {
			case spec.Control:
				if e.Outcome != nil {
					return *e.Outcome, true, nil
				}
				if e.Workers != nil {
					c.scale(*e.Workers)
				}
				if e.Hung != nil {
					c.endHung(*e.Hung)
				}
				c.roles[0].pulse.take(e)
				if e.Committed {
					c.forgetAgents()
				}
				if e.Beat != nil && stop == nil { // once it lives, it hears signals
					c.askToStop()
				}
			case processEnd:
				if why := c.noteEnd(e); why != "" {
					return spent(c.last(began), why, tail(c.Folder, e.role)), false, nil
				}
			}
		case <-next:
		case now := <-look.C:
			if c.home.hasVanished() {
				return spec.Status{}, false, ErrFolderGone
			}
			c.endHungCoordinator(now.Sub(looked))
			looked = now
		case <-stop:
			c.Log.Info("stopping")
			stop = nil
			late = time.After(stopTime + c.grace())
			if c.roles[0].process == nil {
				return stopped(c.last(began)), false, nil
			}
			c.askToStop()
		case <-late:
			return stopped(c.last(began)), false, nil
		}
	}
}

func stopped(s spec.Status) spec.Status {
	s.Phase, s.Cause, s.Message = spec.Stopped, spec.CauseRequest, "stopped by request"
	return s
}

// startDue starts what is to run and does not; the channel tells when there is
// more to start.
func (c *processes) startDue() (<-chan time.Time, error) {
	var soonest time.Time
	now := time.Now()
	for _, r := range c.roles {
		switch {
		case r.process != nil || r.givenUp || r.name == Worker && r.index >= c.wanted:
		case r.due.After(now):
			if soonest.IsZero() || r.due.Before(soonest) {
				soonest = r.due
			}
		default:
			if err := c.start(r); err != nil {
				return nil, fmt.Errorf("cannot start %s: %w", r, err)
			}
		}
	}
	if soonest.IsZero() {
		return nil, nil
	}
	return time.After(time.Until(soonest)), nil
}

// start starts one role.
func (c *processes) start(r *role) error {
	var extra []*os.File
	var err error
	switch {
	case r.name == Coordinator:
		extra, err = files(c.ports.workers, c.ports.api)
	case r.name == Server && !c.spec.HasProgram():
		extra, err = files(c.ports.servers[r.index])
	}
	if err != nil {
		return err
	}
	defer func() { closeAll(extra) }()
	var control *os.File
	if r.name == Coordinator {
		var to *os.File
		if control, to, err = os.Pipe(); err != nil {
			return err
		}
		extra = append(extra, to)
	}
	cmd, outputs, err := c.command(r, extra)
	if err == nil {
		defer closeAll(outputs)
		err = c.thread.Do(cmd.Start)
	}
	if err != nil {
		if control != nil {
			control.Close()
		}
		return err
	}
	r.process, r.started, r.pulse = cmd.Process, time.Now(), pulse{}
	r.starts++
	c.Log.Info("started", "role", r.name, "index", r.index, "pid", cmd.Process.Pid)
	read := make(chan struct{})
	if control == nil {
		close(read)
	} else {
		c.readers.Go(func() {
			defer close(read)
			defer control.Close()
			c.listen(control)
		})
	}
	c.readers.Go(func() {
		cmd.Wait() // the state says it all
		<-read     // its last words come before its end
		c.endProgram(r)
		end := spec.End(cmd.ProcessState.ExitCode())
		state := cmd.ProcessState.String()
		if end.IsKnown() {
			state += ": " + end.String()
		}
		c.events <- processEnd{r, state, end, crashed(cmd.ProcessState)}
	})
	return nil
}

// listen passes on what the coordinator says.
func (c *processes) listen(control io.Reader) {
	lines := bufio.NewScanner(control)
	lines.Buffer(nil, maxControlLn)
	for lines.Scan() {
		var line spec.Control
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			c.Log.Error("the coordinator said something else", "error", err)
			continue
		}
		c.events <- line
	}
	if err := lines.Err(); err != nil {
		c.Log.Error("the coordinator no longer answers", "error", err)
	}
}

// scale sets the number of workers. The coordinator ends surplus workers;
// stubborn ones are ended when the run is.
func (c *processes) scale(n int) {
	c.wanted = n
	have := make(map[int]bool)
	for _, r := range c.roles {
		if r.name == Worker {
			have[r.index] = true
			r.due, r.ends, r.givenUp = time.Time{}, nil, false
		}
	}
	for i := range n {
		if !have[i] {
			c.roles = append(c.roles, &role{name: Worker, index: i})
		}
	}
}

// noteEnd notes that a process ended and when it is to be started again; the
// text is why the run cannot go on.
func (c *processes) noteEnd(e processEnd) string {
	r, now := e.role, time.Now()
	r.process, r.endedAt, r.reason, r.crashed = nil, now, e.state, ""
	if c.isAgent(r) {
		c.endAdopted()
	}
	if e.crash {
		r.crashed = e.state
	}
	defer c.record()
	lived := now.Sub(r.started)
	c.Log.Warn("ended", "role", r.name, "index", r.index, "state", e.state, "after", lived)
	if r.name == Worker && r.index >= c.wanted {
		return ""
	}
	if r.pulse.committed { // the run gets on: earlier ends no longer count
		r.ends = nil
	}
	// A worker that has worked, or was preempted, does not count: others do its
	// part. A server takes the run back to a checkpoint each time.
	member := r.name == Worker || c.isAgent(r)
	if !member || lived <= quickly && e.end != spec.EndAsked {
		r.ends = append(r.ends, now)
	}
	r.ends = slices.DeleteFunc(r.ends, func(t time.Time) bool { return now.Sub(t) > window })
	r.due = now.Add(min(firstPause<<min(max(0, len(r.ends)-1), 10), lastPause))
	soon := fmt.Sprintf("%s ended %d times soon after its start (%s)", r, len(r.ends), e.state)
	switch {
	case c.spec.HasProgram() && r.name == Coordinator && (e.end == spec.EndFinished || e.end == spec.EndOtherwise):
		return "the coordinator has declared the run's end, which did not arrive" // it would run again
	case e.end == spec.EndUsage:
		return fmt.Sprintf("%s cannot be started: %s", r, e.end)
	case r.name == Worker && e.end == spec.EndGivenUp:
		return c.giveUp(r, fmt.Sprintf("%s cannot work; its log says why", r))
	case r.name == Worker && len(r.ends) >= maxQuick:
		return c.giveUp(r, soon)
	case member && len(r.ends) >= maxQuick:
		return soon // without a server, the program cannot run
	case !member && len(r.ends) >= maxEnds:
		return fmt.Sprintf("%s ended %d times within %v (%s)", r, len(r.ends), window, e.state)
	}
	return ""
}

// endHung kills a process that does not answer; it is then started again like
// any other that ends.
func (c *processes) endHung(h spec.Hung) {
	for _, r := range c.roles {
		named := h.Server != nil && r.name == Server && r.index == *h.Server || h.Worker != nil && r.name == Worker && r.index == *h.Worker
		if named && r.process != nil && (h.PID == 0 || h.PID == r.process.Pid) {
			c.Log.Warn("does not answer", "role", r.name, "index", r.index, "pid", r.process.Pid)
			r.process.Kill()
		}
	}
}

// giveUp leaves a worker out from now on; the text is why the run cannot go on
// without it.
func (c *processes) giveUp(r *role, why string) string {
	r.givenUp = true
	usable := c.wanted
	for _, other := range c.roles {
		if other.givenUp && other.index < c.wanted {
			usable--
		}
	}
	least := c.spec.Worker.MinReplicas
	if now, err := c.Folder.ReadSpec(); err == nil { // it may have been changed
		least = now.Worker.MinReplicas
	}
	if usable < max(1, least) {
		return why
	}
	c.Log.Error("worker given up", "worker", r.index, "reason", why, "left", usable)
	return ""
}

// stopAll ends and reaps every process. Roles that know of the run's end get a
// moment to end by themselves, at most until the coordinator itself has ended.
func (c *processes) stopAll(told bool, coordinator syscall.Signal) {
	running := 0
	each := func(f func(*os.Process)) {
		running = 0
		for _, r := range c.roles {
			if r.process != nil {
				running++
				f(r.process)
			}
		}
	}
	each(func(*os.Process) {})
	ask, kill := time.After(0), (<-chan time.Time)(nil)
	if told && c.roles[0].process != nil {
		ask = time.After(c.patience.farewell)
	}
	for running > 0 {
		select {
		case <-ask:
			each(func(p *os.Process) {
				if p == c.roles[0].process {
					p.Signal(coordinator)
					return
				}
				p.Signal(syscall.SIGTERM)
			})
			kill = time.After(terminate + c.grace())
		case e := <-c.events:
			if e, ok := e.(processEnd); ok {
				e.role.process, e.role.endedAt, e.role.reason = nil, time.Now(), e.state
				running--
				if e.role == c.roles[0] && kill == nil { // it has told all workers that ever joined
					ask = time.After(0)
				}
			}
		case <-kill:
			each(func(p *os.Process) { p.Kill() })
		}
	}
	c.readers.Wait()
}
