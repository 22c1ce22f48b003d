package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/worker"
)

// updates are the valid updates of a run by its ledger; of a run that an earlier
// version began, the first ones are in its events.
func updates(t *testing.T, f run.Folder) (all []ledger.Record) {
	t.Helper()
	log, err := ledger.OpenLog(f.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	end, ok := log.End()
	from := int64(0)
	log.Terms(func(term, at int64) {
		if from == 0 && term > 1 {
			from = at
		}
	})
	if _, valid := events(t, f.Metrics()); ok && len(valid) > 0 && len(valid[0].Taken) > 0 {
		for _, e := range valid[:from] {
			all = append(all, ledger.Record{Step: e.Step, Term: e.Term, Epoch: e.Epoch, Start: e.Taken[0].Start, End: e.Taken[len(e.Taken)-1].End, Skipped: e.Skipped})
		}
	} else {
		from = 0
	}
	for r, err := range log.Records(from, end) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	for i, r := range all {
		if r.Step != int64(i+1) {
			t.Fatalf("update %d follows %d others", r.Step, i)
		}
	}
	return all
}

// applied are the valid updates that a server noted by itself.
func applied(t *testing.T, f run.Folder, server int) []spec.Event {
	t.Helper()
	_, valid := events(t, filepath.Join(accounts(f), fmt.Sprintf("applied-%d.jsonl", server)))
	return valid
}

// checkLedger compares the ledger with what every server noted by itself, and
// both with "every record once per epoch".
func checkLedger(t *testing.T, f run.Folder, s spec.Spec, records int64) {
	t.Helper()
	checkRecords(t, f, s, records)
	told := updates(t, f)
	for i := range s.ParameterServer.Replicas {
		noted := applied(t, f, i)
		if len(noted) != len(told) {
			t.Fatalf("server %d applied %d updates, the ledger has %d", i, len(noted), len(told))
		}
		book := ledger.NewBook(records)
		for k, e := range noted {
			r := told[k]
			if e.Step != r.Step || e.Skipped != r.Skipped || e.Records != r.End-r.Start || e.Taken[0].Start != r.Start || e.Epoch != r.Epoch {
				t.Fatalf("server %d applied %+v, the ledger has %+v", i, e, r)
			}
			if err := book.Commit(e.Taken...); err != nil {
				t.Fatalf("server %d, update %d: %v", i, e.Step, err)
			}
		}
		for epoch := range s.Epochs {
			if !book.IsComplete(epoch) {
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
	book := ledger.NewBook(records)
	for _, r := range updates(t, f) {
		if err := book.Commit(spec.Contribution{Epoch: r.Epoch, Start: r.Start, End: r.End}); err != nil {
			t.Fatalf("update %d: %v", r.Step, err)
		}
	}
	for _, e := range applied(t, f, 0) {
		for _, c := range e.Taken {
			if c.Term < term {
				continue
			}
			a, ok := noted[c]
			order, want := ledger.NewOrder(s.Seed, c.Epoch, records, int64(s.ShuffleBlock)), []int64(nil)
			for p := c.Start; p < c.End; p++ {
				want = append(want, order.RecordAt(p))
			}
			if !ok || a.Records != c.End-c.Start || a.Hash != worker.HashRecords(want) {
				t.Fatalf("update %d has %+v of other records than were read: %v, %+v", e.Step, c, ok, a)
			}
		}
	}
	for epoch := range s.Epochs {
		if !book.IsComplete(epoch) {
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
		"blocks":       func(s *spec.Spec) { s.ShuffleBlock = 20 },
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
