package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// Options are the run, the worker's place in it, and its settings.
type Options struct {
	Spec        spec.Spec
	Index       int
	Credentials wire.Credentials
	Coordinator string   // address
	Servers     []string // addresses, in the order of their spans
	Holder      Holder   // of the parameters, in an all-reduce; nil: the servers hold them
	Address     string   // of the holder, for the other members and the coordinator
	Workload    *workload.Workload
	Engine      engine.Engine
	Device      int // of the engine's devices
	Log         *slog.Logger
	Tail        *Tail     // what Log wrote last, which the coordinator gets when the worker leaves; nil: nothing
	Crashed     string    // how the process of this index before this one crashed; "": it did not
	Spent       *Spent    // counts what the worker spends its time on; nil: that is not counted
	Accounts    io.Writer // gets an Account for every lease whose sums are pushed; nil: none is kept

	// Cores is how many of the machine's cores the run's workers share; 0 = all
	// that this process may use. Fit hears how many of them this worker computes
	// on, whenever that changes; nil = nobody.
	Cores int
	Fit   func(threads int)

	// Patience is how long the worker looks for a coordinator before it ends;
	// 0 = for ever.
	Patience time.Duration
}

// Times of the worker's side of a connection.
const (
	verdict    = 10 * time.Second // for the coordinator to answer a worker that cannot work
	heartbeat  = time.Second
	firstPause = 50 * time.Millisecond // before connecting again, doubled each time
	lastPause  = 2 * time.Second
	longPause  = time.Minute            // where another member cannot be reached
	overhear   = 500 * time.Millisecond // for the coordinator to say something by itself
	lastWord   = 20 * time.Millisecond  // for it to be heard of once a server has hung up: it goes on giving out leases
)

// worker is one worker's own state, kept from session to session.
type worker struct {
	Options
	instance string
	replica  engine.Replica
	threads  int         // that the replica uses
	values   int         // of its vector
	sums     spans       // of the lease that was computed
	place    *wire.Place // where the replica adds them up; nil: in memory of its own
	tree     engine.Tree // that the leases of a block are added up in
	spare    [][]float32 // vectors for it
	micro    int         // records of a micro-batch
	group    int         // micro-batches of a batch, at most
	ahead    prefetcher
	term     atomic.Int64    // the highest heard of: no coordinator is obeyed in a lower one
	met      time.Time       // when the coordinator was last connected
	leased   bool            // the session had a lease
	asked    <-chan struct{} // is closed by SIGTERM
}

// Run works until ctx is done, the replica cannot be built, or the worker is to
// leave: the error is then a wire.Leave that says how its process ends. Lost
// connections are made again.
func Run(ctx context.Context, o Options) error {
	w := &worker{Options: o, micro: o.Spec.MicroBatchSize(), instance: rand.Text(), tree: engine.Tree{Merge: optimizer.Add}}
	if w.Cores == 0 {
		w.Cores = runtime.GOMAXPROCS(0)
	}
	if err := w.build(w.share(o.Spec.Worker.Replicas)); err != nil {
		return Fail(ctx, o, err)
	}
	defer w.closeReplica()
	pause := firstPause
	w.met, w.asked = time.Now(), ctx.Done()
	for {
		began := time.Now()
		w.leased = false
		err := w.session(ctx)
		if w.leased { // the crash before this process counts only once
			w.Crashed = ""
		}
		switch {
		case errors.As(err, new(wire.Leave)):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, wire.ErrRefused):
			return err
		case o.Patience > 0 && time.Since(w.met) > o.Patience:
			return wire.Leave{End: spec.EndNoCoordinator, Reason: fmt.Sprintf("no coordinator at %s for %v: %v", o.Coordinator, o.Patience, err)}
		}
		longest := lastPause
		if errors.As(err, new(unreachableError)) {
			pause, longest = max(pause, lastPause), longPause // the others get on meanwhile
		} else if w.leased || time.Since(began) > lastPause {
			pause = firstPause
		}
		o.Log.Warn("session ended; connecting again", "error", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, longest)
	}
}

// hello is the worker's registration; each process has its own instance id.
func (w *worker) hello() wire.Hello {
	h := w.Options.hello()
	h.Instance, h.Threads = w.instance, w.threads
	if e, ok := w.Engine.(engine.Classed); ok && w.Spec.Deterministic {
		h.Class = e.Class()
	}
	return h
}

