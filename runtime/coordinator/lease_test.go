package coordinator

import (
	"bytes"
	"encoding/json"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// A server holds parameters, slots, what an update is applied to while they are
// read, and the blocks of an update, of which there are two for each worker: at
// any batch size, also while checkpoints are written.
func TestServersMemoryDoesNotGrowWithTheBatch(t *testing.T) {
	const workers = 3
	peak := func(optimizer string, slots, batch, checkpoints int, deterministic bool) {
		s := pointsSpec()
		s.BatchSize, s.MicroBatch, s.MaxSteps, s.Epochs = batch, 8, 4, 1000
		if s.Optimizer.Name, s.Worker.Replicas = optimizer, workers; optimizer == spec.OptimizerSGD {
			s.Optimizer.Momentum = 0.5
		}
		s.LearningRate, s.Checkpoint.EverySteps, s.Deterministic = 0.1, checkpoints, deterministic
		b := newBench(t, s, linear{size: 1000})
		b.options.Workload.Train = points{1 << 17}
		if st := b.run(); st.Phase != spec.Succeeded || st.Step != 4 || st.Records != int64(4*batch) {
			t.Fatalf("batch %d: status %+v", batch, st)
		}
		n := b.ps[0].Vectors() // buffers are never given back: this is the most there were
		if most := 2*(1+slots) + mostBlocks(workers); n > most {
			t.Errorf("%s, batch %d, checkpoints every %d, deterministic %v: %d vectors, want at most %d",
				optimizer, batch, checkpoints, deterministic, n, most)
		}
	}
	for _, checkpoints := range []int{0, 1} {
		for _, batch := range []int{1024, 65536} {
			peak(spec.OptimizerSGD, 1, batch, checkpoints, false)
			peak(spec.OptimizerSGD, 1, batch, checkpoints, true)
		}
		peak(spec.OptimizerAdam, 2, 1024, checkpoints, true)
	}
}

// The number of leases follows from the specification and the training set, not
// from the workers. A batch that the training set has is cut as it always was.
func TestLeasesFollowFromTheSpecification(t *testing.T) {
	const all = 1 << 25
	for _, tt := range []struct{ batch, micro, records, want int }{
		{64, 32, all, 32}, {1024, 32, all, 32}, {2048, 32, all, 32}, {2049, 32, all, 64}, {65536, 32, all, 1024}, {50, 8, all, 8}, {7, 7, all, 7}, {1 << 24, 1, all, 1 << 18},
		{65536, 32, 65536, 1024}, {65536, 32, 65535, 1024}, {65536, 32, 32768, 512}, {65536, 32, 600, 32}, {1 << 24, 1, 130, 3}, {1 << 24, 1, 7, 1}, {32, 32, 1, 32}, {32, 32, 0, 32},
	} {
		s := pointsSpec()
		s.BatchSize, s.MicroBatch = tt.batch, tt.micro
		for _, workers := range []int{1, 5, 1000} {
			if s.Worker.Replicas = workers; s.LeaseRecords(int64(tt.records)) != tt.want {
				t.Errorf("batch %d of %d: %d records: leases of %d, want %d", tt.batch, tt.micro, tt.records, s.LeaseRecords(int64(tt.records)), tt.want)
			}
		}
	}
}

// A batch above the training set leaves no worker without a lease.
func TestBatchAboveTheTrainingSetIsShared(t *testing.T) {
	s := pointsSpec()
	s.BatchSize, s.Epochs, s.LearningRate, s.Worker.Replicas, s.Worker.MinReplicas = 1<<20, 2, 0.1, 3, 3
	b := newBench(t, s, linear{})
	if st := b.run(); st.Phase != spec.Succeeded || st.Step != 2 || st.Records != 1200 {
		t.Fatalf("status %+v", st)
	}
	updates := 0
	for line := range bytes.Lines(b.applied[0].Bytes()) {
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == spec.EventUpdate {
			updates++
			if n := len(e.Taken); n != mostBlocks(3) { // of 38 leases
				t.Errorf("an update of 600 records is made of %d blocks", n)
			}
		}
	}
	if updates != 2 {
		t.Errorf("the server applied %d updates", updates)
	}
}

// dial connects as a worker without working.
func (b *bench) dial(index int) *wire.Conn {
	b.t.Helper()
	c, err := credentials.Dial(b.ctx, b.options.Workers.Addr().String(), wire.Hello{Role: "worker", Index: index})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c
}

// A worker that lives and makes no progress loses its lease to another one.
func TestExpiredLeaseGoesToAnotherWorker(t *testing.T) {
	s := pointsSpec()
	s.Worker.Replicas = 2
	b := newBench(t, s, linear{})
	b.options.LeaseTimeout = 2 * time.Second
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		hung := b.dial(0)
		working := false
		for hung.Send(wire.TypeHeartbeat, wire.Heartbeat{Lease: 1, Done: 1}, nil) == nil {
			// The other one comes once this one holds a lease.
			if m, err := hung.Receive(time.Second); err == nil && m.Type == wire.TypeLease && !working {
				working = true
				all.Go(func() { b.work(b.ctx, 1) })
			}
		}
	})
	st, err := Run(b.ctx, b.options)
	if err != nil || st.Phase != spec.Succeeded || st.Records != 1800 {
		t.Errorf("status %+v, %v", st, err)
	}
	if !strings.Contains(b.logs.String(), "worker makes no progress") {
		t.Error("the lease did not expire")
	}
}

