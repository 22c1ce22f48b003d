package worker

import (
	"errors"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// sentReports are the messages that a connection was given.
type sentReports []wire.Report

func (s *sentReports) Send(_ wire.Type, head any, _ []float32) error {
	*s = append(*s, head.(wire.Report))
	return nil
}

func leaseOfTerm3(id int64) *wire.Lease {
	l := &wire.Lease{ID: id}
	l.Term = 3
	return l
}

// Reports whose numbers come later wait for them; the worker's heartbeat sends those before them
// and does not wait.
func TestReportsThatLackNumbers(t *testing.T) {
	var sent sentReports
	var r reports
	loss := 0.5
	come := make(chan struct{})
	r.add(leaseOfTerm3(1), wire.Report{Finite: true}, nil)
	for id, later := range []func() (engine.Result, error){
		func() (engine.Result, error) { <-come; return engine.Result{Weight: 2, Loss: loss, Finite: true}, nil },
		func() (engine.Result, error) { return engine.Result{}, nil },
		func() (engine.Result, error) { return engine.Result{}, errors.New("the device is gone") },
		func() (engine.Result, error) { return engine.Result{}, errors.New("the device is gone") },
	} {
		r.add(leaseOfTerm3(int64(id+2)), wire.Report{Finite: true}, later)
	}
	if err := r.flush(&sent); err != nil {
		t.Fatal(err)
	}
	if got := sent[0]; got.ID != 1 || len(got.Before) > 0 || !r.lacksNumbers() {
		t.Errorf("%+v", got)
	}
	close(come)
	r.complete()
	if err := r.flush(&sent); err != nil || r.lacksNumbers() {
		t.Fatal(err)
	}
	got := sent[1]
	all := append(got.Before, got)
	if len(all) != 4 || all[0].ID != 2 || all[0].Weight != 2 || *all[0].Loss != loss || !all[0].Finite ||
		!all[1].Dropped || all[2].Error == "" || !all[3].Dropped || all[3].ID != 5 {
		t.Errorf("%+v", all)
	}
}
