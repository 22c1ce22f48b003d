package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
	"github.com/stokehq/stoke/runtime/workload"
)

const token = "0123456789abcdef0123456789abcdef"

var credentials = wire.Credentials{Token: token}

// points are records (x0, x1) whose class is x0 > x1, in memory.
type points struct{ n int64 }

func (p points) Info() dataset.Info {
	return dataset.Info{Records: p.n, Type: model.U8, Shape: []int{2}, Classes: 2}
}

func (p points) Read(_ context.Context, records []int64, features, labels []byte) error {
	for i, r := range records {
		x, y := byte(r*37), byte(r*101+13)
		features[2*i], features[2*i+1] = x, y
		labels[4*i] = 0
		if x > y {
			labels[4*i] = 1
		}
	}
	return nil
}

func (p points) Close() error { return nil }

func (p points) Prefetch(int64, int64) {}

// linear is an engine for the tests: logistic regression on points, padded
// with size more parameters that cost nothing to compute.
type linear struct {
	size  int
	spoil func(records []int64) bool  // these records' loss is not a number
	gate  <-chan struct{}             // every step waits for it; nil: none does
	fails func(records []int64) error // of a step, which may panic as well; nil: none does
	built func(engine.Options)        // hears of every replica; nil: nobody does
}

func (l linear) Build(_ *model.Model, o engine.Options) (engine.Replica, error) {
	if l.built != nil {
		l.built(o)
	}
	return &line{linear: l, micro: o.MicroBatch, w: make([]float32, 6+l.size), sums: make([]float32, 6+l.size)}, nil
}

type line struct {
	linear
	micro   int
	w, sums []float32
	total   engine.Result
}

// staged is a batch that is nowhere but here.
type staged struct{ *engine.Batch }

func (staged) Release() {}

func (l *line) Layout() ([]model.Var, []model.Table) { return nil, nil }
func (l *line) Needs(*engine.Batch) [][]int64        { return nil }
func (l *line) Get(_, offset int, v []float32) error { copy(v, l.w[offset:]); return nil }
func (l *line) Put(_, offset int, v []float32) error { copy(l.w[offset:], v); return nil }
func (l *line) Fork() (engine.Replica, error)        { return nil, fmt.Errorf("not needed") }
func (l *line) Close() error                         { return nil }
func (l *line) MicroBatches() int                    { return 1 }
func (l *line) Stage(_ context.Context, b *engine.Batch, _ []model.Rows) (engine.Staged, error) {
	own := *b
	own.Records, own.Weights = slices.Clone(b.Records), slices.Clone(b.Weights)
	own.Inputs = slices.Clone(b.Inputs)
	for i := range own.Inputs {
		own.Inputs[i].Data = slices.Clone(b.Inputs[i].Data)
	}
	return staged{&own}, nil
}

func (l *line) Step(_ context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	if l.gate != nil {
		<-l.gate
	}
	if l.fails != nil {
		if err := l.fails(s.(staged).Records); err != nil {
			return engine.Result{}, err
		}
	}
	if p.First {
		clear(l.sums[:3])
	}
	r := l.pass(s, p, l.sums)
	if p.Last {
		p.Ready(0, l.sums)
	}
	return r, nil
}

func (l *line) Evaluate(_ context.Context, s engine.Staged, p engine.Pass, _ []float32) (engine.Result, error) {
	return l.pass(s, p, nil), nil
}

// pass adds a micro-batch to the pass and returns the result with its last.
func (l *line) pass(s engine.Staged, p engine.Pass, sums []float32) engine.Result {
	if p.First {
		l.total = engine.Result{Metrics: []float64{0}, Finite: true}
	}
	l.add(s.(staged).Batch, &l.total, sums)
	if !p.Last {
		return engine.Result{}
	}
	return l.total
}

