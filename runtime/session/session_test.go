package session

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

const token = "0123456789abcdef0123456789abcdef"

var credentials = wire.Credentials{Token: token}

// tally is a work for tests: the run is over once its members have sent as many
// marks as are wanted.
type tally struct {
	Prompt
	*Session
	want, marks int64
	wake        chan struct{}
	heard       []string // calls of the session, in order
	bad         string   // a member that says so is refused, as its machine's name
	closed      bool
}

func (w *tally) hear(format string, args ...any) {
	w.heard = append(w.heard, fmt.Sprintf(format, args...))
}

func (w *tally) Follow(e spec.Event)   { w.hear("event %s", e.Type) }
func (w *tally) Wake() <-chan struct{} { return w.wake }
func (w *tally) Tick(time.Time)        {}
func (w *tally) Change(next spec.Spec) {
	w.DismissSurplus()
	w.hear("change to %d", next.Worker.Replicas)
}
func (w *tally) Dismissed(m *Member)    { w.hear("dismissed %d", m.Index) }
func (w *tally) Finish(reason error)    { w.hear("finish: %v", reason) }
func (w *tally) Step() int64            { return w.marks }
func (w *tally) Report(s *spec.Status)  { s.Step, s.Saved = w.marks, w.marks }
func (w *tally) Sync() error            { return nil }
func (w *tally) Close()                 { w.closed = true }
func (w *tally) Leave(m *Member) error  { w.hear("leave %d", m.Index); return nil }
func (w *tally) Handle(event any) error { w.hear("handle %v", event); return nil }
func (w *tally) Unable(Inability) (h wire.Leave, err error) {
	return wire.Leave{End: spec.EndError}, nil
}

func (w *tally) Advance(context.Context) (over bool, err error) {
	if reason := w.Reason(); reason != nil {
		return true, reason
	}
	return w.want > 0 && w.marks >= w.want, nil
}

func (w *tally) Join(m *Member) (taken bool, err error) {
	w.hear("join %d", m.Index)
	if w.bad != "" && m.Hello.Machine == w.bad {
		w.GiveUp(m, "it is bad")
		return false, nil
	}
	return true, nil
}

func (w *tally) Decode(m *wire.Message) (any, error) {
	if m.Type != wire.TypeReport {
		return nil, fmt.Errorf("unexpected %s", m.Type)
	}
	var r wire.Report
	err := m.Decode(&r)
	return r.Weight, err
}

func (w *tally) Receive(_ *Member, message any) error {
	w.marks += int64(message.(float64))
	return nil
}

func (w *tally) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/marks", func(rw http.ResponseWriter, r *http.Request) {
		var marks int64
		w.Do(r.Context(), func() { marks = w.marks })
		Answer(rw, marks)
	})
}

// bench is a session in this process.
type bench struct {
	t       testing.TB
	options Options
	logs    *locked
	ctx     context.Context
}

// locked is a buffer that is safe for several loggers.
type locked struct {
	sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.Lock()
	defer l.Unlock()
	return l.text.String()
}

// newBench returns the options of a run of so many members, in a new folder.
func newBench(t testing.TB, members int) *bench {
	t.Helper()
	s := spec.Default()
	s.Model, s.Dataset = "softmax", spec.Dataset{Path: "/nowhere", Hash: "x"}
	s.Worker.Replicas = members
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, logs: new(locked)}
	ctx, cancel := context.WithCancel(context.Background())
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			t.Log(b.logs.String())
		}
	})
	b.options = Options{
		Spec: s, Folder: f, Credentials: credentials, Workers: listen(t), API: listen(t), Log: slog.New(slog.NewTextHandler(b.logs, nil)),
		HearTime: 200 * time.Millisecond,
	}
	return b
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// opened returns a session that is not run.
func (b *bench) opened() *tally {
	b.t.Helper()
	w := &tally{wake: make(chan struct{})}
	s, err := Open(b.options, w)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	w.Session = s
	return w
}

// begin runs a session until it is over.
func (b *bench) begin(w *tally) (ended <-chan spec.Status) {
	b.t.Helper()
	status := make(chan spec.Status, 1)
	stopped := make(chan struct{})
	ctx, cancel := context.WithCancel(b.ctx)
	go func() {
		defer close(stopped)
		status <- w.Run(ctx)
	}()
	b.t.Cleanup(func() { cancel(); <-stopped })
	return status
}

func (b *bench) client() *api.Client {
	c := api.New("http://"+b.options.API.Addr().String(), token, nil)
	b.t.Cleanup(func() { c.Close() })
	return c
}

// guest connects as a process and sends a heartbeat.
func (b *bench) guest(hello wire.Hello) *wire.Conn {
	b.t.Helper()
	hello.Role = "worker"
	c, err := credentials.Dial(b.ctx, b.options.Workers.Addr().String(), hello)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	b.send(c, wire.TypeHeartbeat, wire.Heartbeat{})
	return c
}

