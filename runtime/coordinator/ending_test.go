package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// again gives a run that has ended new servers and listeners, as a new
// supervisor does.
func (b *bench) again() *bench {
	b.t.Helper()
	next := &bench{t: b.t, engine: b.engine, logs: b.logs, options: b.options, stream: b.stream, astray: b.astray}
	next.ctx, next.cancel = context.WithCancel(context.Background())
	next.options.Workers, next.options.API = listen(b.t), listen(b.t)
	next.serve()
	return next
}

// checkpoints lists the run's checkpoints by name.
func (b *bench) checkpoints() []string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.options.Folder.Checkpoints(), "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	return found
}

// setStatus writes what an earlier coordinator left.
func (b *bench) setStatus(change func(*spec.Status)) {
	b.t.Helper()
	s := spec.Status{Run: "run", Phase: spec.Running, Started: time.Now().Add(-100 * time.Hour)}
	change(&s)
	if err := run.WriteJSON(b.options.Folder.StatusFile(), s); err != nil {
		b.t.Fatal(err)
	}
}

// The end of a run that nobody was told is not trained again.
func TestFinishedRunIsNotTrainedAgain(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	want := b.run()
	b.setStatus(func(*spec.Status) {})
	again := b.again()
	got, err := Run(again.ctx, again.options) // nobody works
	if err != nil {
		t.Fatal(err)
	}
	if got.Phase != spec.Succeeded || got.Step != want.Step || got.Records != want.Records || got.Metrics["accuracy"] != want.Metrics["accuracy"] {
		t.Errorf("status %+v, want %+v", got, want)
	}
}

// A stopped run says what it goes on from only if that was written.
func TestOnlyWhatIsWrittenIsPromised(t *testing.T) {
	for _, full := range []bool{false, true} {
		s := pointsSpec()
		s.Epochs = 1 << 40
		b := newBench(t, s, linear{})
		if full {
			b.fill()
		}
		stop := make(chan struct{})
		b.options.Stop = stop
		go func() {
			for b.seen("update") < 5 {
				time.Sleep(time.Millisecond)
			}
			close(stop)
		}()
		st := b.run()
		if st.Phase != spec.Stopped || st.Cause != spec.CauseRequest || st.Step < 5 {
			t.Fatalf("full %v: %+v", full, st)
		}
		promised := strings.Contains(st.Message, fmt.Sprintf("goes on from its checkpoint of step %d", st.Step))
		if promised == full || (st.Saved == st.Step) == full {
			t.Errorf("full %v: %+v", full, st)
		}
	}
}

// fill makes the place for checkpoints one that nothing can be written to.
func (b *bench) fill() {
	b.t.Helper()
	if err := os.RemoveAll(b.options.Folder.Checkpoints()); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(b.t.TempDir(), "nowhere"), b.options.Folder.Checkpoints()); err != nil {
		b.t.Fatal(err)
	}
}

// final is the folder of the finished model.
func (b *bench) final() string {
	b.t.Helper()
	found, err := b.options.Folder.Finals()
	if err != nil || len(found) != 1 {
		b.t.Fatalf("finished models %q, %v", found, err)
	}
	return found[0]
}

// seen counts the run's events of a type.
func (b *bench) seen(kind string) int {
	data, _ := os.ReadFile(b.options.Folder.Metrics()) // not there yet: none
	return bytes.Count(data, []byte(`"type":"`+kind+`"`))
}

