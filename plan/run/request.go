package run

import (
	"time"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
)

// Status is how one operation ended.
type Status uint8

const (
	Done Status = iota
	Failed
	Skipped     // not started because something it needs failed; Because names it
	Interrupted // not started because of Ctrl-C
)

// Outcome is one row of the table that ends every apply.
type Outcome struct {
	Addr    address.Instance
	Deposed string
	Action  plan.Action // Create, Update, Delete or Read
	Status  Status
	Because string // for Failed the error's summary, for Skipped the address that failed
	Elapsed time.Duration
}

// Report is what became of a plan.
type Report struct {
	Outcomes                  []Outcome // in the order they ended; skipped ones last
	Added, Changed, Destroyed int
	// Outputs as they are in the state now, by name, are read from the state.
}