// Workers that are left share the cores of those that have gone.
func TestThreadsFollowTheNumberOfWorkers(t *testing.T) {
	for gpus, want := range map[int]map[int]int{0: {2: 4, 8: 1}, 1: {2: 4}} { // a replica on a GPU stays
		if built := builtWhileWorkersLeave(t, gpus); !maps.Equal(built, want) {
			t.Errorf("with %d GPUs, replicas by threads: %v, want %v", gpus, built, want)
		}
	}
}

// builtWhileWorkersLeave returns the number of replicas by threads in a run of four
// workers, of which three leave.
func builtWhileWorkersLeave(t *testing.T, gpus int) map[int]int {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	var mu sync.Mutex
	built := make(map[int]int) // threads of replicas
	s := pointsSpec()
	s.Epochs, s.Worker.Replicas, s.Worker.GPUs = 1<<40, 4, gpus
	b := newBench(t, s, linear{built: func(o engine.Options) {
		mu.Lock()
		defer mu.Unlock()
		built[o.Threads]++
	}})
	stop := make(chan struct{})
	b.options.Stop = stop
	go func() {
		defer close(stop)
		api := api.New("http://"+b.options.API.Addr().String(), token, nil)
		defer api.Close()
		for b.seen("update") < 5 {
			time.Sleep(time.Millisecond)
		}
		if err := api.Change(b.ctx, spec.LiveChange{Workers: new(1)}); err != nil {
			t.Error(err)
		}
		for from := b.seen("update"); b.seen("update") < from+20; {
			time.Sleep(time.Millisecond)
		}
	}()
	if st := b.run(); st.Phase != spec.Stopped {
		t.Fatalf("status %+v", st)
	}
	return built
}

// The time that a lease may take is counted from the last progress, and gets
// longer with every lease of the same records that expired.
func TestProgressExtendsALease(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	c := b.opened()
	c.LeaseTimeout = time.Minute
	m := b.enlist(c, 0)
	u := &update{}
	c.updates = []*update{u}
	part := &unit{update: u}
	hold := func(since time.Duration) *lease {
		l := &lease{id: 7, unit: part, member: m, given: time.Now().Add(-since)}
		part.lease, m.leases[7], c.leases[7] = l, l, l
		return l
	}
	progress := func(done int64) { m.Beat(&wire.Heartbeat{Lease: 7, Done: done}) }
	l := hold(10 * time.Minute)
	progress(1)
	if c.Tick(time.Now()); part.lease != l {
		t.Fatal("a lease that makes progress was taken back")
	}
	l.given = time.Now().Add(-10 * time.Minute)
	progress(1) // alive, but no further
	if c.Tick(time.Now()); part.lease != nil || part.overdue != 1 || part.setback.tried != nil {
		t.Fatalf("a lease without progress was kept: %+v", part)
	}
	hold(90 * time.Second)
	if c.Tick(time.Now()); part.lease == nil {
		t.Error("the second lease of the same records has no more time")
	}
}
