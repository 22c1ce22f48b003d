package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/durable"
	proc "github.com/stokehq/stoke/runtime/process"
)

// Times of a generation that its Spec does not give.
const (
	pollTime     = time.Second      // between two looks for metrics and checkpoints
	killTime     = 10 * time.Second // that processes may take to end after SIGKILL
	leftoverTime = 5 * time.Second  // from SIGTERM to SIGKILL of processes that outlive all ranks, at most the grace time
	reapTime     = time.Second      // from the end of an orphan until it is reaped
)

// machine is what tests replace.
type machine struct {
	after    func(time.Duration) <-chan time.Time
	now      func() time.Time
	poll     time.Duration
	logBytes int64
	openLog  func(path string) (io.WriteCloser, int64, error)
}

func usualMachine() machine {
	return machine{after: time.After, now: time.Now, poll: pollTime, logBytes: logBytes, openLog: openAppending}
}

// Generation is a running generation of a program on this machine.
type Generation struct {
	spec    Spec
	machine machine
	ranks   []*rank
	thread  *proc.Thread // the ranks end with it
	ends    chan ending
	stop    chan struct{} // closed by Stop
	kill    chan struct{} // closed when Stop may wait no longer
	done    chan struct{}
	stopped sync.Once
	killed  sync.Once
	result  Result

	reporting sync.Mutex
	report    func(Event)

	checkpoints *watcher
	orphans     *orphans
	asked       map[process]bool // that have got SIGTERM and are not ranks
}

// ending is the event of a rank that ended.
type ending struct {
	local int
	end   End
}

// Start starts the ranks of a generation. The function report gets its events, one
// at a time and the first ones before Start returns. The program's output waits
// while it runs; it must not wait for the generation itself. Errors are a
// *StartError, and no process is left then.
func Start(s Spec, report func(Event)) (*Generation, error) {
	return start(s, report, usualMachine())
}

func start(s Spec, report func(Event), m machine) (*Generation, error) {
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if report == nil {
		report = func(Event) {}
	}
	g := &Generation{
		spec: s, machine: m, report: report, thread: proc.NewThread(nil), ends: make(chan ending, s.Processes),
		stop: make(chan struct{}), kill: make(chan struct{}), done: make(chan struct{}),
	}
	g.orphans = &orphans{spec: &g.spec, ranks: make(map[int]bool)}
	g.checkpoints = newWatcher(s.Checkpoints)
	g.asked = make(map[process]bool)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD) // before the first orphan can end
	if err := g.startRanks(); err != nil {
		signal.Stop(children)
		g.abandon()
		return nil, err
	}
	go g.run(children)
	return g, nil
}

// startRanks prepares all ranks before it starts the first one, so that mistakes in
// the settings start nothing.
func (g *Generation) startRanks() error {
	s := &g.spec
	args, err := Substitute(s.Command, s.Parameters)
	if err != nil {
		return err
	}
	parameters := s.Parameters
	if parameters == nil {
		parameters = map[string]any{}
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return &StartError{Kind: ErrParameter, What: "the parameters are not JSON", Err: err}
	}
	var ranks []*rank
	for local := range s.Processes {
		environment, err := s.environment(local)
		if err != nil {
			return err
		}
		path, err := s.resolve(args[0], environment)
		if err != nil {
			return err
		}
		r := newRank(local, s, path, args, environment)
		r.log = &rankLog{path: s.logFile(local), limit: g.machine.logBytes, open: g.machine.openLog,
			report: func(kind Kind, text string) { g.emit(Event{Kind: kind, Rank: r.number, Text: text}) }}
		r.reports = func(line []byte, cut bool) { g.readLine(r, line, cut) }
		r.metrics.lines.take = r.reports
		os.Remove(r.metrics.path) // of a process that was ended before it could tell
		ranks = append(ranks, r)
	}
	if err := durable.Write(s.parametersFile(), append(text, '\n')); err != nil {
		return &StartError{Kind: ErrStart, What: "the parameters cannot be written", Err: err, Advice: "make room on the disk"}
	}
	for _, r := range ranks {
		if err := r.start(g.thread); err != nil {
			return err
		}
		g.ranks = append(g.ranks, r)
		pid := r.cmd.Process.Pid
		g.orphans.ranks[pid] = true
		g.emit(Event{Kind: Started, Rank: r.number, PID: pid})
		r.readOutputs()
		go func() { g.ends <- ending{r.local, r.await()} }()
	}
	return nil
}

