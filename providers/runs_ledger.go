package providers

import (
	"context"
	"errors"
	"time"
)

// ErrNoLedger is the error for a run without a ledger that can be read now.
var ErrNoLedger = errors.New("no ledger of the run can be read now")

// RunAccountant is a Run with a ledger of the records that it has committed.
type RunAccountant interface {
	// Ledger returns the ledger as it is now; ErrNoLedger where there is none.
	Ledger(ctx context.Context) (RunLedger, error)
}

// RunLedger has the committed records of a run: all records of the first Whole epochs,
// and parts of the next epochs.
type RunLedger struct {
	Records int64 // in the training set
	Step    int64 // that the ledger is of
	Whole   int
	Parts   []RunEpoch
	// Leases of the newest updates, by worker. First is the step of the first of Updates
	// updates.
	Leases         []RunLeases
	First, Updates int64
}

// RunEpoch is the committed part of an epoch.
type RunEpoch struct {
	Epoch     int
	Committed int64 // records
	Ranges    int   // without a gap
}

// Committed returns the number of records that were committed over all epochs.
func (l *RunLedger) Committed() int64 {
	sum := int64(l.Whole) * l.Records
	for _, p := range l.Parts {
		sum += p.Committed
	}
	return sum
}

// RunLeases are leases that one worker has pushed.
type RunLeases struct {
	Worker  int
	Leases  int64
	Records int64
	Again   int64 // leases that another worker had before
}

// RunChange is the newest change of a run's arguments.
type RunChange struct {
	At     time.Time `json:"at"`
	Class  string    `json:"class"` // live, resume or new run, as plans say
	Fields []string  `json:"fields"`
}
