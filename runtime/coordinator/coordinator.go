package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// Options is what a coordinator needs. Servers are the parameter servers, in the
// order of their spans.
type Options struct {
	session.Options
	Checkpoints *checkpoint.Place
	Workload    *workload.Workload

	// LeaseTimeout is how long a worker may make no progress with a lease
	// before the lease is taken back; 0: a minute.
	LeaseTimeout time.Duration
	// PlacePatience is how long the run waits for checkpoints that cannot be
	// reached before it stops; 0: five minutes.
	PlacePatience time.Duration
	// SeriesTime is about how long the updates take that the members of an all-reduce
	// are asked for in one request; 0: 50 milliseconds.
	SeriesTime time.Duration
}

const (
	maxSkips     = 5 // skipped updates in a row
	leaseTimeout = time.Minute
	maxDoublings = 10 // of the time that a lease may make no progress
)

// coordinator is the training of one run: the work of its session.
type coordinator struct {
	Options
	dispatch
	parameters parameters
	call       *call // to the holders of the parameters, under way; nil: none is
	calls      sync.WaitGroup
	journal    journal
	book       *ledger.Book // nil: no state was restored yet
	evidence   evidence
	saver      saver
	damaged    map[string]string // checkpoints that could not be restored, with their checksums
	save       saving
	final      finishing
	surplus    bool  // the specification has fewer workers than the session
	flushes    bool  // void contributions are to be forgotten at once
	committed  bool  // an update, since this coordinator began
	evaluated  int64 // version of the newest evaluation, -1: none
	done       bool  // the finished model is saved
	class      string
	metrics    map[string]float64
	loss       float64
	skipped    int64
	skips      int               // in a row
	clock      session.Stopwatch // time that goes into training: not into evaluation or waiting
}

// call is a request to the holders of the parameters that runs outside of the loop.
type call struct {
	restoring bool // the parameters and the run's state
	cancel    context.CancelCauseFunc
}

// restores reports whether a restore is under way.
func (c *call) restores() bool { return c != nil && c.restoring }

// callEnded is the event of a call's end.
type callEnded struct {
	err  error
	then func(err error) error
}

// Run trains to the end and returns how that went; the error is for what kept
// the coordinator itself from working.
func Run(ctx context.Context, o Options) (spec.Status, error) {
	c, err := open(o)
	if err != nil {
		return spec.Status{}, err
	}
	defer c.close()
	return c.session.Run(ctx), nil
}

// Conclude is Run for a run that is over, because a coordinator was started
// again after its end: see session.Session.Conclude.
func Conclude(ctx context.Context, o Options, outcome spec.Status) error {
	c, err := open(o)
	if err != nil {
		return err
	}
	defer c.close()
	return c.session.Conclude(ctx, outcome)
}

// open returns the coordinator of a run of which no state was restored yet.
func open(o Options) (*coordinator, error) {
	if o.LeaseTimeout == 0 {
		o.LeaseTimeout = leaseTimeout
	}
	if o.PlacePatience == 0 {
		o.PlacePatience = 5 * time.Minute
	}
	if o.Checkpoints != nil && o.Checkpoints.String() != o.Folder.Checkpoints() {
		o.Claims = o.Checkpoints
	}
	c := &coordinator{
		Options: o, evaluated: -1, evidence: newEvidence(o.PlacePatience),
		metrics: make(map[string]float64), damaged: make(map[string]string),
		dispatch: dispatch{schedule: newSchedule(o.Spec.Asynchronous), members: make(map[int]*member), leases: make(map[int64]*lease)},
	}
	c.dispatch.setbacks = c.evidence.setbacks
	s, err := session.Open(o.Options, c)
	if err != nil {
		return nil, err
	}
	c.session = s
	if err := c.journal.open(o.Folder); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.RaiseTerm(c.journal.term)
	c.parameters = newParameters(o, s)
	if o.Workload != nil { // else the run is over
		c.shape = shapeOf(&o.Spec, c.records())
		c.early = c.parameters.reportBeforePush()
	}
	c.serves, c.names, c.pace = c.parameters.serves, c.early && c.parameters.commitBeforeReports(), newPace(o.SeriesTime)
	c.saver = saver{session: s, place: o.Checkpoints, parameters: c.parameters, ledger: c.journal.ledger, log: o.Log}
	return c, nil
}

