package rendezvous

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// bench is a run of a program whose agents are connections of the test.
type bench struct {
	t       *testing.T
	options Options
	outcome chan spec.Status
	leave   chan struct{}
}

// newBench returns a run that has not begun. Times are short, except those that a
// test is about.
func newBench(t *testing.T, workers, least, servers int) *bench {
	t.Helper()
	s := spec.DefaultProgram()
	s.Name, s.Program.Command = "test", `["train"]`
	s.Worker.Replicas, s.Worker.MinReplicas, s.ParameterServer.Replicas = workers, least, servers
	s.Program.JoinTimeout = spec.Duration(time.Hour)
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	token, err := f.ReadToken()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, options: Options{
		Options: session.Options{
			Spec: s, Folder: f, Credentials: wire.Credentials{Token: token, Version: "test"},
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)), HearTime: time.Second,
		},
		SettleTime: time.Millisecond,
	}}
}

// begin starts the coordinator. A later call is about the next one.
func (b *bench) begin() {
	b.t.Helper()
	for _, to := range []*net.Listener{&b.options.Workers, &b.options.API} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.t.Fatal(err)
		}
		*to = l
	}
	b.leave, b.outcome = make(chan struct{}), make(chan spec.Status, 1)
	o, outcome := b.options, b.outcome
	o.Leave = b.leave
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		st, err := Run(ctx, o)
		if err != nil {
			b.t.Error(err)
		}
		outcome <- st
	}()
	b.t.Cleanup(func() { cancel(); <-ended })
}

func (b *bench) client() *api.Client {
	c := api.New("http://"+b.options.API.Addr().String(), b.options.Credentials.Token, nil)
	b.t.Cleanup(c.Close)
	return c
}

// guest is an agent that the test plays.
type guest struct {
	*bench
	hello wire.Hello
	conn  *wire.Conn
}

func (b *bench) guest(role string, index int) *guest {
	b.t.Helper()
	g := &guest{bench: b, hello: wire.Hello{Role: role, Index: index, Instance: rand.Text()}}
	g.connect()
	return g
}

// connect connects, for the first time or again.
func (g *guest) connect() {
	g.t.Helper()
	var err error
	if g.conn, err = g.options.Credentials.Dial(g.t.Context(), g.options.Workers.Addr().String(), g.hello); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { g.conn.Close() })
	g.send(wire.TypeHeartbeat, wire.Heartbeat{})
	go func(c *wire.Conn) { // as long as the connection
		for c.Send(wire.TypeHeartbeat, wire.Heartbeat{}, nil) == nil {
			time.Sleep(time.Second)
		}
	}(g.conn)
}

func (g *guest) send(t wire.Type, head any) {
	g.t.Helper()
	if err := g.conn.Send(t, head, nil); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guest) ready(began int, checkpoints ...string) {
	g.t.Helper()
	port := 1000*(1+g.hello.Index) + len(g.hello.Role)
	g.send(wire.TypeReady, wire.Ready{Began: began, Address: "10.0.0.1", Port: port, Ports: []int{port + 1}, Checkpoints: checkpoints})
}

// receive returns the next message of a type, and fails on another one.
func receive[T any](g *guest, of wire.Type) (v T) {
	g.t.Helper()
	m, err := g.conn.Receive(5 * time.Minute)
	if err == nil && m.Type != of {
		err = errors.New("it is " + m.Type.String())
	}
	if err == nil {
		err = m.Decode(&v)
	}
	if err != nil {
		g.t.Fatalf("%s-%d waits for %s: %v", g.hello.Role, g.hello.Index, of, err)
	}
	return v
}

// start waits for the begin of a generation, and reports that its ranks run.
func (g *guest) start() wire.Begin {
	g.t.Helper()
	b := receive[wire.Begin](g, wire.TypeBegin)
	g.send(wire.TypeRunning, wire.Running{Begin: b})
	return b
}

// end reports how the ranks of a generation ended, and that the agent is ready.
func (g *guest) end(b wire.Begin, cause program.Cause, text string, checkpoints ...string) {
	g.t.Helper()
	g.send(wire.TypeResult, wire.Result{Begin: b, Cause: string(cause), Text: text, At: time.Now(), Last: []string{"its last line"}})
	g.ready(b.Generation, checkpoints...)
}

// over waits for the run's end.
func (b *bench) over(guests ...*guest) spec.Status {
	b.t.Helper()
	for _, g := range guests {
		receive[wire.Leave](g, wire.TypeLeave)
		g.conn.Close()
	}
	select {
	case st := <-b.outcome:
		return st
	case <-time.After(5 * time.Minute):
		b.t.Fatal("the run does not end")
	}
	return spec.Status{}
}

// An error of the program's own ends the run once it has happened more often than it
// may. The run names the rank and its last lines.
func TestFailedAfterRestarts(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, 1, 0)
	b.options.Spec.Program.MaxRestarts = 2
	b.begin()
	g := b.guest(wire.RoleWorker, 0)
	g.ready(0)
	for restarts := range 3 {
		begin := g.start()
		if begin.Restarts != restarts || begin.Generation != restarts+1 {
			t.Errorf("generation %+v after %d restarts", begin, restarts)
		}
		g.end(begin, program.Failed, "rank 0 ended with 3")
	}
	st := b.over(g)
	if st.Phase != spec.Failed || st.Reason != spec.ReasonProgram || st.Message != "rank 0 ended with 3 on worker-0, after 2 restarts" ||
		!strings.Contains(st.Log, "its last line") {
		t.Errorf("status %+v", st)
	}
}