func (l *line) add(b *engine.Batch, r *engine.Result, sums []float32) {
	if len(b.Weights) != l.micro {
		panic("another micro-batch than was built for")
	}
	for i, weight := range b.Weights {
		if weight == 0 {
			continue
		}
		x, y := float32(b.Inputs[0].Data[2*i])/255, float32(b.Inputs[0].Data[2*i+1])/255
		label := float64(b.Inputs[1].Data[4*i])
		p := 1 / (1 + math.Exp(-float64(l.w[0]*x+l.w[1]*y+l.w[2])))
		r.Weight++
		r.Loss -= label*math.Log(p) + (1-label)*math.Log(1-p)
		if (p > 0.5) == (label == 1) {
			r.Metrics[0]++
		}
		if sums != nil {
			g := float32(p - label)
			sums[0], sums[1], sums[2] = sums[0]+g*x, sums[1]+g*y, sums[2]+g
		}
	}
	if sums != nil && l.spoil != nil && l.spoil(b.Records) {
		r.Loss, r.Finite = math.NaN(), false
	}
}

// bench is a run in this process.
type bench struct {
	t            testing.TB
	options      Options
	engine       engine.Engine
	servers      sync.WaitGroup
	coordinators sync.WaitGroup // that were left where they are
	ps           []*ps.Server
	applied      []*bytes.Buffer
	cancel       context.CancelFunc
	ctx          context.Context
	logs         *locked
	stream       bool                            // servers have no access to checkpoints
	astray       *checkpoint.Place               // where servers look for checkpoints instead; nil: they look in the right place
	tapped       *tap                            // hears what servers receive and send; nil: nobody does
	delay        time.Duration                   // of what servers send
	wrap         func(net.Listener) net.Listener // of a server; nil: as it is
	spaced       int                             // updates between two disturbances; 0: 2
	wrapMember   func(net.Listener) net.Listener // of a member of an all-reduce; nil: as it is
	members      chan ps.Member                  // gets each member; nil: they are not wanted
}

// locked is a buffer that is safe for many loggers.
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

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// newBench starts the servers of a run on points; its folder is new.
func newBench(t testing.TB, s spec.Spec, e linear) *bench {
	t.Helper()
	b := unserved(t, s, e)
	b.serve()
	return b
}

// unserved is newBench without servers.
func unserved(t testing.TB, s spec.Spec, e linear) *bench {
	t.Helper()
	s.Model, s.Dataset = "softmax", spec.Dataset{Path: "/nowhere", Hash: "x"}
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, engine: e, logs: new(locked)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(b.logs, nil))
	network := &model.Model{ // its first three parameters are the linear engine's
		Name: "points", Input: model.Features{Type: model.U8, Shape: []int{2 + e.size/2}}, Classes: 2, Metrics: []string{model.Accuracy},
		Layers: []model.Layer{{Name: "w", Op: model.Dense, Units: 2}}, Loss: model.SoftmaxCrossEntropy,
	}
	vars, _, err := network.Layout()
	if err != nil {
		t.Fatal(err)
	}
	b.options = Options{
		Options:       session.Options{Spec: s, Folder: f, Credentials: credentials, Workers: listen(t), API: listen(t), Log: log},
		PlacePatience: 300 * time.Millisecond, Checkpoints: checkpoint.Folder(f.Checkpoints()),
		Workload: &workload.Workload{Model: network, Vars: vars, Train: points{600}, Test: points{130}},
	}
	return b
}

// place is where the bench's servers find checkpoints.
func (b *bench) place() *checkpoint.Place {
	if b.stream || b.astray != nil {
		return b.astray
	}
	return b.options.Checkpoints
}