// abandon ends the ranks that were started before one could not be.
func (g *Generation) abandon() {
	g.signalAll(syscall.SIGKILL)
	for range g.ranks {
		<-g.ends
	}
	g.endLeftovers(nil)
	for _, r := range g.ranks {
		r.drain()
		r.log.close()
	}
	g.thread.Close()
}

// emit reports an event.
func (g *Generation) emit(e Event) {
	if e.Kind != Metric {
		e.Step = -1
	}
	e.At = g.machine.now()
	g.reporting.Lock()
	defer g.reporting.Unlock()
	g.report(e)
}

// run waits for the end of all ranks, and ends them when one fails or Stop is
// called.
func (g *Generation) run(children chan os.Signal) {
	defer close(g.done)
	defer g.thread.Close()
	defer signal.Stop(children)
	finish, followed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(followed)
		g.follow(finish)
	}()
	g.result = Result{Ranks: make([]End, len(g.ranks)), First: -1}
	for i, r := range g.ranks {
		g.result.Ranks[i] = End{Rank: r.number, PID: r.cmd.Process.Pid, Lost: true}
	}
	kill := g.awaitRanks(children)
	g.result.Leftovers = g.endLeftovers(kill)
	for _, r := range g.ranks {
		r.drain()
	}
	close(finish)
	<-followed // the last metrics are read once all writers have ended
	for i, r := range g.ranks {
		g.result.Ranks[i].Dropped = r.log.close()
		g.result.Ranks[i].Malformed = r.malformed
	}
	if g.result.First >= 0 {
		g.result.Last = g.ranks[g.result.First].tail.read()
	}
}

// awaitRanks returns when all ranks have ended or are given up. The channel has a
// value when other processes may be killed; nil is at once.
func (g *Generation) awaitRanks(children <-chan os.Signal) (kill <-chan time.Time) {
	var grace, giveUp, reap <-chan time.Time
	asked := false
	stop, hurry := g.stop, g.kill
	ask := func() {
		if !asked {
			asked, grace = true, g.machine.after(g.spec.Grace)
			g.emit(Event{Kind: Terminating, Rank: -1, Text: fmt.Sprintf("SIGKILL follows after %v", g.spec.Grace)})
			g.signalAll(syscall.SIGTERM)
		}
	}
	end := func() {
		grace = nil
		if giveUp == nil {
			giveUp = g.machine.after(killTime)
			g.emit(Event{Kind: Killing, Rank: -1})
		}
		g.signalAll(syscall.SIGKILL)
	}
	for running := len(g.ranks); running > 0; {
		select {
		case e := <-g.ends:
			running--
			g.noteEnd(e, asked, giveUp != nil)
			if g.result.First >= 0 {
				ask()
			}
		case <-stop:
			stop = nil
			if g.result.Cause == "" {
				g.result.Cause = Stopped
			}
			ask()
		case <-grace:
			end()
		case <-hurryAfter(stop, hurry):
			hurry = nil
			end()
		case <-giveUp:
			return nil
		case <-children:
			if reap == nil {
				reap = g.machine.after(reapTime)
			}
		case <-reap:
			reap = nil
			g.orphans.reap()
		}
	}
	if g.result.Cause == "" {
		g.result.Cause = Succeeded
	}
	if !asked {
		grace = g.machine.after(min(leftoverTime, g.spec.Grace))
	}
	return grace
}