func (b *bench) send(c *wire.Conn, t wire.Type, head any) {
	b.t.Helper()
	if err := c.Send(t, head, nil); err != nil {
		b.t.Fatal(err)
	}
}

// dismissed receives until the guest is told to leave.
func (b *bench) dismissed(c *wire.Conn) (how wire.Leave) {
	b.t.Helper()
	for {
		m, err := c.Receive(5 * time.Minute)
		if err != nil {
			b.t.Fatal(err)
		}
		if m.Type == wire.TypeLeave {
			if err := m.Decode(&how); err != nil {
				b.t.Fatal(err)
			}
			return how
		}
	}
}

// until waits until the log has a text so often.
func (b *bench) until(text string, times int) {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Minute); strings.Count(b.logs.String(), text) < times; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("the log has not %q %d times", text, times)
		}
	}
}

// A session keeps a work together that knows neither records nor checkpoints:
// its members, its status, its paths and its end.
func TestWorkOfAnotherKind(t *testing.T) {
	b := newBench(t, 2)
	w := b.opened()
	w.want = 7
	ended := b.begin(w)
	first, second := b.guest(wire.Hello{Index: 0}), b.guest(wire.Hello{Index: 1})
	b.until("worker joined", 2)
	b.send(first, wire.TypeReport, wire.Report{Weight: 3})
	b.send(second, wire.TypeReport, wire.Report{Weight: 2})
	request, err := http.NewRequest(http.MethodGet, "http://"+b.options.API.Addr().String()+"/v1/marks", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	for marks := ""; marks != "5"; time.Sleep(time.Millisecond) {
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		text.ReadFrom(answer.Body)
		answer.Body.Close()
		marks = strings.TrimSpace(text.String())
	}
	if st, err := b.client().Status(t.Context()); err != nil || st.Phase != spec.Running || st.Workers != 2 || st.Wanted != 2 || st.Term != 1 || st.Generation != 2 {
		t.Errorf("status %+v, %v", st, err)
	}
	b.send(first, wire.TypeReport, wire.Report{Weight: 2})
	for _, c := range []*wire.Conn{first, second} {
		if how := b.dismissed(c); how.End != spec.EndOf(spec.Succeeded) || how.Term != 1 {
			t.Errorf("a member is told %+v", how)
		}
		c.Close()
	}
	st := <-ended
	if st.Phase != spec.Succeeded || st.Step != 7 || !w.closed {
		t.Errorf("status %+v, closed %v", st, w.closed)
	}
	want := "join 0, event worker, join 1, event worker, event end"
	if got := strings.Join(w.heard, ", "); got != want && got != strings.NewReplacer("0", "1", "1", "0").Replace(want) {
		t.Errorf("the work heard: %s", got)
	}
	next := b.opened()
	if got := strings.Join(next.heard, ", "); got != "event worker, event worker, event end" {
		t.Errorf("the next coordinator's work heard: %s", got)
	}
}

// A member that breaks its connection leaves; one that the work refuses is never
// one; one of an index that is not needed is told so.
func TestMembersComeAndGo(t *testing.T) {
	b := newBench(t, 2)
	w := b.opened()
	w.bad = "bad"
	b.begin(w)
	first := b.guest(wire.Hello{Index: 0})
	b.until("worker joined", 1)
	refused := b.guest(wire.Hello{Index: 1, Machine: "bad"})
	if how := b.dismissed(refused); how.End != spec.EndGivenUp || how.Reason != "it is bad" {
		t.Errorf("it is told %+v", how)
	}
	surplus := b.guest(wire.Hello{Index: 2})
	if how := b.dismissed(surplus); how.End != spec.EndAsked {
		t.Errorf("it is told %+v", how)
	}
	first.Close()
	b.until("worker left", 1)
	var members, generation int64
	w.Do(t.Context(), func() { members, generation = int64(w.CountWorkers()), w.Generation() })
	if members != 0 || generation != 2 {
		t.Errorf("%d members in generation %d", members, generation)
	}
}

// A member whose protocol is another one is disconnected, and the others stay.
func TestMembersKeepToTheProtocol(t *testing.T) {
	b := newBench(t, 2)
	w := b.opened()
	b.begin(w)
	good, bad := b.guest(wire.Hello{Index: 0}), b.guest(wire.Hello{Index: 1})
	b.until("worker joined", 2)
	b.send(bad, wire.TypePrepare, wire.Prepare{})
	if _, err := bad.Receive(time.Minute); err == nil {
		t.Error("it is still connected")
	}
	b.until("worker left", 1)
	b.send(good, wire.TypeReport, wire.Report{Weight: 1})
	for marks := int64(0); marks != 1; time.Sleep(time.Millisecond) {
		w.Do(t.Context(), func() { marks = w.marks })
	}
}

// Fewer members: those that are not needed are told to leave, after the work has
// taken their tasks back.
func TestScaling(t *testing.T) {
	b := newBench(t, 2)
	w := b.opened()
	ended := b.begin(w)
	first, second := b.guest(wire.Hello{Index: 0}), b.guest(wire.Hello{Index: 1})
	b.until("worker joined", 2)
	one := 1
	if err := b.client().Change(t.Context(), spec.LiveChange{Workers: &one}); err != nil {
		t.Fatal(err)
	}
	if how := b.dismissed(second); how.End != spec.EndAsked {
		t.Errorf("it is told %+v", how)
	}
	second.Close()
	b.until("worker left", 1)
	if err := b.client().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if how := b.dismissed(first); how.End != spec.EndOf(spec.Stopped) {
		t.Errorf("it is told %+v", how)
	}
	first.Close()
	st := <-ended
	if st.Phase != spec.Stopped || st.Cause != spec.CauseRequest || st.Wanted != 1 {
		t.Errorf("status %+v", st)
	}
	heard := strings.Join(w.heard, ", ")
	if !strings.Contains(heard, "event scale, dismissed 1, change to 1") || !strings.Contains(heard, "finish: stopped by request") {
		t.Errorf("the work heard: %s", heard)
	}
	kept, err := b.options.Folder.ReadSpec()
	if err != nil || kept.Worker.Replicas != 1 {
		t.Errorf("%d workers are kept, %v", kept.Worker.Replicas, err)
	}
}

// A coordinator that is asked to leave leaves members and run to the next one,
// which takes a higher term.
func TestLeaving(t *testing.T) {
	b := newBench(t, 1)
	leave := make(chan struct{})
	b.options.Leave = leave
	ended := b.begin(b.opened())
	member := b.guest(wire.Hello{Index: 0})
	b.until("worker joined", 1)
	close(leave)
	if st := <-ended; st.Phase != spec.Pending || st.Term != 1 {
		t.Errorf("status %+v", st)
	}
	for {
		m, err := member.Receive(time.Minute)
		if err != nil {
			break
		}
		if m.Type == wire.TypeLeave {
			t.Error("the member is told to leave")
		}
	}
	b.options.Leave, b.options.Workers, b.options.API = nil, listen(t), listen(t)
	next := b.opened()
	next.want = 1
	again := b.begin(next)
	member = b.guest(wire.Hello{Index: 0})
	b.send(member, wire.TypeReport, wire.Report{Weight: 1})
	b.dismissed(member)
	member.Close()
	if st := <-again; st.Phase != spec.Succeeded || st.Term != 2 || st.Resumed != 0 {
		t.Errorf("status %+v", st)
	}
}

// A coordinator that lingers shows that its loop goes on.
func TestLingeringLives(t *testing.T) {
	b := newBench(t, 1)
	turns := make(chan struct{}, 1)
	over := false
	b.options.Linger, b.options.Ended = time.Hour, func(spec.Status) { over = true }
	b.options.Turn = func() { // the loop's goroutine calls it
		if over {
			select {
			case turns <- struct{}{}:
			default:
			}
		}
	}
	w := b.opened()
	ended := b.begin(w)
	if err := b.client().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-turns
	}
	if err := b.client().Collected(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := <-ended; st.Phase != spec.Stopped {
		t.Errorf("status %+v", st)
	}
}

// A step back is counted from the history, which is written at once: the status
// of a killed coordinator may be older.
func TestStepsBackAreCounted(t *testing.T) {
	b := newBench(t, 1)
	w := b.opened()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		kind spec.EventType
		step int64
	}{{spec.EventRestore, 0}, {spec.EventUpdate, 5}, {spec.EventRestore, 5}, {spec.EventUpdate, 6}, {spec.EventRestore, 2}, {spec.EventRestore, 2}} {
		w.marks = e.step
		w.Note(spec.Event{Type: e.kind})
	}
	if w.resumed != 1 {
		t.Errorf("%d steps back", w.resumed)
	}
	if next := b.opened(); next.resumed != 1 {
		t.Errorf("the next coordinator counts %d steps back", next.resumed)
	}
}

// A call that its caller has given up is never made: the caller may read what the
// function would write.
func TestCallsThatAreGivenUp(t *testing.T) {
	w := newBench(t, 1).opened()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	called := 0
	for range 100 {
		if w.Do(ctx, func() { called++ }) {
			t.Fatal("a loop that does not run has called it")
		}
	}
	for len(w.events) > 0 {
		if err := w.handle(<-w.events); err != nil {
			t.Fatal(err)
		}
	}
	if called > 0 {
		t.Errorf("it was called %d times", called)
	}
}