// newParameters returns the parameters of the run's strategy.
func newParameters(o Options, s *session.Session) parameters {
	if o.Spec.Strategy == spec.StrategyAllReduce {
		return newAllReduce(o)
	}
	return newParameterServers(o, func(server int) {
		o.Log.Warn("server is silent", "server", server)
		s.TellSupervisor(spec.Control{Hung: &spec.Hung{Server: &server}})
	})
}

func (c *coordinator) close() error { return errors.Join(c.session.Close(), c.journal.close()) }

// Close ends the calls and the saves, and the connections to the holders of the
// parameters.
func (c *coordinator) Close() {
	c.calls.Wait()
	c.parameters.close()
	c.saver.saves.Wait()
}

// Follow keeps what an event says of the run's updates.
func (c *coordinator) Follow(e spec.Event) { c.journal.follow(e) }

// Wake returns the channel that tells of lost connections.
func (c *coordinator) Wake() <-chan struct{} { return c.parameters.watch() }

// begin runs a function outside of the loop. The loop then calls then with its
// error.
func (c *coordinator) begin(ctx context.Context, function func(ctx context.Context) error, then func(err error) error) {
	calling, cancel := context.WithCancelCause(ctx)
	c.call = &call{cancel: cancel}
	c.calls.Go(func() {
		err := function(calling)
		cancel(nil)
		c.session.Post(ctx, callEnded{err, then})
	})
}

// Handle takes the end of a call, or of a save.
func (c *coordinator) Handle(event any) error {
	switch e := event.(type) {
	case callEnded:
		c.call = nil
		err := e.then(e.err)
		if errors.Is(err, errLost) { // the run restores a state
			c.Log.Warn("servers do not follow", "error", err)
			c.parameters.drop(err)
			return nil
		}
		return err
	case checkpointWritten:
		return c.checkpointed(e)
	}
	panic(fmt.Sprintf("coordinator: unknown event %T", event))
}

// Receive takes a member's report on a lease.
func (c *coordinator) Receive(m *session.Member, message any) error {
	if member := c.members[m.Index]; member != nil && member.Member == m {
		return c.report(member, message.(wire.Report))
	}
	return nil
}

// Decode reads a report.
func (c *coordinator) Decode(m *wire.Message) (any, error) {
	if m.Type != wire.TypeReport {
		return nil, fmt.Errorf("unexpected %s", m.Type)
	}
	var r wire.Report
	err := m.Decode(&r)
	return r, err
}

// Join takes a member in that may compute for the run.
func (c *coordinator) Join(m *session.Member) (taken bool, err error) {
	if why := c.otherClass(m); why != "" {
		c.session.GiveUp(m, why)
		return false, nil
	}
	if err := c.evidence.take(m); err != nil {
		return false, err
	}
	c.members[m.Index] = &member{Member: m, leases: make(map[int64]*lease)}
	c.parameters.enter(m)
	return true, nil
}

// Leave takes a member out; its leases go back.
func (c *coordinator) Leave(m *session.Member) error {
	gone := c.members[m.Index]
	if gone == nil || gone.Member != m {
		return nil
	}
	delete(c.members, m.Index)
	if c.parameters.leave(m) && c.call != nil {
		c.call.cancel(fmt.Errorf("%w: %s has left", errLost, m.Seat()))
	}
	if !m.Leaving() {
		c.evidence.lose(gone)
	}
	c.release(gone)
	c.flushes = true // what some servers took must not keep others out
	return nil
}

// Change takes on a live change.
func (c *coordinator) Change(next spec.Spec) {
	c.Spec, c.surplus = next, next.Strategy == spec.StrategyAllReduce
	if !c.surplus {
		c.session.DismissSurplus()
	}
	c.shape = shapeOf(&c.Spec, c.records())
	if c.queue != nil {
		c.forecast(c.Spec.MaxSteps)
	}
}

