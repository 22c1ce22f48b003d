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

func TestEveryTermIsClaimedOnce(t *testing.T) {
	c := terms(filepath.Join(t.TempDir(), "terms"))
	var mu sync.Mutex
	var all sync.WaitGroup
	taken := make(map[int64]bool)
	for range 20 {
		all.Go(func() {
			term, err := c.claim(7)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || term <= 7 || taken[term] {
				t.Errorf("term %d: %v, taken before: %v", term, err, taken[term])
			}
			taken[term] = true
		})
	}
	all.Wait()
	highest := int64(0)
	for term := range taken {
		highest = max(highest, term)
	}
	for term := range taken {
		if err := c.check(term); (err == nil) != (term == highest) || err != nil && !errors.Is(err, errSuperseded) {
			t.Errorf("check of term %d of %d: %v", term, highest, err)
		}
	}
	if next, err := c.claim(0); err != nil || next != highest+1 {
		t.Errorf("term %d follows %d: %v", next, highest, err)
	}
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
	next.options.Spec.MaxSteps = 150
	st := next.run()
	if st.Phase != spec.Succeeded || st.Step != 150 || st.Term < 2 {
		t.Errorf("the one that followed: %+v", st)
	}
	last := <-old
	if last.Phase != spec.Stopped || last.Cause != spec.CauseSuperseded || last.Term >= st.Term {
		t.Errorf("the one that was followed: %+v", last)
	}
	if text := told.String(); !strings.Contains(text, string(spec.CauseSuperseded)) {
		t.Errorf("the supervisor was told %s", text)
	}
	term, step := int64(0), int64(0)
	for i, e := range b.lines() {
		if e.Number != int64(i+1) || e.Term < term {
			t.Fatalf("event %d: %+v", i, e)
		}
		if e.Term > term && e.Type != spec.EventRestore {
			t.Errorf("term %d begins with %+v", e.Term, e)
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

// What a coordinator has begun to write when another one follows it has no
// effect, however far it had come.
func TestNothingOfAnOldTermIsWritten(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	f := b.options.Folder
	j, err := openJournal(f)
	if err != nil {
		t.Fatal(err)
	}
	c := &coordinator{Options: b.options, journal: j, terms: termsOf(f), members: map[int]*member{}, metrics: map[string]float64{}}
	if err := c.begin(); err != nil || c.term != 1 {
		t.Fatalf("term %d, %v", c.term, err)
	}
	c.note(spec.Event{Type: spec.EventRestore})
	c.publish(spec.Running)
	if err := c.writeStatus(c.status.Load()); err != nil {
		t.Fatal(err)
	}
	before := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	status := before(f.StatusFile())

	follow := func() {
		next := &coordinator{Options: b.options, terms: termsOf(f)}
		if next.journal, err = openJournal(f); err == nil {
			err = next.begin()
		}
		if err != nil || next.term != 2 {
			t.Fatalf("term %d, %v", next.term, err)
		}
		next.note(spec.Event{Type: spec.EventRestore})
	}
	name := spec.StepName(5, 1)
	c.strategy = slow{meanwhile: follow}
	err = c.write(t.Context(), name, &checkpoint.Manifest{Term: 1, Step: 5})
	if !errors.Is(err, errSuperseded) {
		t.Errorf("checkpoint: %v", err)
	}
	if found := b.checkpoints(); len(found) > 0 {
		t.Errorf("checkpoints %v", found)
	}
	metrics := before(f.Metrics())
	c.note(spec.Event{Type: spec.EventUpdate})
	if after := before(f.Metrics()); after != metrics || !strings.Contains(metrics, `"term":2`) {
		t.Errorf("metrics were\n%s and are\n%s", metrics, after)
	}
	c.version = 99
	c.publish(spec.Running)
	if err := c.writeStatus(c.status.Load()); !errors.Is(err, errSuperseded) || before(f.StatusFile()) != status {
		t.Errorf("status was written: %v", err)
	}
	keep := 9
	if err := c.change(spec.LiveChange{CheckpointKeep: &keep}); !errors.Is(err, errSuperseded) {
		t.Errorf("settings were taken by a superseded coordinator: %v", err)
	}
	if err := c.begin(); !errors.Is(err, errSuperseded) {
		t.Errorf("another term was begun: %v", err)
	}
}

// slow is a strategy whose parts take long to write.
type slow struct {
	strategy
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
	j := (&coordinator{Options: b.options, journal: &journal{}}).judge()
	if err := j.removeFinals(t.Context(), filepath.Base(ours)); err != nil {
		t.Fatal(err)
	}
	if got := b.final(); got != ours {
		t.Errorf("%s is left, want %s", got, ours)
	}
}
