package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
)

// left runs a coordinator until the run has so many more updates, and leaves it
// where it is, as a process that hangs: the next one takes its place. It reports
// whether the run has ended before.
func (b *bench) left(updates int) (ended bool) {
	b.t.Helper()
	o := b.options
	o.Workers, o.API, o.HearTime = listen(b.t), listen(b.t), 10*time.Millisecond // its members have gone, and do not come back
	done := make(chan spec.Status, 1)
	from := b.seen("update")
	b.coordinators.Go(func() {
		st, err := Run(b.ctx, o)
		if err != nil {
			b.t.Error(err)
		}
		done <- st
	})
	ctx, cancel := context.WithCancel(b.ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for i := range o.Spec.Worker.Replicas {
		workers.Go(func() {
			worker.Run(ctx, worker.Options{ //nolint:errcheck // it is stopped, or its run ends
				Spec: o.Spec, Index: i, Credentials: o.Credentials, Coordinator: o.Workers.Addr().String(),
				Servers: o.Servers, Workload: o.Workload, Engine: b.engine, Log: o.Log,
			})
		})
	}
	for b.seen("update") < from+updates {
		select {
		case st := <-done:
			if st.Cause == spec.CauseSuperseded { // by the one before it, which began another term meanwhile
				return false
			}
			if st.Phase != spec.Succeeded {
				b.t.Fatalf("status %+v", st)
			}
			return true
		case <-time.After(time.Millisecond):
		}
	}
	return false
}

// noted are the updates that a server applied, by its own account.
func (b *bench) noted(server int) (all []spec.Event) {
	b.t.Helper()
	for line := range bytes.Lines(b.applied[server].Bytes()) {
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// TestAttach takes the coordinator away again and again: each next one goes on
// from what the servers hold. No update is made twice, and the result is that of
// an undisturbed run, to the bit.
func TestAttach(t *testing.T) {
	for _, shape := range []struct {
		servers      int
		asynchronous bool
		optimizer    string
	}{{1, false, "sgd"}, {3, false, "sgd"}, {2, true, "sgd"}, {2, false, "adam"}} {
		t.Run(fmt.Sprintf("%d servers, asynchronous %v, %s", shape.servers, shape.asynchronous, shape.optimizer), func(t *testing.T) {
			t.Parallel()
			s := pointsSpec()
			s.Epochs, s.Worker.Replicas, s.ParameterServer.Replicas, s.Asynchronous = 10, 2, shape.servers, shape.asynchronous
			s.Checkpoint.EverySteps = 17
			s.Deterministic = !shape.asynchronous
			if shape.asynchronous {
				s.LearningRate = 0.1
			}
			if s.Optimizer.Name = shape.optimizer; shape.optimizer != spec.OptimizerSGD {
				s.LearningRate, s.Schedule = 0.05, spec.Schedule{Name: spec.ScheduleLinear, WarmupEpochs: 1.5}
			}
			want := newBench(t, s, linear{}).run()
			b := newBench(t, s, linear{})
			kills := 0
			for !b.left(1) {
				kills++
			}
			if kills < 5 {
				t.Errorf("only %d kills", kills)
			}
			var st spec.Status
			for i := range shape.servers {
				step, restored := int64(0), 0
				for _, e := range b.noted(i) {
					switch {
					case e.Type == spec.EventRestore:
						restored++
					case e.Step != step+1:
						t.Fatalf("server %d: update %d follows %d", i, e.Step, step)
					default:
						step = e.Step
					}
				}
				if restored != 1 || step != want.Step {
					t.Errorf("server %d was restored %d times and made %d updates, want %d", i, restored, step, want.Step)
				}
			}
			if err := readStatus(b, &st); err != nil || st.Resumed != 0 || st.Records != want.Records || st.Skipped != want.Skipped {
				t.Errorf("status %+v, %v", st, err)
			}
			if !shape.asynchronous {
				for _, name := range []string{"loss", "accuracy"} {
					if st.Metrics[name] != want.Metrics[name] {
						t.Errorf("%s is %v, undisturbed %v", name, st.Metrics[name], want.Metrics[name])
					}
				}
			}
		})
	}
}

func readStatus(b *bench, to *spec.Status) (err error) {
	*to, err = b.options.Folder.Status()
	return err
}

// TestFindAttachment has servers that hold what can be gone on from, and what
// cannot.
func TestFindAttachment(t *testing.T) {
	made := &wire.Apply{Version: 6}
	taken := []spec.Contribution{{Start: 10, End: 20}, {Start: 0, End: 10}}
	at := func(term, version int64, i int) wire.Holding {
		from, to := span(10, i, 2)
		return wire.Holding{Term: term, Version: version, From: from, To: to, Decision: made, Taken: taken}
	}
	prepared := at(3, 6, 1)
	prepared.Prepared = true
	other := at(3, 7, 1)
	other.From++
	bare := at(3, 7, 1)
	bare.Decision, bare.Taken = nil, nil
	for name, tt := range map[string]struct {
		held  []wire.Holding
		terms []int64
		end   int64
		want  int64 // version; -1: it cannot be gone on from
		redo  bool
		last  bool
	}{
		"all at the ledger's end":       {[]wire.Holding{at(3, 7, 0), at(3, 7, 1)}, []int64{3}, 7, 7, false, false},
		"the ledger lacks the last one": {[]wire.Holding{at(3, 7, 0), at(3, 7, 1)}, []int64{3}, 6, 7, false, true},
		"the ledger lacks two":          {[]wire.Holding{at(3, 7, 0), at(3, 7, 1)}, []int64{3}, 5, -1, false, false},
		"the ledger has more":           {[]wire.Holding{at(3, 7, 0), at(3, 7, 1)}, []int64{3}, 8, -1, false, false},
		"one has only prepared":         {[]wire.Holding{at(3, 7, 0), prepared}, []int64{3}, 6, 7, true, true},
		"one has not even prepared":     {[]wire.Holding{at(3, 7, 0), at(3, 6, 1)}, []int64{3}, 6, -1, false, false},
		"one is empty":                  {[]wire.Holding{at(3, 7, 0), at(0, 0, 1)}, []int64{3}, 7, -1, false, false},
		"attached on one server only":   {[]wire.Holding{at(3, 7, 0), at(2, 7, 1)}, []int64{3, 2}, 7, 7, false, false},
		"and not on one that is behind": {[]wire.Holding{at(4, 7, 0), prepared}, []int64{4, 3}, 6, 7, true, true},
		"one of another term":           {[]wire.Holding{at(3, 7, 0), at(2, 7, 1)}, []int64{3}, 7, -1, false, false},
		"another term":                  {[]wire.Holding{at(2, 7, 0), at(2, 7, 1)}, []int64{3}, 7, -1, false, false},
		"a term without an update":      {[]wire.Holding{at(2, 7, 0), at(2, 7, 1)}, []int64{3, 2}, 7, 7, false, false},
		"another span":                  {[]wire.Holding{at(3, 7, 0), other}, []int64{3}, 7, -1, false, false},
		"restored, no update since":     {[]wire.Holding{bare, bare}, []int64{3}, 7, -1, false, false},
		"none":                          {nil, []int64{3}, 7, -1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, ok := findAttachment(slices.Clone(tt.held), 10, tt.terms, tt.end)
			if ok != (tt.want >= 0) || ok && (a.version != tt.want || (a.redo != nil) != tt.redo || (len(a.lacking) > 0) != tt.last) {
				t.Errorf("%v, %+v", ok, a)
			}
			if ok && len(a.lacking) > 0 {
				if r := a.lacking[0]; len(a.lacking) > 1 || r.Start != 0 || r.End != 20 {
					t.Errorf("record %+v", r)
				}
			}
		})
	}
	first := bare
	first.From, first.To = span(10, 0, 2)
	if diff := cmp.Diff(first.To, bare.From); diff != "" {
		t.Fatal(diff)
	}
	if _, ok := findAttachment([]wire.Holding{first, bare}, 10, []int64{3}, 7); !ok {
		t.Error("what was restored and not changed since is not gone on from")
	}
}

// TestAttachWithoutTheLedger has a ledger that cannot be read: the run goes back
// to its checkpoint, and says so.
func TestAttachWithoutTheLedger(t *testing.T) {
	s := pointsSpec()
	s.Epochs, s.Checkpoint.EverySteps, s.Checkpoint.Keep = 40, 20, 100
	b := unserved(t, s, linear{})
	b.delay = 2 * time.Millisecond // so that it is left long before its end
	b.serve()
	if b.left(24) {
		t.Fatal("it has ended")
	}
	for _, later := range b.checkpoints() { // a busy machine may leave it late
		if m, err := b.options.Checkpoints.Manifest(t.Context(), later); err == nil && m.Step > 20 {
			if err := b.options.Checkpoints.Remove(t.Context(), later); err != nil {
				t.Fatal(err)
			}
		}
	}
	spoilLedger(t, b)
	for !b.left(100) {
	}
	st, err := b.options.Folder.Status()
	if err != nil || st.Phase != spec.Running && st.Phase != spec.Succeeded || st.Resumed != 1 || st.Records != 24000 {
		t.Errorf("status %+v, %v", st, err)
	}
	if b.seen("damage") != 1 {
		t.Error("nothing tells that the ledger is damaged")
	}
}

// spoilLedger clears what the run's last checkpoint lacks.
func spoilLedger(t *testing.T, b *bench) {
	t.Helper()
	for _, path := range must(filepath.Glob(filepath.Join(b.options.Folder.Ledger(), "*"))) {
		data := must(os.ReadFile(path))
		clear(data[len(data)/2:])
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
