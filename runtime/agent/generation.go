package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/wire"
)

// start starts the ranks of a generation, unless the agent has begun it before.
func (a *agent) start(ctx context.Context, b wire.Begin) {
	if a.state != idle || b.Generation <= a.begin.Generation || a.leave != nil {
		a.Log.Warn("the generation cannot begin here", "generation", b.Generation, "newest", a.begin.Generation)
		return
	}
	a.Log.Info("begins", "generation", b.Generation, "rank", b.Rank, "world", b.World, "role", b.Role, "resume", b.Resume)
	a.begin, a.state, a.halted, a.result = b, starting, false, nil
	a.observer = newObserver()
	s, report := a.program(b), a.observer.report
	go func() {
		var g *program.Generation
		err := a.makeFolders() // the program may have removed them
		if err == nil {
			err = a.placeCode(ctx)
		}
		if err == nil {
			g, err = program.Start(s, report)
		}
		a.post(ctx, started{g, err})
	}()
}

// program returns the generation as the program sees it on this machine.
func (a *agent) program(b wire.Begin) program.Spec {
	p := &a.Spec.Program
	s := program.Spec{
		Command:     p.Arguments(),
		Folder:      a.work(),
		Environment: append(os.Environ(), p.Variables()...),
		Framework:   program.Framework(p.Framework),
		Parameters:  p.Values(),
		Processes:   a.Spec.ProcessesPerWorker(),
		Devices:     a.Devices,
		Grace:       time.Duration(b.Grace * float64(time.Second)),
		Member: program.Member{
			Run: a.Run, Name: a.name(), Generation: b.Generation, Role: b.Role, Task: b.Task, Rank: b.Rank, World: b.World,
			Group: b.Group, Groups: b.Groups, Address: b.Address, Port: b.Port, Members: b.Members,
			Restarts: b.Restarts, MaxRestarts: b.Most,
		},
		Checkpoints: a.Checkpoints,
		Dataset:     a.Spec.Dataset.Path,
		Logs:        a.logs(),
		Scratch:     a.scratch(),
		Output:      a.Output,
		Sole:        true,
		Foreign:     a.Foreign,
	}
	if b.Resume != "" {
		s.Resume = filepath.Join(a.Checkpoints, b.Resume)
	}
	return s
}

// noteStart notes that the ranks run, or that they could not be started.
func (a *agent) noteStart(ctx context.Context, e started) {
	if e.err != nil {
		a.Log.Error("cannot start", "generation", a.begin.Generation, "error", e.err)
		a.conclude(wire.Result{Begin: a.begin, Cause: string(causeOf(e.err)), Text: "cannot be started: " + e.err.Error(), At: time.Now()})
		return
	}
	a.state, a.running = running, e.generation
	a.link.send(wire.TypeRunning, wire.Running{Begin: a.begin})
	go func() { a.post(ctx, finished{e.generation.Wait()}) }()
	if a.halted {
		a.stop()
	}
}

// causeOf returns program.Failed for an error of the program's settings, and
// program.Killed for an error that passes.
func causeOf(err error) program.Cause {
	if fault := new(program.StartError); errors.As(err, &fault) && !errors.Is(err, program.ErrStart) {
		return program.Failed
	}
	return program.Killed
}

// halt ends the ranks of a generation.
func (a *agent) halt(h wire.Halt) {
	if h.Generation != a.begin.Generation || a.state == idle {
		a.announce() // the coordinator has missed something
		return
	}
	a.Log.Info("halts", "generation", h.Generation, "reason", h.Reason)
	a.stop()
}

// stop ends the ranks. The end is an event.
func (a *agent) stop() {
	a.halted = true
	if g := a.running; g != nil {
		go g.Stop(context.Background())
	}
}

// noteEnd reports how the ranks ended.
func (a *agent) noteEnd(r program.Result) {
	m := wire.Result{Begin: a.begin, Cause: string(r.Cause), Text: "all of its ranks " + string(r.Cause), Last: r.Last, At: time.Now()}
	if r.First >= 0 {
		end := r.Ranks[r.First]
		m.Text, m.At = fmt.Sprintf("rank %d %s", end.Rank, end), end.At
	}
	if len(r.Leftovers) > 0 {
		m.Text += fmt.Sprintf("; these processes do not end: %v", r.Leftovers)
	}
	a.conclude(m)
}

// conclude sends the result of a generation, and gets ready for the next one.
func (a *agent) conclude(m wire.Result) {
	a.flush()
	a.Log.Info("ended", "generation", m.Generation, "cause", m.Cause, "text", m.Text)
	a.ports.release()
	a.running, a.result, a.state = nil, &m, idle
	a.link.send(wire.TypeResult, m)
	if a.leave == nil {
		a.becomeReady()
	}
}

// ports are the ports that the agent holds for its ranks.
type ports struct{ all []*program.Port }

// hold takes a port for the master and one for each process.
func (p *ports) hold(processes int) error {
	for len(p.all) <= processes {
		port, err := program.HoldPort(0)
		if err != nil {
			p.release()
			return err
		}
		p.all = append(p.all, port)
	}
	return nil
}

// numbers returns the master's port and the processes' ports.
func (p *ports) numbers() (master int, processes []int) {
	for i, port := range p.all {
		if i == 0 {
			master = port.Number
			continue
		}
		processes = append(processes, port.Number)
	}
	return master, processes
}

func (p *ports) release() {
	for _, port := range p.all {
		port.Release()
	}
	p.all = nil
}
