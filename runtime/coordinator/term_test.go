package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// beside is another coordinator of the same run, with the same servers.
func (b *bench) beside() *bench {
	b.t.Helper()
	next := &bench{t: b.t, engine: b.engine, logs: new(locked), options: b.options, ctx: b.ctx, cancel: b.cancel, ps: b.ps}
	next.options.Workers, next.options.API, next.options.Control = listen(b.t), listen(b.t), nil
	return next
}

// lines reads the run's events.
func (b *bench) lines() (all []spec.Event) {
	b.t.Helper()
	data, err := os.ReadFile(b.options.Folder.Metrics())
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// A coordinator that another one has followed ends, and what it still writes
// reaches nobody.
func TestSupersededCoordinatorEnds(t *testing.T) {
	s := pointsSpec()
	s.Epochs, s.ParameterServer.Replicas, s.Checkpoint.EverySteps = 1<<40, 2, 20
	b := newBench(t, s, linear{})
	told := new(locked)
	b.options.Control = told
	old := make(chan spec.Status, 1)
	go func() { old <- b.run() }()
	for b.seen("update") < 50 {
		time.Sleep(time.Millisecond)
	}
	next := b.beside()
	next.options.Spec.MaxSteps = 3000
	st := next.run()
	if st.Phase != spec.Succeeded || st.Step != 3000 || st.Term < 2 {
		t.Errorf("the one that followed: %+v", st)
	}
	last := <-old
	if last.Phase != spec.Stopped || last.Cause != spec.CauseSuperseded || last.Term >= st.Term {
		t.Errorf("the one that was followed: %+v", last)
	}
	if text := told.String(); !strings.Contains(text, string(spec.CauseSuperseded)) {
		t.Errorf("the supervisor was told %s", text)
	}
	term, step, restored := int64(0), int64(0), false
	for i, e := range b.lines() {
		if e.Number != int64(i+1) || e.Term < term {
			t.Fatalf("event %d: %+v", i, e)
		}
		if e.Term > term {
			restored = false
		}
		restored = restored || e.Type == spec.EventRestore
		if !restored && e.Type != spec.EventWorker {
			t.Errorf("before the restore of term %d: %+v", e.Term, e)
		}
		term = e.Term
		if e.Type == spec.EventUpdate && e.Step != step+1 {
			t.Errorf("update %d follows %d", e.Step, step)
		}
		step = e.Step
	}
	var kept spec.Status
	if err := run.ReadJSON(b.options.Folder.StatusFile(), &kept); err != nil || kept.Term != st.Term {
		t.Errorf("status %+v, %v", kept, err)
	}
}

// A checkpoint that a coordinator has begun to write when another one follows it
// has no effect.
func TestNoCheckpointOfAnOldTermIsWritten(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	c := b.opened()
	if err := c.session.Begin(); err != nil {
		t.Fatal(err)
	}
	c.saver.parameters = slow{meanwhile: func() {
		if err := b.opened().session.Begin(); err != nil {
			t.Fatal(err)
		}
	}}
	err := c.saver.write(t.Context(), spec.StepName(5, 1), &checkpoint.Manifest{Term: 1, Step: 5})
	if !errors.Is(err, session.ErrSuperseded) {
		t.Errorf("checkpoint: %v", err)
	}
	if found := b.checkpoints(); len(found) > 0 {
		t.Errorf("checkpoints %v", found)
	}
}

// slow are parameters whose parts take long to write.
type slow struct {
	parameters
	meanwhile func()
}

func (s slow) write(context.Context, int64, string) ([]checkpoint.Part, error) {
	s.meanwhile()
	return []checkpoint.Part{{Name: "part", To: 1, Vectors: 1}}, nil
}

// Workers tell a coordinator of an earlier term that it is one, and do not
// leave because it says so.
func TestWorkersObeyNoLowerTerm(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	type greeted struct {
		conn *wire.Conn
		done chan<- bool
	}
	came := make(chan greeted)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer b.cancel()
	serving.Go(func() {
		credentials.Serve(b.ctx, b.options.Workers, func(c *wire.Conn, _ wire.Hello) {
			done := make(chan bool)
			select {
			case came <- greeted{c, done}:
				<-done
			case <-b.ctx.Done():
			}
		}, func(error) {})
	})
	ended := make(chan error, 1)
	serving.Go(func() { ended <- b.work(b.ctx, 0) })
	meet := func(term int64, say wire.Type, head any) (heard int64) {
		g := <-came
		m, err := g.conn.Receive(time.Minute)
		for errors.Is(err, io.EOF) { // it went over to the Unix socket
			close(g.done)
			g = <-came
			m, err = g.conn.Receive(time.Minute)
		}
		defer close(g.done)
		c := g.conn
		var beat wire.Heartbeat
		if err == nil {
			err = m.Decode(&beat)
		}
		if err == nil {
			err = c.Send(say, head, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		first := beat.Term
		for beat.Term != term && err == nil { // until it has heard, or gone
			if m, err = c.Receive(time.Minute); err == nil {
				err = m.Decode(&beat)
			}
		}
		return first
	}
	if heard := meet(7, wire.TypeApplied, wire.Applied{Term: 7}); heard != 0 {
		t.Errorf("a new worker has heard of term %d", heard)
	}
	// The next one has the same address.
	if heard := meet(6, wire.TypeLeave, wire.Leave{Term: 6}); heard != 7 {
		t.Errorf("heard of term %d", heard)
	}
	select {
	case err := <-ended:
		t.Fatalf("the worker left: %v", err)
	default:
	}
	meet(8, wire.TypeLeave, wire.Leave{Term: 8})
	if err := <-ended; !errors.As(err, new(wire.Leave)) {
		t.Error(err)
	}
}

// What a coordinator has begun to write of the finished model may arrive once
// another one has written its own: each has a place of its own, and the newer
// one counts. Those that were followed are removed.
func TestFinishedModelsOfSeveralTerms(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	if st := b.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	ours := b.final()
	m, err := b.options.Checkpoints.Manifest(t.Context(), filepath.Base(ours))
	if err != nil || filepath.Base(ours) != spec.FinalName(m.Term) {
		t.Fatalf("the finished model is %s, of term %d (%v)", ours, m.Term, err)
	}
	late := m
	late.Term, late.Step = m.Term-1, m.Step+5
	if err := b.options.Checkpoints.Finish(t.Context(), spec.FinalName(late.Term), &late); err != nil {
		t.Fatal(err)
	}
	if st := b.again().run(); st.Phase != spec.Succeeded || st.Step != m.Step {
		t.Errorf("status %+v, want step %d", st, m.Step)
	}
	j := judgeOf(b.opened())
	if err := j.removeFinals(t.Context(), filepath.Base(ours)); err != nil {
		t.Fatal(err)
	}
	if got := b.final(); got != ours {
		t.Errorf("%s is left, want %s", got, ours)
	}
}