// build makes the replica, for so many threads.
func (w *worker) build(threads int) error {
	replica, err := w.Engine.Build(w.Workload.Model, engine.Options{
		Device:        w.Device,
		ComputeType:   w.Spec.ComputeTypeName(),
		Threads:       threads,
		MicroBatch:    w.micro,
		Seed:          w.Spec.Seed,
		Deterministic: w.Spec.Deterministic,
	})
	if err != nil {
		return fmt.Errorf("build replica: %w", err)
	}
	if w.replica, err = w.reside(replica); err != nil {
		return errors.Join(err, replica.Close())
	}
	w.threads = threads
	vars, _ := replica.Layout()
	w.values = model.Length(vars)
	if w.group == 0 { // the same for each replica of the model; goroutines of a session read it
		w.group = replica.MicroBatches()
	}
	if w.Fit != nil {
		w.Fit(threads)
	}
	return nil
}

// share is the number of threads that one of so many workers uses.
func (w *worker) share(workers int) int {
	if w.Spec.Worker.Threads > 0 {
		return w.Spec.Worker.Threads
	}
	return max(1, w.Cores/max(1, workers))
}

// ProgramError is about something that this build of the program lacks.
type ProgramError struct{ Err error }

func (e ProgramError) Error() string { return e.Err.Error() }

// GPUError is about GPUs that are not fit for the run.
type GPUError struct{ Err error }

func (e GPUError) Error() string { return e.Err.Error() }

// Fail tells the coordinator why a worker cannot work. The coordinator may
// answer that it gives the worker up: the error is then a wire.Leave, else why.
func Fail(ctx context.Context, o Options, why error) error {
	o.Log.Error("cannot work", "error", why)
	c, err := o.Credentials.Dial(ctx, o.Coordinator, o.hello())
	if err != nil {
		o.Log.Error("cannot tell the coordinator", "error", err)
		return why
	}
	defer c.Close()
	var l wire.Leave
	o.tellLog(c)
	failure := wire.Failure{Error: why.Error()}
	var data workload.DataError
	switch {
	case errors.As(why, &data):
		failure.Fault = data.Fault
	case errors.As(why, new(GPUError)):
		failure.Fault = spec.FaultGPU
	case errors.As(why, new(ProgramError)):
		failure.Fault = spec.FaultProgram
	}
	err = c.Send(wire.TypeFailure, failure, nil)
	if err == nil {
		var m *wire.Message
		if m, err = c.Receive(verdict); err == nil && m.Type == wire.TypeLeave {
			err = m.Decode(&l)
		}
	}
	if err != nil {
		o.Log.Error("cannot tell the coordinator", "error", err)
	}
	if l.End == spec.EndFinished || l.End == spec.EndError {
		return why
	}
	l.Reason = fmt.Sprintf("%s: %v", l.Reason, why)
	return l
}

func (o *Options) hello() wire.Hello {
	host, _ := os.Hostname() // without a name, the path has to do
	return wire.Hello{
		Role: wire.RoleWorker, Index: o.Index, PID: os.Getpid(), Machine: host + ":" + o.Spec.Dataset.Path,
		Crashed: o.Crashed, Address: o.Address,
	}
}

// checkTerm refuses a coordinator whose term has been followed by another one.
func (w *worker) checkTerm(term int64) error {
	for {
		highest := w.term.Load()
		if term < highest {
			return fmt.Errorf("the coordinator speaks in term %d, which term %d has followed", term, highest)
		}
		if w.term.CompareAndSwap(highest, term) {
			return nil
		}
	}
}

// session is the time between connecting and losing a connection.
type session struct {
	*worker
	coordinator *wire.Conn
	exchange    exchange
	leases      chan wire.Lease
	applied     chan wire.Applied
	free        chan *batch // buffers
	batches     chan *batch // that are being read
	waiting     []*batch    // to be computed
	revoked     revoked
	loaded      loaded       // which parameters the replica has
	reached     wire.Applied // the newest version known of the servers
	newest      int64        // lease that was computed
	reports     reports      // that wait
	reading     sync.WaitGroup
	progress    progress
}

// progress is how far the session is with the lease that it computes.
type progress struct {
	lease atomic.Int64 // 0: none
	done  atomic.Int64 // over all leases: it only grows
}

// advance notes that something of a lease was read or computed.
func (s *session) advance(b *batch) {
	if s.progress.lease.Load() == b.ID {
		s.progress.done.Add(1)
	}
}

