package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// Options is everything that a coordinator needs.
type Options struct {
	Spec        spec.Spec
	Name        string     // of the run, as its status has it; "": that of Folder
	Folder      run.Folder // of its own: ledger, metrics and status
	Credentials wire.Credentials
	Checkpoints *checkpoint.Place
	Workload    *workload.Workload
	Workers     net.Listener // where workers connect
	API         net.Listener
	Servers     []string        // addresses of the parameter servers, in the order of their spans
	Control     io.Writer       // what the supervisor is told: one Control per line; nil = nobody
	Stop        <-chan struct{} // ends the run as stopped, after a checkpoint
	Leave       <-chan struct{} // ends this coordinator, after a checkpoint: the run waits for the next one
	Log         *slog.Logger
	Turn        func()    // hears each time that the loop has got on; nil = nobody
	Events      io.Writer // gets a line for every event, as metrics.jsonl has it; nil = nobody. It may be slow, or fail

	// Ended hears how the run ended before workers and servers do; nil = nobody.
	// It does not hear of one that another coordinator speaks for, or the next
	// one goes on with.
	Ended func(spec.Status)
	// Linger is how long the API still answers behind the run's end, for results
	// to be collected; 0 = not at all.
	Linger time.Duration

	// LeaseTimeout is how long a worker may make no progress with a lease
	// before the lease is taken back; 0 = a minute.
	LeaseTimeout time.Duration
	// PlacePatience is how long checkpoints that cannot be reached are waited
	// for before the run stops; 0 = five minutes.
	PlacePatience time.Duration
	// HearTime is how long workers have to hear of the run's end; 0 = ten
	// seconds.
	HearTime time.Duration
}

// Times and limits of a run.
const (
	silence      = 5 * time.Second  // without a heartbeat, a worker's leases are given to others
	patience     = 20 * time.Second // after that, it is ended and replaced
	stopGrace    = 30 * time.Second // from a stop to the last checkpoint
	maxSkips     = 5                // skipped updates in a row
	leaseTimeout = time.Minute
	maxDoublings = 10  // of the time that a lease may make no progress
	maxRan       = 1e9 // seconds that are believed
)

// coordinator is the state of one run, owned by loop.
type coordinator struct {
	Options
	hash    string // of the spec
	events  chan any
	saves   sync.WaitGroup
	tidying sync.Mutex

	stopAsked  chan struct{} // closed once the API was asked to stop
	asking     sync.Once
	journal    *journal
	terms      terms
	proclaimed int64                      // term that was claimed where the checkpoints lie
	floor      int64                      // highest term found there
	over       atomic.Pointer[wire.Leave] // what late workers hear; nil: the run is not over

	output     *output       // nil: nobody wants it
	collected  chan struct{} // closed once the run's results have been collected
	collecting sync.Once
	sending    atomic.Int32 // models being sent
	status     atomic.Pointer[spec.Status]
	keeping    sync.Mutex // while a status is written: the last one stays

	members    map[int]*member
	silent     map[int]missing // by index
	strategy   strategy
	term       int64      // fences: it rises whenever the run goes back to one state
	claiming   sync.Mutex // while the term changes: it is read beside loop
	committed  bool       // an update, since this coordinator began
	spoken     bool       // something was said in this term
	unwritten  bool       // the ledger lacks something
	generation int64      // of the memberships
	version    int64      // updates committed
	steps      int64      // that there will be in the end
	book       *ledger.Book
	queue      *queue
	updates    []*update // open ones, the oldest first
	leases     map[int64]*lease
	lastLease  int64
	evaluation *evaluation
	saving     bool // a checkpoint is being written

	evaluated  int64             // version of the newest evaluation, -1: none
	saved      int64             // version of the newest checkpoint that is written, 0: none
	kept       int64             // version that the newest checkpoint is of, written or not
	keptAt     time.Time         // when that was kept, or training began
	damaged    map[string]string // checkpoints that could not be restored, with their checksums
	final      bool              // the finished model is being saved
	finals     int               // times that this failed
	finalFirst time.Time         // when that was first
	finalAfter time.Time         // when it is tried again
	away       map[int]time.Time // when a worker's connection was lost that has not come back, by index
	done       bool              // it is saved
	class      string            // of the machines that a deterministic run is computed on; "": none yet
	holders    map[int]string    // instance that joined last, by index
	followed   map[string]bool   // instances whose place another one has taken
	metrics    map[string]float64
	loss       float64
	skipped    int64
	skips      int // in a row
	resumed    int
	started    time.Time
	began      time.Time     // of this coordinator
	ranBefore  time.Duration // by earlier ones
	recalled   spec.Status   // what the last one wrote
	clock      clock
	attended   clock // while there are enough workers: see ran
	reason     error // why the run is to end before its end
	message    string
	evidence   evidence
	whyLog     string // last lines of the log that tells why
}