// Unable decides about a process that cannot work.
func (c *coordinator) Unable(r session.Inability) (wire.Leave, error) {
	needed := r.Workers < c.Spec.Worker.MinReplicas
	how := wire.Leave{End: c.evidence.unable(r.Hello.Index, r.Failure, needed)}
	if how.End == spec.EndGivenUp {
		how.Reason = "this worker is given up"
	}
	switch {
	case r.Fault == spec.FaultChecksum:
		return how, c.evidence.wrongData(r.Hello.Machine, r.Error)
	case len(c.evidence.lacking) >= min(enough, c.Spec.Worker.Replicas) && r.Workers == 0 && c.version == 0:
		return how, session.Fail(spec.ReasonRejected, "worker %d cannot work: %s", r.Hello.Index, r.Error)
	}
	return how, nil
}

// otherClass returns why a worker may not compute for a deterministic run: its
// earlier updates were computed by machines of another class. The first worker
// of a run decides.
func (c *coordinator) otherClass(m *session.Member) string {
	if !c.Spec.Deterministic || m.Hello.Class == "" || m.Hello.Class == c.class {
		return ""
	}
	if c.class == "" || c.version == 0 && len(c.members) == 0 {
		c.class = m.Hello.Class
		return ""
	}
	return fmt.Sprintf("the run is deterministic and has been computed on %q; this machine is %q, whose results differ in the last bits: "+
		"run it on the former, or begin a new run without deterministic", c.class, m.Hello.Class)
}

// Finish lets the run end at the present version: leases, evaluation and a
// restore that is under way are given up.
func (c *coordinator) Finish(reason error) {
	if c.call.restores() {
		c.call.cancel(reason)
	}
	c.withdraw()
}

// Tick takes back leases that make no progress.
func (c *coordinator) Tick(now time.Time) {
	for _, m := range c.members {
		if beat := m.Heartbeat(); beat != nil {
			if l := m.leases[beat.Lease]; l != nil && (beat.Done > l.done || beat.Lease != m.named) {
				l.done, l.given = beat.Done, now
				m.extend(l)
			}
			m.named = beat.Lease
		}
		for _, l := range m.leases {
			if isLate(c, l, now) {
				c.Log.Warn("worker makes no progress", "worker", m.Index, "lease", l.id, "records", l.unit.describe())
				l.unit.overdue++ // the next one gets more time: it may be the work that is long
				c.release(m)
				m.Disconnect()
			}
		}
	}
}

// Advance makes all moves that can be made now, and hands out leases.
func (c *coordinator) Advance(ctx context.Context) (over bool, err error) {
	for {
		if c.done {
			return true, nil
		}
		if c.call != nil {
			break
		}
		if why := c.parameters.lossReason(); why != "" || c.book == nil {
			if why != "" && c.Spec.Strategy != spec.StrategyAllReduce { // else the history has the worker's end
				c.session.Note(spec.Event{Type: spec.EventServer, Message: why})
			}
			if reason := c.session.Reason(); reason != nil {
				return true, reason // its newest checkpoint is what it keeps
			}
			c.restore(ctx)
			break
		}
		if admitNewcomers(ctx, c) {
			continue
		}
		if (departures{c}).letGo(ctx) {
			break
		}
		moved, over, err := c.move(ctx)
		if over || err != nil {
			return over, err
		}
		if !moved {
			break
		}
	}
	if !c.call.restores() {
		c.assignAll()
	}
	return false, nil
}

// move makes one move, if there is one to make.
func (c *coordinator) move(ctx context.Context) (moved, over bool, err error) {
	reason := c.session.Reason()
	switch {
	case c.session.Unwritten() && reason != nil: // a checkpoint would have updates that the ledger lacks
		return false, true, reason
	case c.isMade():
		u := c.updates[0]
		if u.missing > 0 { // its report is on its way
			return false, false, nil
		}
		return true, false, c.enter(u, u.made.norm, u.made.applied)
	case c.flushes:
		flushVoid(ctx, c)
		return true, false, nil
	case c.evaluation != nil:
		if !c.evaluation.isComplete() {
			return false, false, nil
		}
		c.evaluated = c.version
		c.concludeEvaluation()
		return true, false, nil
	case len(c.updates) > 0:
		var next []*update
		if u := c.schedule.committable(c.updates); u != nil && u.series == 0 {
			next = []*update{u}
		} else if c.names {
			next = findNameable(c.updates, c.countHolders())
		}
		if len(next) > 0 {
			c.commit(ctx, next)
		}
		return len(next) > 0, false, nil
	}
	return c.boundary(ctx)
}