func (w *worker) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hello := w.hello()
	hello.Session = rand.Text()
	c, err := w.Credentials.Dial(ctx, w.Coordinator, hello)
	if err != nil {
		return fmt.Errorf("connect to the coordinator: %w", err)
	}
	defer c.Close()
	defer func() { w.met = time.Now() }()
	peers, err := w.meetHolders(ctx, hello.Session)
	if err != nil {
		return w.overheard(c, err)
	}
	defer peers.close()
	ctx, departed := w.untilDeparted(ctx)
	defer departed()
	s := &session{
		worker: w, coordinator: c, exchange: peers,
		leases: make(chan wire.Lease, 8), applied: make(chan wire.Applied, 8),
	}
	w.Log.Info("connected", "coordinator", w.Coordinator)
	stop := context.AfterFunc(ctx, func() { c.Close() }) // whoever waits for a frame returns
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	hungUp := context.AfterFunc(ctx, func() {
		peers.close()
		time.AfterFunc(lastWord, func() { c.Close() }) // until then the coordinator may say why
	})
	defer hungUp()
	s.free = make(chan *batch, buffers)
	for range buffers {
		s.free <- newBatch()
	}
	s.batches = make(chan *batch, buffers)
	group.Go(func() error { return peers.run(ctx) })
	var told error
	group.Go(func() error { told = s.listen(ctx); return told })
	group.Go(func() error { return s.beat(ctx) })
	group.Go(func() error { return s.readAhead(ctx) })
	group.Go(func() error { return s.compute(ctx) })
	err = group.Wait()
	s.reading.Wait() // ctx is done: they end by themselves
	if errors.As(told, new(wire.Leave)) {
		return told // whatever was heard of first
	}
	return err
}

// meetHolders returns the way to the parameters.
func (w *worker) meetHolders(ctx context.Context, session string) (exchange, error) {
	if w.Holder != nil {
		return newGroup(w.Options, session), nil
	}
	return dialServers(ctx, w.Options, session)
}

// overheard is what a worker ends its session with that has not found its
// servers: that the run is over, if the coordinator says so, else why.
func (w *worker) overheard(c *wire.Conn, why error) error {
	m, err := c.Receive(overhear)
	if err != nil || m.Type != wire.TypeLeave {
		return why
	}
	var l wire.Leave
	if err := m.Decode(&l); err != nil {
		return err
	}
	if err := w.checkTerm(l.Term); err != nil {
		return err
	}
	w.Log.Info("leaving", "reason", l.Reason)
	w.tellLog(c)
	return l
}

// listen receives what the coordinator says. Once ctx is done it does so for
// the sake of a wire.Leave alone, until the connection is closed.
func (s *session) listen(ctx context.Context) error {
	for {
		m, err := s.coordinator.Receive(0)
		if err != nil {
			return fmt.Errorf("coordinator: %w", err)
		}
		switch m.Type {
		case wire.TypeLease:
			var l wire.Lease
			if err := m.Decode(&l); err != nil {
				return err
			}
			if err := s.checkTerm(l.Term); err != nil {
				return err
			}
			select {
			case s.leases <- l:
			case <-ctx.Done():
			}
		case wire.TypeApplied:
			var a wire.Applied
			if err := m.Decode(&a); err != nil {
				return err
			}
			if err := s.checkTerm(a.Term); err != nil {
				return err
			}
			select {
			case s.applied <- a:
			case <-ctx.Done():
			}
		case wire.TypeRevoke:
			var r wire.Revoke
			if err := m.Decode(&r); err != nil {
				return err
			}
			if err := s.checkTerm(r.Term); err != nil {
				return err
			}
			s.revoked.add(r)
		case wire.TypeLeave:
			var l wire.Leave
			if err := m.Decode(&l); err != nil {
				return err
			}
			if err := s.checkTerm(l.Term); err != nil {
				return err
			}
			s.Log.Info("leaving", "reason", l.Reason)
			s.tellLog(s.coordinator)
			return l
		default:
			return fmt.Errorf("coordinator sent %s", m.Type)
		}
	}
}

func (s *session) sendProgress() error {
	at := wire.Heartbeat{Term: s.term.Load(), Lease: s.progress.lease.Load(), Done: s.progress.done.Load()}
	return s.coordinator.Send(wire.TypeHeartbeat, at, nil)
}

// beat shows the coordinator that the process still runs.
func (s *session) beat(ctx context.Context) error {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	asked := s.asked
	if s.Holder == nil {
		asked = nil
	}
	for {
		if err := s.sendProgress(); err != nil { // the first one makes the worker a member
			return err
		}
		select {
		case <-tick.C:
			if err := s.reports.flush(s.coordinator); err != nil {
				return err
			}
		case <-asked:
			asked = nil
			if err := s.coordinator.Send(wire.TypeReport, wire.Report{Departs: true}, nil); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// departTime is the longest time from SIGTERM to the end of a member of an all-reduce: the
// last member saves the parameters.
const departTime = 15 * time.Second

// untilDeparted returns the context of a session. A member of an all-reduce continues for
// departTime after the end of ctx, because others may need its parameters.
func (w *worker) untilDeparted(ctx context.Context) (context.Context, func()) {
	if w.Holder == nil {
		return context.WithCancel(ctx)
	}
	staying, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(departTime, func() { cancel(context.Cause(ctx)) })
	})
	return staying, func() {
		stop()
		cancel(nil)
	}
}