// hurryAfter is the second channel once the first one is taken: an impatient stop is
// a stop first.
func hurryAfter(stop, hurry <-chan struct{}) <-chan struct{} {
	if stop != nil {
		return nil
	}
	return hurry
}

// noteEnd notes the end of a rank, and whether it is the first bad one. A rank that was
// killed before this package killed any was killed from outside: the errors of others
// follow from that, though their ends may be observed first.
func (g *Generation) noteEnd(e ending, asked, killing bool) {
	outside := e.end.Signal == syscall.SIGKILL && !killing && g.result.Cause == Failed
	asked = asked && !outside
	e.end.At, e.end.Asked = g.machine.now(), asked
	g.result.Ranks[e.local] = e.end
	g.emit(Event{Kind: Ended, Rank: e.end.Rank, PID: e.end.PID, Text: e.end.String(), OK: e.end.OK()})
	if asked || e.end.OK() {
		return
	}
	g.result.First, g.result.Cause = e.local, Failed
	if e.end.Outside() {
		g.result.Cause = Killed
	}
}

// signalAll signals the groups of all ranks, and processes that have left their
// group or whose rank has ended.
func (g *Generation) signalAll(signal syscall.Signal) {
	others := g.orphans.list()
	reached := make(map[int]bool)
	for _, r := range g.ranks {
		if r.signal(signal) {
			reached[r.cmd.Process.Pid] = true
		}
	}
	for _, p := range others {
		if !reached[p.group] {
			p.signal(signal)
		}
		g.asked[p.identity()] = true
	}
}

// endLeftovers ends all processes that are not ranks, and returns the numbers of
// processes that do not end. SIGKILL follows when the channel kill has a value, or
// at once where it is nil. Each process gets SIGTERM once: the child of a shell may
// still make its checkpoint after the shell has ended.
func (g *Generation) endLeftovers(kill <-chan time.Time) []int {
	hurry := g.kill
	var giveUp <-chan time.Time
	reported := make(map[process]bool)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		left := g.orphans.list()
		if len(left) == 0 {
			return nil
		}
		if kill == nil && giveUp == nil {
			giveUp = g.machine.after(killTime)
		}
		for _, p := range left {
			if !reported[p.identity()] && !p.zombie {
				reported[p.identity()] = true
				g.emit(Event{Kind: Leftover, Rank: -1, PID: p.pid, Text: nameOf(p.pid)})
			}
			if giveUp != nil {
				p.signal(syscall.SIGKILL)
			} else if !g.asked[p.identity()] {
				g.asked[p.identity()] = true
				p.signal(syscall.SIGTERM)
			}
		}
		select {
		case <-time.After(pause):
		case <-kill:
			kill = nil
		case <-hurry:
			hurry, kill = nil, nil
		case <-giveUp:
			var pids []int
			for _, p := range g.orphans.list() {
				pids = append(pids, p.pid)
			}
			return pids
		}
	}
}

// Finished is closed when all processes have ended.
func (g *Generation) Finished() <-chan struct{} { return g.done }

// Wait returns the result once all processes have ended.
func (g *Generation) Wait() Result {
	<-g.done
	return g.result
}

// Stop sends SIGTERM to all processes, waits until they have ended or the grace time
// is over, then sends SIGKILL, and returns the result. When the context ends, it does
// not wait any longer before SIGKILL.
func (g *Generation) Stop(ctx context.Context) Result {
	g.stopped.Do(func() { close(g.stop) })
	select {
	case <-g.done:
	case <-ctx.Done():
		g.killed.Do(func() { close(g.kill) })
		<-g.done
	}
	return g.result
}

// Tail returns the last lines of a rank of this machine, harmless to print.
func (g *Generation) Tail(local int) []string { return g.ranks[local].tail.read() }

// PIDs returns the numbers of the ranks' processes.
func (g *Generation) PIDs() []int {
	var pids []int
	for _, r := range g.ranks {
		pids = append(pids, r.cmd.Process.Pid)
	}
	return pids
}