// serve starts the run's servers.
func (b *bench) serve() {
	b.options.Servers = nil
	for i := range b.options.Spec.ParameterServer.Replicas {
		l := listen(b.t)
		if b.delay > 0 {
			l = &distant{l, b.delay}
		}
		if b.wrap != nil {
			l = b.wrap(l)
		}
		if b.tapped != nil {
			l = &tapped{l, b.tapped}
		}
		b.options.Servers = append(b.options.Servers, l.Addr().String())
		b.applied = append(b.applied, new(bytes.Buffer))
		server := ps.New(i, b.options.Credentials, b.place(), b.applied[i], b.options.Log)
		b.ps = append(b.ps, server)
		b.servers.Go(func() {
			if err := server.Serve(b.ctx, l); err != nil {
				b.t.Error(err)
			}
		})
	}
	b.t.Cleanup(func() {
		b.cancel()
		b.coordinators.Wait()
		b.servers.Wait()
		if b.t.Failed() {
			b.t.Log(b.logs.String())
		}
	})
}

// work runs one worker until it is told to leave or ctx is done.
func (b *bench) work(ctx context.Context, index int) error {
	o := worker.Options{
		Spec: b.options.Spec, Index: index, Credentials: b.options.Credentials, Coordinator: b.options.Workers.Addr().String(),
		Servers: b.options.Servers, Workload: b.options.Workload, Engine: b.engine, Log: b.options.Log,
	}
	if o.Spec.Strategy == spec.StrategyAllReduce {
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		served := b.hold(serving, &o)
		defer func() { stop(); <-served }()
	}
	return worker.Run(ctx, o)
}

// hold serves a worker's own parameters until ctx is done.
func (b *bench) hold(ctx context.Context, o *worker.Options) (served chan struct{}) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Error(err)
		return nil
	}
	server := ps.New(o.Index, b.options.Credentials, b.place(), nil, b.options.Log)
	o.Holder, o.Address = ps.Member{Server: server}, l.Addr().String()
	if b.members != nil {
		b.members <- ps.Member{Server: server}
	}
	if b.wrapMember != nil {
		l = b.wrapMember(l)
	}
	if b.tapped != nil {
		l = &tapped{l, b.tapped}
	}
	served = make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(ctx, l); err != nil {
			b.t.Error(err)
		}
	}()
	return served
}

// run trains with the spec's workers to the end.
func (b *bench) run() spec.Status {
	b.t.Helper()
	var workers sync.WaitGroup
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Minute)
	defer cancel()
	for i := range b.options.Spec.Worker.Replicas {
		workers.Go(func() { b.work(ctx, i) }) // a worker whose run has ended may see that as an error
	}
	st, err := Run(ctx, b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	cancel()
	workers.Wait()
	return st
}

// opened returns the bench's coordinator, which is not run.
func (b *bench) opened() *coordinator {
	b.t.Helper()
	c, err := open(b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.close() })
	return c
}

func pointsSpec() spec.Spec {
	s := spec.Default()
	s.Epochs, s.BatchSize, s.MicroBatch, s.LearningRate = 3, 50, 8, 2
	return s
}

func TestResultDoesNotDependOnWorkersOrServers(t *testing.T) {
	for name, tt := range map[string]struct {
		batch, micro, epochs int
		steps                int64
	}{
		"leases of one micro-batch": {50, 8, 3, 36},
		"leases of several":         {250, 1, 20, 60}, // of 4, so that there are more than the window takes
	} {
		t.Run(name, func(t *testing.T) {
			s := pointsSpec()
			s.BatchSize, s.MicroBatch, s.Epochs = tt.batch, tt.micro, tt.epochs
			sameForAllShapes(t, s, tt.steps, 1e-4)
			s.Deterministic = true
			sameForAllShapes(t, s, tt.steps, 0) // exactly: sums are made in a fixed order
		})
	}
}