// Run trains to the end and returns how that went; the error is for what kept
// the coordinator itself from working.
func Run(ctx context.Context, o Options) (spec.Status, error) {
	j, err := openJournal(o.Folder)
	if err != nil {
		return spec.Status{}, err
	}
	defer j.close()
	c := newCoordinator(o, j)
	c.remember()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.Events != nil {
		c.output = passOn(j.history, c.Events, c.Log)
		defer c.output.close()
	}
	c.strategy = newStrategy(c.Options, func(server int) {
		c.Log.Warn("server is silent", "server", server)
		c.tell(spec.Control{Hung: &spec.Hung{Server: &server}})
	})
	if err := c.begin(); err != nil {
		c.publish(spec.Running)
		return c.end(err), nil
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer c.saves.Wait()
	defer c.strategy.close()
	defer cancel(nil)
	c.publish(spec.Running)
	c.tell(spec.Control{Workers: &c.Spec.Worker.Replicas})
	serving.Go(func() { c.acceptWorkers(ctx) })
	serving.Go(func() { c.serveAPI(ctx) })
	serving.Go(func() { c.keepStatus(ctx, cancel) })
	err = c.loop(ctx, cancel)
	if errors.Is(err, errLeft) {
		return c.leftAlone(), nil
	}
	outcome := c.end(err)
	if outcome.Cause != spec.CauseSuperseded { // else what becomes of the others is not this one's to say any more
		c.partWith(ctx, outcome)
	}
	return outcome, nil
}

// newCoordinator makes the state of a run that nothing has become of yet.
func newCoordinator(o Options, j *journal) *coordinator {
	if o.Name == "" {
		o.Name = o.Folder.Name()
	}
	if o.LeaseTimeout == 0 {
		o.LeaseTimeout = leaseTimeout
	}
	if o.PlacePatience == 0 {
		o.PlacePatience = 5 * time.Minute
	}
	if o.HearTime == 0 {
		o.HearTime = hearTime
	}
	return &coordinator{
		Options: o, journal: j, events: make(chan any, 256), members: make(map[int]*member), silent: make(map[int]missing),
		hash: o.Spec.Hash(), evaluated: -1, metrics: make(map[string]float64), generation: j.generation,
		began: time.Now(), damaged: make(map[string]string), terms: termsOf(o.Folder),
		holders: make(map[int]string), followed: make(map[string]bool), away: make(map[int]time.Time),
		evidence:  newEvidence(o.PlacePatience),
		stopAsked: make(chan struct{}), collected: make(chan struct{}),
	}
}

// remember reads when the run was started first, and how long it has run.
func (c *coordinator) remember() {
	c.started = c.began
	var before spec.Status
	if err := run.ReadJSON(c.Folder.StatusFile(), &before); err != nil || before.Started.IsZero() {
		return
	}
	c.started, c.resumed, c.recalled = before.Started, before.Resumed, before
	// Earlier versions did not count; the time that they trained is a part of it.
	ran := max(before.Ran, before.Metrics["training_seconds"])
	if ran > 0 && ran < maxRan {
		c.ranBefore = time.Duration(ran * float64(time.Second))
	}
}

// loop owns the state until the run is over: nil means succeeded.
func (c *coordinator) loop(ctx context.Context, cancel context.CancelCauseFunc) error {
	if over, err := c.concluded(ctx); over || err != nil {
		return err
	}
	if err := c.restore(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	stop, leave := c.Stop, c.Leave
	for {
		over, err := c.advance(ctx)
		if over || err != nil {
			return err
		}
		select {
		case e := <-c.events:
			err = c.handle(e)
		case <-c.strategy.watch(): // advance looks
		case <-tick.C:
			c.tick()
		case <-stop:
			stop = nil
			c.finish(errStop)
		case <-leave:
			leave = nil
			c.finish(errLeft)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if errors.Is(err, errLost) {
			c.strategy.drop(err)
			err = nil
		}
		if err != nil {
			return err
		}
		if c.reason != nil && cancel != nil {
			timer := time.AfterFunc(stopGrace, func() { cancel(c.reason) })
			defer timer.Stop()
			cancel = nil
		}
	}
}

// finish lets the run end at the present version: what is being computed is
// given up.
func (c *coordinator) finish(reason error) {
	if c.reason != nil {
		return
	}
	c.Log.Info("ending", "reason", reason)
	c.reason = reason
	for _, m := range c.members {
		c.release(m)
	}
	c.updates, c.evaluation = nil, nil
}

// handle takes one event.
func (c *coordinator) handle(e any) error {
	switch e := e.(type) {
	case joined:
		return c.join(e.member)
	case left:
		return c.leave(e.member, e.err)
	case reported:
		return c.report(e.member, e.Report)
	case broken:
		return c.unable(e)
	case change:
		e.done <- c.change(e.LiveChange)
	case ask:
		e.done <- c.ledger(context.Background())
	case higherTerm:
		if int64(e) > c.term {
			return superseded(c.term, int64(e))
		}
	case stopRequest:
		c.finish(errStop)
	case written:
		return c.checkpointed(e)
	default:
		panic(fmt.Sprintf("coordinator: unknown event %T", e))
	}
	return nil
}

// at is where the parameters are.
func (c *coordinator) at() point { return point{c.term, c.version} }

// tick looks after what happens by time alone.
func (c *coordinator) tick() {
	now := time.Now()
	for _, m := range c.members {
		if now.Sub(m.lastHeard()) > silence {
			c.Log.Warn("worker is silent", "worker", m.index)
			c.silent[m.index] = missing{m.pid, now}
			m.conn.Close() // its reader then reports it as gone
		}
		if at := m.at.Load(); at != nil {
			if l := m.leases[at.Lease]; l != nil && at.Done > l.done {
				l.done, l.given = at.Done, now
			}
		}
		for _, l := range m.leases {
			if c.current(l) && now.Sub(l.given) > c.LeaseTimeout<<min(l.unit.overdue, maxDoublings) {
				c.Log.Warn("worker makes no progress", "worker", m.index, "lease", l.id, "records", l.unit.describe())
				l.unit.overdue++ // the next one gets more time: it may be the work that is long
				c.release(m)
				m.conn.Close()
			}
		}
	}
	for index, w := range c.silent {
		if now.Sub(w.since) > patience {
			delete(c.silent, index)
			c.tell(spec.Control{Hung: &spec.Hung{Worker: &index, PID: w.pid}})
		}
	}
	c.publish(spec.Running)
}

// missing is a worker that fell silent: its machine may be busy, so that it
// gets some time to come back before it is replaced.
type missing struct {
	pid   int
	since time.Time
}

// advance does everything that can be done without waiting for an event.
func (c *coordinator) advance(ctx context.Context) (over bool, err error) {
	c.attended.set(len(c.members) >= c.Spec.Worker.MinReplicas)
	if d := time.Duration(c.Spec.Deadline); d > 0 && c.ran() > d {
		c.finish(stopped{spec.CauseDeadline, fmt.Sprintf("it has run for its deadline of %v", d)})
	}
	for {
		if why := c.strategy.lost(); why != "" {
			c.note(spec.Event{Type: spec.EventServer, Message: why})
			if err := c.restore(ctx); err != nil {
				return false, err
			}
		}
		again, over, err := c.step(ctx)
		if errors.Is(err, errLost) {
			c.Log.Warn("servers do not follow", "error", err)
			c.strategy.drop(err)
			continue
		}
		if over || err != nil {
			return over, err
		}
		if !again {
			break
		}
	}
	c.assign()
	return false, nil
}

// step makes one move, if there is one to make.
func (c *coordinator) step(ctx context.Context) (again, over bool, err error) {
	switch {
	case c.done:
		return false, true, nil
	case c.unwritten && c.reason != nil: // a checkpoint would have updates that the ledger lacks
		return false, true, c.reason
	case c.evaluation != nil:
		if !c.evaluation.whole() {
			return false, false, nil
		}
		c.evaluated = c.version
		c.concludeEvaluation()
		return true, false, nil
	case c.strategy.whole(c.updates) != nil:
		return true, false, c.commit(c.strategy.whole(c.updates))
	case len(c.updates) > 0:
		return false, false, nil
	}
	return c.boundary(ctx)
}

// boundary is where every server is at the same version and nothing is under
// way: the place for cuts.
func (c *coordinator) boundary(ctx context.Context) (again, over bool, err error) {
	ended := c.ended()
	due := func(every int) bool {
		return c.reason == nil && every > 0 && c.version > 0 && c.version%int64(every) == 0
	}
	whole := ended && c.reason == nil
	switch {
	case c.evaluated != c.version && (whole || due(c.Spec.Evaluation.EverySteps)):
		c.beginEvaluation()
		return true, false, nil
	case whole && !c.final && time.Now().Before(c.finalAfter):
		return false, false, nil
	case whole && !c.final, c.kept != c.version && (ended || due(c.Spec.Checkpoint.EverySteps) || c.due()):
		if c.saving {
			return false, false, nil // one at a time
		}
		return true, false, c.checkpoint(ctx, whole)
	case !ended:
		return false, false, nil
	}
	if c.saving || c.reason == nil {
		return false, false, nil
	}
	return false, true, c.reason
}

// ended reports whether no further update is to be made.
func (c *coordinator) ended() bool {
	return c.reason != nil || c.queue.empty() || c.Spec.MaxSteps > 0 && c.version >= int64(c.Spec.MaxSteps)
}

// horizon is the version up to which updates may be opened: the next boundary
// at which something is to be done.
func (c *coordinator) horizon() int64 {
	if c.reason != nil || c.due() {
		return c.version
	}
	next := int64(1) << 62
	if c.Spec.MaxSteps > 0 {
		next = int64(c.Spec.MaxSteps)
	}
	for _, every := range []int{c.Spec.Evaluation.EverySteps, c.Spec.Checkpoint.EverySteps} {
		if e := int64(every); e > 0 {
			next = min(next, (c.version/e+1)*e)
		}
	}
	return next
}

func (c *coordinator) records() int64 { return c.Workload.Train.Info().Records }

// recipe is the optimizer's for one update.
func (c *coordinator) recipe(workers int) engine.Recipe {
	o := c.Spec.Optimizer
	return engine.Recipe{
		LearningRate: float32(c.Spec.Rate(workers)),
		Momentum:     float32(o.Momentum),
		Nesterov:     o.Nesterov,
		WeightDecay:  float32(o.WeightDecay),
	}
}