// Ranks that are killed from outside are not the program's error. Too many of them
// in a row, without progress, stop the run.
func TestKillsStopTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, 1, 0)
	b.options.Spec.Program.MaxRestarts = 0
	b.begin()
	g := b.guest(wire.RoleWorker, 0)
	g.ready(0)
	kill := func() {
		begin := g.start()
		g.end(begin, program.Killed, "rank 0 was killed (SIGKILL)")
	}
	kill()
	kill()
	begin := g.start()
	g.send(wire.TypeObserved, wire.Observed{Generation: 3, Points: []wire.Point{{Step: 7, Values: map[string]float64{"loss": 0.5}}}})
	g.end(begin, program.Killed, "rank 0 was killed (SIGKILL)") // after progress: it is the first one
	for range maxLosses - 1 {
		kill()
	}
	st := b.over(g)
	if st.Phase != spec.Stopped || st.Cause != spec.CauseRestarts || !strings.Contains(st.Message, "5 generations in a row") || st.Metrics["restarts"] != 0 {
		t.Errorf("status %+v", st)
	}
}

// A run waits join_timeout for the workers beyond min_replicas. One that comes later
// is taken in after a checkpoint.
func TestLateWorkerWaitsForACheckpoint(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 1, 0)
	b.options.Spec.Program.JoinTimeout = spec.Duration(10 * time.Millisecond)
	b.begin()
	first := b.guest(wire.RoleWorker, 0)
	first.ready(0)
	begin := first.start()
	if begin.World != 1 || begin.Groups != 1 {
		t.Errorf("it begins with %+v", begin)
	}
	second := b.guest(wire.RoleWorker, 1)
	second.ready(0)
	for announced := false; !announced; {
		st, err := b.client().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		announced = strings.Contains(st.Message, "1 workers become 2 after the next checkpoint")
	}
	first.send(wire.TypeObserved, wire.Observed{Generation: 1, Checkpoints: []wire.Checkpoint{{Name: "a", Step: 3}}})
	if h := receive[wire.Halt](first, wire.TypeHalt); h.Generation != 1 || h.Reason != "1 workers become 2" {
		t.Errorf("halted by %+v", h)
	}
	second.ready(0, "a") // it sees the checkpoint, too
	first.end(begin, program.Stopped, "stopped", "a")
	begin, other := first.start(), second.start()
	if begin.World != 2 || begin.Resume != "a" || other.Rank != 1 || other.Port != begin.Port || begin.Restarts != 0 {
		t.Errorf("it goes on with %+v, %+v", begin, other)
	}
	first.end(begin, program.Succeeded, "")
	second.end(other, program.Succeeded, "")
	if st := b.over(first, second); st.Phase != spec.Succeeded || st.Saved != 3 {
		t.Errorf("status %+v", st)
	}
}

// A connection that is lost and comes back costs nothing, whichever messages have
// crossed. An agent that does not come back is lost.
func TestConnections(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 2, 0)
	b.options.LostTime = 10 * time.Second
	b.begin()
	first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
	first.ready(0)
	second.ready(0)
	begin := receive[wire.Begin](first, wire.TypeBegin)
	first.ready(0) // from before it heard of the generation
	first.send(wire.TypeRunning, wire.Running{Begin: begin})
	other := second.start()
	second.conn.Close()
	second.connect()
	second.send(wire.TypeRunning, wire.Running{Begin: other})
	time.Sleep(b.options.LostTime + time.Second) // would be too late for a lost one
	second.conn.Close()
	if h := receive[wire.Halt](first, wire.TypeHalt); h.Reason != "worker-1 is lost" {
		t.Errorf("halted by %+v", h)
	}
	first.end(begin, program.Stopped, "stopped")
	second.connect()
	second.send(wire.TypeRunning, wire.Running{Begin: other}) // its ranks run, in a generation that is over
	if h := receive[wire.Halt](second, wire.TypeHalt); h.Generation != 1 {
		t.Errorf("halted by %+v", h)
	}
	second.end(other, program.Stopped, "stopped")
	if a, b := first.start(), second.start(); a.Generation != 2 || b.Generation != 2 {
		t.Errorf("generations %d and %d", a.Generation, b.Generation)
	}
}

// The message that begins a generation may be lost with its connection.
func TestBeginIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 2, 0)
	b.begin()
	first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
	first.ready(0)
	second.ready(0)
	begin := first.start()
	second.conn.Close()
	second.connect()
	second.ready(0)
	receive[wire.Halt](first, wire.TypeHalt)
	first.end(begin, program.Stopped, "stopped")
	if a, b := first.start(), second.start(); a.Generation != 2 || b.Generation != 2 {
		t.Errorf("generations %d and %d", a.Generation, b.Generation)
	}
}

