package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/worker"
)

// checkLedger compares the coordinator's metrics with what every server noted
// by itself, and both with "every record once per epoch".
func checkLedger(t *testing.T, f run.Folder, s spec.Spec, records int64) {
	t.Helper()
	checkRecords(t, f, s, records)
	_, told := events(t, f.Metrics())
	for i := range s.ParameterServer.Replicas {
		_, applied := events(t, f.Applied(i))
		if len(applied) != len(told) {
			t.Fatalf("server %d applied %d updates, the metrics have %d", i, len(applied), len(told))
		}
		book := ledger.NewBook(records)
		for k, e := range applied {
			if diff := cmp.Diff(told[k].Taken, e.Taken); diff != "" || told[k].Step != e.Step || told[k].Skipped != e.Skipped {
				t.Fatalf("server %d, update %d: %s", i, e.Step, diff)
			}
			if e.Step != int64(k+1) {
				t.Fatalf("server %d: update %d follows %d others", i, e.Step, k)
			}
			if err := book.Commit(e.Taken...); err != nil {
				t.Fatalf("server %d, update %d: %v", i, e.Step, err)
			}
		}
		for epoch := range s.Epochs {
			if !book.Whole(epoch) {
				t.Errorf("server %d: epoch %d lacks %v", i, epoch, book.Gaps(epoch))
			}
		}
	}
}

// checkRecords compares the coordinator's metrics with what workers noted of the
// records that they really read: every committed lease was of just the records
// that the epoch's order has there, and every record is in once per epoch.
func checkRecords(t *testing.T, f run.Folder, s spec.Spec, records int64) {
	t.Helper()
	checkRecordsFrom(t, f, s, records, 1)
}

// checkRecordsFrom is checkRecords for a run of whose first terms there are no
// accounts.
func checkRecordsFrom(t *testing.T, f run.Folder, s spec.Spec, records, term int64) {
	t.Helper()
	noted := make(map[spec.Contribution]worker.Account)
	for _, path := range must(filepath.Glob(filepath.Join(accounts(f), "records-*.jsonl"))) {
		for line := range bytes.Lines(must(os.ReadFile(path))) {
			var a worker.Account
			if err := json.Unmarshal(line, &a); err != nil { // torn by a kill
				continue
			}
			noted[a.Contribution] = a
		}
	}
	_, told := events(t, f.Metrics())
	book := ledger.NewBook(records)
	for i, e := range told {
		if e.Step != int64(i+1) {
			t.Fatalf("update %d follows %d others", e.Step, i)
		}
		for _, c := range e.Taken {
			if err := book.Commit(c); err != nil {
				t.Fatalf("update %d: %v", e.Step, err)
			}
			if c.Term < term {
				continue
			}
			a, ok := noted[c]
			order, want := ledger.NewOrder(s.Seed, c.Epoch, records), []int64(nil)
			for p := c.Start; p < c.End; p++ {
				want = append(want, order.At(p))
			}
			if !ok || a.Records != c.End-c.Start || a.Hash != worker.HashRecords(want) {
				t.Fatalf("update %d has %+v of other records than were read: %v, %+v", e.Step, c, ok, a)
			}
		}
	}
	for epoch := range s.Epochs {
		if !book.Whole(epoch) {
			t.Errorf("epoch %d lacks %v", epoch, book.Gaps(epoch))
		}
	}
}

func TestTrainToTheEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*spec.Spec){
		"synchronous":  func(s *spec.Spec) {},
		"two servers":  func(s *spec.Spec) { s.ParameterServer.Replicas = 2 },
		"asynchronous": func(s *spec.Spec) { s.Asynchronous, s.Optimizer.Momentum = true, 0 },
		"checkpoints":  func(s *spec.Spec) { s.Checkpoint.EverySteps, s.Evaluation.EverySteps = 10, 25 },
	}
	for name, set := range tests {
		t.Run(name, func(t *testing.T) {
			s := small()
			set(&s)
			r := launch(t, s)
			r.start()
			st := r.wait()
			if st.Phase != spec.Succeeded {
				r.dump()
				t.Fatalf("status %+v", st)
			}
			if st.Records != 3000 || st.Epoch != 2 || st.Evaluated != st.Step || st.Step != st.Steps {
				t.Errorf("status %+v", st)
			}
			if a := st.Metrics["accuracy"]; a < 0.5 { // ten classes; guessing gives 0.1
				t.Errorf("accuracy %g", a)
			}
			if st.Metrics["samples_per_second"] <= 0 {
				t.Errorf("metrics %v", st.Metrics)
			}
			checkLedger(t, r.folder, s, 1500)
			t.Logf("%v", st.Metrics)
		})
	}
}