// What cannot be written stops a run, in a state that goes on once it can.
func TestFullDiskStopsTheRun(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	b.fill()
	st := b.run()
	if st.Phase != spec.Stopped || st.Cause != spec.CauseDisk || !strings.Contains(st.Message, "final model") {
		t.Fatalf("status %+v", st)
	}
	if err := os.Remove(b.options.Folder.Checkpoints()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(b.options.Folder.Checkpoints(), 0o700); err != nil {
		t.Fatal(err)
	}
	if st := b.again().run(); st.Phase != spec.Succeeded || st.Records != 1800 {
		t.Errorf("status %+v", st)
	}
}

// A disk that is full for a moment costs the final model a moment.
func TestFinalModelIsTriedAgain(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	b.fill()
	b.options.PlacePatience = time.Hour
	go func() {
		for !strings.Contains(b.logs.String(), "final model not saved") {
			time.Sleep(time.Millisecond)
		}
		os.Remove(b.options.Folder.Checkpoints())
		os.Mkdir(b.options.Folder.Checkpoints(), 0o700)
	}()
	if st := b.run(); st.Phase != spec.Succeeded || st.Records != 1800 || st.Saved != st.Step {
		t.Errorf("status %+v", st)
	}
	b.final()
}

// The ledger must be written; a server's own account of it is for tests.
func TestLedgerMustBeWritten(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	c := b.opened()
	if err := errors.Join(c.session.Begin(), c.journal.close()); err != nil {
		t.Fatal(err)
	}
	c.record(ledger.Record{Step: 1, End: 5})
	if phase, cause, text := session.Outcome(c.session.Reason()); phase != spec.Stopped || cause != spec.CauseDisk || !strings.Contains(text, "ledger") {
		t.Errorf("a ledger that cannot be written ends the run as %s, %s: %s", phase, cause, text)
	}
}

// Checkpoints are made for the time that has passed, whoever said nothing.
func TestCheckpointsByTime(t *testing.T) {
	if spec.Default().Checkpoint.EverySeconds <= 0 {
		t.Error("no checkpoints by default")
	}
	s := pointsSpec()
	s.Epochs, s.Checkpoint.EverySeconds = 1<<40, 1
	b := newBench(t, s, linear{})
	stop := make(chan struct{})
	b.options.Stop = stop
	go func() {
		for b.seen("checkpoint") < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		close(stop)
	}()
	if st := b.run(); st.Phase != spec.Stopped || st.Saved != st.Step {
		t.Errorf("status %+v", st)
	}
}

// Damaged checkpoints do not count among those that are kept.
func TestDamagedCheckpointsAreNotKept(t *testing.T) {
	b := saved(t).again()
	b.options.Spec.Checkpoint.EverySteps, b.options.Spec.Checkpoint.Keep = 10, 1
	for _, damaged := range []string{"step-000000000005", "step-000000999999"} {
		folder := filepath.Join(b.options.Folder.Checkpoints(), damaged)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "manifest.json"), []byte(`{"step": 5}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if st := b.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	// Which one is the newest depends on how long writing took.
	found := b.checkpoints()
	if len(found) != 3 || !strings.HasPrefix(found[0], spec.FinalPrefix) || found[1] < "step-000000000010" || found[1] > "step-000000000031" || found[2] != "step-000000999999" {
		t.Errorf("checkpoints %v", found)
	}
}

// A run whose model is another one by now does not begin anew.
func TestCheckpointOfAnotherModelIsNotPassedOver(t *testing.T) {
	s := pointsSpec()
	s.Checkpoint.EverySteps = 10
	b := newBench(t, s, linear{})
	if st := b.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	if err := os.RemoveAll(b.final()); err != nil {
		t.Fatal(err)
	}
	again := b.again()
	changed, other := *b.options.Workload, *b.options.Workload.Model
	other.Layers = append([]model.Layer{{Name: "flat", Op: model.Flatten}}, other.Layers...)
	changed.Model = &other
	again.options.Workload = &changed
	st, err := Run(again.ctx, again.options)
	if err != nil || st.Phase != spec.Stopped || st.Cause != spec.CauseTrainer || !strings.Contains(st.Message, "other layers") {
		t.Errorf("status %+v, %v", st, err)
	}
}

// What a plan accepts, servers can compute: there is one rule, here seen from
// both sides.
func TestPlanAndRunAgreeOnNumbers(t *testing.T) {
	numbers := []float64{0, 1e-60, 1e-46, 1e-45, 1e-38, 0.05, 0.5, 0.9, 0.9999999, 0.99999999, 1, 1.5, 5, 1e6, 1e39, math.NaN(), math.Inf(1), -0.5}
	agree := func(s spec.Spec) bool {
		s.Model, s.Dataset = "mlp", spec.Dataset{Path: "/data", Hash: "x"}
		plan, recipe := s.Validate(), recipeOf(&s, 1)
		recipe.Step = 1
		if run := recipe.Validate(); len(plan) == 0 && run != nil {
			t.Errorf("a plan accepts what fails: %v: %+v", run, s)
		}
		return len(plan) == 0
	}
	for _, name := range []string{spec.OptimizerAdam, spec.OptimizerAdamW, spec.OptimizerAdagrad} {
		for _, a := range numbers {
			for _, b := range numbers {
				s := pointsSpec()
				s.Optimizer.Name, s.Optimizer.Epsilon, s.ClipNorm = name, a, b
				ok := agree(s)
				if s.Optimizer.Epsilon, s.ClipNorm = 0, 0; name != spec.OptimizerAdagrad {
					s.Optimizer.Beta1, s.Optimizer.Beta2 = a, b
				}
				if ok = agree(s) || ok; a == 0.5 && b == 0.9 && !ok {
					t.Errorf("%s: nothing was accepted", name)
				}
			}
		}
	}
	accepted := 0
	for _, rate := range numbers {
		for _, momentum := range numbers {
			for _, decay := range numbers {
				for _, nesterov := range []bool{false, true} {
					s := pointsSpec()
					s.LearningRate, s.Optimizer.Momentum, s.Optimizer.WeightDecay, s.Optimizer.Nesterov = rate, momentum, decay, nesterov
					if agree(s) {
						accepted++
					}
				}
			}
		}
	}
	if accepted == 0 {
		t.Error("nothing was accepted")
	}
}

// A checkpoint that the run went back to is its own, whatever a message of the
// time before says; one that it went back behind is not.
func TestCheckpointsOfTheRunsHistory(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	c := b.opened()
	for _, r := range []point{{1, 0}, {2, 100}, {3, 150}} {
		if err := c.session.Begin(); err != nil || c.session.Term() != r.term {
			t.Fatalf("term %d: %v", c.session.Term(), err)
		}
		c.version = r.version
		c.session.Note(spec.Event{Type: spec.EventRestore})
	}
	c.book = ledger.NewBook(c.records())
	for _, tt := range []struct {
		term, step int64
		void       bool
	}{{1, 100, false}, {1, 101, true}, {1, 50, false}, {2, 150, false}, {2, 200, true}, {3, 500, false}} {
		name := spec.StepName(tt.step, tt.term)
		part, err := c.Checkpoints.Save(t.Context(), name, "part", 0, [][]float32{{1}})
		if err != nil {
			t.Fatal(err)
		}
		m := checkpoint.Manifest{Term: tt.term, Step: tt.step, Run: c.session.Hash(), Records: c.records(), Model: c.Workload.Model, Vars: c.Workload.Vars, Parts: []checkpoint.Part{part}}
		if err := c.Checkpoints.Finish(t.Context(), name, &m); err != nil {
			t.Fatal(err)
		}
		if err := c.checkpointed(checkpointWritten{manifest: m}); err != nil {
			t.Fatal(err)
		}
		c.saver.saves.Wait()
		if _, err := c.Checkpoints.Manifest(t.Context(), name); (err != nil) != tt.void {
			t.Errorf("checkpoint of step %d, term %d: %v; void: %v", tt.step, tt.term, err, tt.void)
		}
	}
}

// flaky is a server that dies in the middle of a write, with all it holds, and
// is started again.
type flaky struct {
	net.Listener
	writes atomic.Int32
	dies   int32 // at this write
	kill   atomic.Pointer[context.CancelFunc]
}

type flakyConn struct {
	net.Conn
	f *flaky
}

func (f *flaky) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	return &flakyConn{c, f}, err
}

func (c *flakyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 3 && p[0] == 'S' && p[1] == 'k' && p[3] == byte(wire.TypeWrite) && c.f.writes.Add(1) == c.f.dies {
		(*c.f.kill.Load())()
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// Close lets the next server have the port.
func (f *flaky) Close() error { return nil }

func TestServerLostWhileTheFinalModelIsSaved(t *testing.T) {
	gate := make(chan struct{})
	b := newBench(t, pointsSpec(), linear{gate: gate})
	stop := make(chan struct{})
	b.options.Stop = stop
	go func() {
		defer close(gate)
		for range 5 * 7 { // micro-batches of five updates
			gate <- struct{}{}
		}
		for b.seen("update") < 5 {
			time.Sleep(time.Millisecond)
		}
		close(stop)
	}()
	if st := b.run(); st.Phase != spec.Stopped {
		t.Fatalf("status %+v", st)
	}
	b = b.again() // its only write is the final one
	b.options.Stop = nil
	f := &flaky{Listener: listen(t), dies: 1}
	var servers sync.WaitGroup
	servers.Go(func() {
		for b.ctx.Err() == nil {
			ctx, cancel := context.WithCancel(b.ctx)
			f.kill.Store(&cancel)
			stop := context.AfterFunc(ctx, func() { f.Listener.(*net.TCPListener).SetDeadline(time.Now()) })
			ps.New(0, credentials, b.options.Checkpoints, new(bytes.Buffer), b.options.Log).Serve(ctx, f)
			stop()
			f.Listener.(*net.TCPListener).SetDeadline(time.Time{})
		}
	})
	defer servers.Wait()
	defer b.cancel()
	b.options.Servers = []string{f.Addr().String()}
	st := b.run()
	if st.Phase != spec.Succeeded || st.Records != 1800 || st.Step != 36 {
		t.Errorf("status %+v", st)
	}
	if f.writes.Load() < 2 { // the dying server may have taken another one
		t.Errorf("%d writes: the server did not die at the final one", f.writes.Load())
	}
}

// Only what has learned nothing fails where it cannot begin: what has stops, and
// goes on with what it lacks.
func TestUnable(t *testing.T) {
	rejected, absent := errors.New("no such model"), workload.DataError{Fault: spec.FaultData, Err: errors.New("no data there")}
	for _, tt := range []struct {
		was   spec.Status
		why   error
		phase spec.Phase
		cause spec.Cause
	}{
		{spec.Status{Phase: spec.Pending}, rejected, spec.Failed, ""},
		{spec.Status{Phase: spec.Stopped, Cause: spec.CauseDisk}, rejected, spec.Failed, ""},
		{spec.Status{Phase: spec.Stopped, Cause: spec.CauseRequest, Step: 7}, rejected, spec.Stopped, spec.CauseTrainer},
		{spec.Status{Phase: spec.Pending, Saved: 4}, rejected, spec.Stopped, spec.CauseTrainer},
		{spec.Status{Phase: spec.Pending}, absent, spec.Stopped, spec.CauseData},
		{spec.Status{Phase: spec.Pending, Step: 7}, absent, spec.Stopped, spec.CauseData},
	} {
		is := Unable(tt.was, tt.why)
		if is.Phase != tt.phase || is.Cause != tt.cause || is.Message != tt.why.Error() || is.Ended.IsZero() || (is.Reason != "") != (is.Phase == spec.Failed) {
			t.Errorf("%+v ends as %+v", tt.was, is)
		}
	}
}