// flushVoid lets the holders forget void contributions, if there are any.
func flushVoid(ctx context.Context, c *coordinator) {
	c.flushes = false
	if void, at := c.takeVoid(), c.currentPoint(); len(void) > 0 {
		c.begin(ctx, func(ctx context.Context) error { return c.parameters.flush(ctx, at, void) }, func(err error) error { return err })
	}
}

// boundary is where every server is at the same version and nothing is under
// way: the place for cuts.
func (c *coordinator) boundary(ctx context.Context) (moved, over bool, err error) {
	c.pace.pause()
	reason, ends := c.session.Reason(), c.ends()
	due := func(every int) bool {
		return reason == nil && every > 0 && c.version > 0 && c.version%int64(every) == 0
	}
	whole := ends && reason == nil
	switch {
	case c.evaluated != c.version && (whole || due(c.Spec.Evaluation.EverySteps)):
		c.beginEvaluation()
		return true, false, nil
	case whole && !c.final.saving && time.Now().Before(c.final.retryAt):
		return false, false, nil
	case whole && !c.final.saving,
		c.save.cut != c.version && (ends || due(c.Spec.Checkpoint.EverySteps) || c.save.isDue(c.Spec.Checkpoint.EverySeconds, c.version)):
		if c.save.writing {
			return false, false, nil // one at a time
		}
		c.checkpoint(ctx, whole)
		return true, false, nil
	case !ends:
		return false, false, nil
	}
	if c.save.writing || reason == nil {
		return false, false, nil
	}
	return false, true, reason
}

// ends reports whether no further update is to be made.
func (c *coordinator) ends() bool {
	return c.session.Reason() != nil || c.queue.empty() || c.Spec.MaxSteps > 0 && c.version >= int64(c.Spec.MaxSteps)
}

// horizon is the last version that updates may be opened for: the next boundary
// with an action.
func (c *coordinator) horizon() int64 {
	if c.session.Reason() != nil || c.save.isDue(c.Spec.Checkpoint.EverySeconds, c.version) {
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

// Routes adds the ledger and the finished model to the API.
func (c *coordinator) Routes(mux *http.ServeMux) { results{c}.addTo(mux) }

// recipeOf returns the optimizer's recipe for updates of so many workers, with
// the rate that a schedule begins from.
func recipeOf(s *spec.Spec, workers int) optimizer.Recipe {
	o := s.Optimizer.Resolve()
	r := optimizer.Recipe{
		LearningRate: float32(s.Rate(workers)),
		Momentum:     float32(o.Momentum),
		Nesterov:     o.Nesterov,
		WeightDecay:  float32(o.WeightDecay),
		ClipNorm:     float32(s.ClipNorm),
		Beta1:        o.Beta1,
		Beta2:        o.Beta2,
		Epsilon:      o.Epsilon,
	}
	if o.Name != spec.OptimizerSGD { // manifests of earlier versions have no name
		r.Name = o.Name
	}
	return r
}

// recipeOfNext returns the recipe of an update that is committed next, after so many
// updates that are applied before it, with so many records. Rate and number follow from
// these, the book and the version, which every coordinator of the run has.
func recipeOfNext(c *coordinator, u *update, updates, records int64) optimizer.Recipe {
	r := recipeOf(&c.Spec, u.workers)
	r.LearningRate = float32(c.Spec.RateAt(u.workers, c.book.Records()+records, u.End-u.Start, c.records()))
	if r.Name == optimizer.Adam || r.Name == optimizer.AdamW {
		r.Step = c.version - c.skipped + 1 + updates
	}
	return r
}