// A coordinator that is started again goes on with the generation that its agents
// run, or that has ended meanwhile, also where it has lost its folder.
func TestNextCoordinator(t *testing.T) {
	t.Parallel()
	for name, loseFolder := range map[string]bool{"with its folder": false, "without its folder": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, 2, 0)
			b.begin()
			first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
			first.ready(0)
			second.ready(0)
			begin, other := first.start(), second.start()
			close(b.leave)
			first.conn.Close()
			second.conn.Close()
			if st := <-b.outcome; st.Phase != spec.Pending {
				t.Fatalf("the first coordinator ends with %+v", st)
			}
			if loseFolder {
				b.options.Folder = run.Folder(filepath.Join(t.TempDir(), "run"))
				if err := b.options.Folder.Create(b.options.Spec); err != nil {
					t.Fatal(err)
				}
			}
			b.begin()
			first.connect()
			first.send(wire.TypeRunning, wire.Running{Begin: begin})
			second.connect()
			second.end(other, program.Succeeded, "") // it has ended without a coordinator
			first.end(begin, program.Succeeded, "")
			if st := b.over(first, second); st.Phase != spec.Succeeded {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// The chief decides about the end: the others, such as servers that never end by
// themselves, are ended then, whatever they end with.
func TestChiefDecides(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 2, 1)
	b.options.Spec.Program.Framework, b.options.Spec.Program.Chief = spec.FrameworkTensorFlow, true
	b.begin()
	chief, worker, server := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1), b.guest(wire.RoleServer, 0)
	chief.ready(0)
	worker.ready(0)
	server.ready(0)
	begins := []wire.Begin{chief.start(), worker.start(), server.start()}
	for i, role := range []string{program.Chief, program.Worker, program.Server} {
		if begins[i].Role != role || begins[i].Task != 0 || begins[i].Rank != i {
			t.Errorf("%s is %+v", role, begins[i])
		}
	}
	chief.end(begins[0], program.Succeeded, "")
	for i, g := range []*guest{worker, server} {
		receive[wire.Halt](g, wire.TypeHalt)
		g.end(begins[i+1], program.Failed, "ended with 143")
	}
	if st := b.over(chief, worker, server); st.Phase != spec.Succeeded {
		t.Errorf("status %+v", st)
	}
}

// A rank that is killed makes others fail. That is not the program's error, in which
// order ever the ends are reported.
func TestKilledRankIsTheCause(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, 2, 0)
	b.options.Spec.Program.MaxRestarts = 0
	b.begin()
	first, second := b.guest(wire.RoleWorker, 0), b.guest(wire.RoleWorker, 1)
	first.ready(0)
	second.ready(0)
	begin, other := first.start(), second.start()
	first.end(begin, program.Failed, "rank 0 ended with 1")
	receive[wire.Halt](second, wire.TypeHalt)
	second.end(other, program.Killed, "rank 1 was killed (SIGKILL)")
	if b := first.start(); b.Generation != 2 || b.Restarts != 0 {
		t.Errorf("it goes on with %+v", b)
	}
}

// A stop ends the ranks with their time of grace, and the run only then.
func TestStopEndsTheRanksFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, 1, 0)
	b.begin()
	g := b.guest(wire.RoleWorker, 0)
	g.ready(0)
	begin := g.start()
	if err := b.client().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	receive[wire.Halt](g, wire.TypeHalt)
	if st, err := b.client().Status(t.Context()); err != nil || st.Phase != spec.Running {
		t.Errorf("status %+v, %v", st, err)
	}
	g.end(begin, program.Stopped, "stopped")
	if st := b.over(g); st.Phase != spec.Stopped || st.Cause != spec.CauseRequest {
		t.Errorf("status %+v", st)
	}
}

// The checkpoint that a generation begins with is the newest one that all workers
// see.
func TestCheckpointsInCommon(t *testing.T) {
	t.Parallel()
	see := func(names ...string) *agent { return &agent{ready: &wire.Ready{Checkpoints: names}} }
	for _, tt := range []struct {
		workers []*agent
		want    string
	}{
		{[]*agent{see("a", "b", "c"), see("a", "b")}, "b"},
		{[]*agent{see(), see("a", "b")}, ""},
		{[]*agent{see("a"), see("a")}, "a"},
		{[]*agent{see("b", "a")}, "a"},
	} {
		if got := commonCheckpoint(tt.workers); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// The API sends the code of the run, and nothing else.
func TestCodeIsSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, 1, 0)
	hash := strings.Repeat("ab", 32)
	b.options.Spec.Program.Code = hash
	if err := run.WriteFile(b.options.Folder.Code(hash), []byte("the archive")); err != nil {
		t.Fatal(err)
	}
	b.begin()
	body, err := b.client().Code(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil || string(text) != "the archive" {
		t.Errorf("%q, %v", text, err)
	}
	body.Close()
	for _, other := range []string{strings.Repeat("ab", 16), "../token", "abababababababab"} {
		if body, err := b.client().Code(t.Context(), other); err == nil {
			body.Close()
			t.Errorf("%q is sent", other)
		}
	}
}