// sameForAllShapes fails where the results of other workers and servers differ by more than
// a fraction.
func sameForAllShapes(t *testing.T, s spec.Spec, steps int64, fraction float64) {
	t.Helper()
	var want map[string]float64
	for _, shape := range []struct{ workers, servers int }{{1, 1}, {3, 1}, {3, 2}, {2, 3}} {
		s.Worker.Replicas, s.ParameterServer.Replicas = shape.workers, shape.servers
		st := newBench(t, s, linear{}).run()
		if st.Phase != spec.Succeeded || st.Records != 600*int64(s.Epochs) || st.Step != steps || st.Epoch != s.Epochs {
			t.Fatalf("%+v: status %+v", shape, st)
		}
		got := map[string]float64{"loss": st.Metrics["loss"], "accuracy": st.Metrics["accuracy"], "last": float64(st.Loss)}
		if want == nil {
			want = got
			if got["accuracy"] < 0.9 {
				t.Errorf("accuracy %g", got["accuracy"])
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(fraction, 0)); diff != "" {
			t.Errorf("%+v: %s", shape, diff)
		}
	}
}

func TestNonFiniteUpdatesAreSkipped(t *testing.T) {
	for strategy, servers := range map[string]int{spec.StrategyParameterServer: 2, spec.StrategyAllReduce: 0} {
		t.Run(strategy, func(t *testing.T) { skipNonFinite(t, strategy, servers) })
	}
}

func skipNonFinite(t *testing.T, strategy string, servers int) {
	s := pointsSpec()
	s.Strategy, s.ParameterServer.Replicas, s.Worker.Replicas = strategy, servers, 2
	has := func(records []int64) bool {
		for _, r := range records {
			if r == 7 {
				return true
			}
		}
		return false
	}
	st := newBench(t, s, linear{spoil: has}).run()
	if st.Phase != spec.Succeeded || st.Skipped != 3 || st.Records != 1800 {
		t.Errorf("one bad record in 3 epochs: %+v", st)
	}
	st = newBench(t, s, linear{spoil: func([]int64) bool { return true }}).run()
	if st.Phase != spec.Failed || !strings.Contains(st.Message, "learning rate") || st.Step != maxSkips {
		t.Errorf("all records bad: %+v", st)
	}
}

func TestMaxStepsAndDeadline(t *testing.T) {
	s := pointsSpec()
	s.MaxSteps, s.Evaluation.EverySteps = 10, 4
	b := newBench(t, s, linear{})
	st := b.run()
	if st.Phase != spec.Succeeded || st.Step != 10 || st.Steps != 10 || st.Evaluated != 10 {
		t.Errorf("status %+v", st)
	}
	for _, step := range []int{4, 8, 10} {
		if !strings.Contains(b.logs.String(), fmt.Sprintf(`msg=evaluated step=%d metrics="map[accuracy:0.`, step)) {
			t.Errorf("no evaluation of step %d in the log", step)
		}
	}
	s = pointsSpec()
	s.Deadline = spec.Duration(time.Nanosecond)
	b = newBench(t, s, linear{})
	if st := b.run(); st.Phase != spec.Stopped || st.Cause != spec.CauseDeadline || !strings.Contains(st.Message, "deadline") {
		t.Errorf("status %+v", st)
	}
}

// BenchmarkUpdate measures what an update costs beside its computing: 110,000
// parameters, one micro-batch for each of two workers, all in one process.
func BenchmarkUpdate(b *testing.B) {
	for _, strategy := range []string{spec.StrategyParameterServer, spec.StrategyAllReduce} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", strategy, workers), func(b *testing.B) {
				s := pointsSpec()
				s.Worker.Replicas, s.BatchSize, s.MicroBatch, s.LearningRate = workers, workers, 1, 1e-6
				if s.Strategy = strategy; strategy == spec.StrategyAllReduce {
					s.ParameterServer.Replicas = 0
				}
				s.MaxSteps = max(2, b.N)
				s.Epochs = s.MaxSteps
				run := newBench(b, s, linear{size: 110_000})
				b.ResetTimer()
				st := run.run()
				b.ReportMetric(1e6*st.Metrics["training_seconds"]/float64(st.Step), "µs/update")
			})
		}
	}
}
