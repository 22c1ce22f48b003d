package run

import (
	"maps"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Request is what an apply works on.
type Request struct {
	Plan        *plan.Plan
	Root        *modules.Module      // what the plan was made from: for a plan file, loaded from its own files
	Journal     *state.Journal       // open; the caller closes it
	Ephemeral   map[string]cty.Value // values of the ephemeral variables that the plan names
	Catalogue   providers.Catalogue
	Parallelism int // 0: 10
	Limits      plan.Limits

	Listen   plan.Listener
	Stopping <-chan struct{} // closed: start nothing more
}

// variables returns the variables of the root module: from the plan, and the
// ephemeral ones.
func (r Request) variables() map[string]cty.Value {
	all := maps.Clone(r.Plan.Variables)
	if all == nil {
		all = map[string]cty.Value{}
	}
	for _, name := range r.Plan.Ephemeral {
		if v, ok := r.Ephemeral[name]; ok {
			all[name] = v
		}
	}
	return all
}

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

// Report has the results of a plan.
type Report struct {
	Outcomes                  []Outcome // in the order they ended; skipped ones last
	Added, Changed, Destroyed int
	Imported                  int
	Errors                    bool // an error apart from the outcomes, such as one in an output
}

// Complete reports whether everything was done.
func (r *Report) Complete() bool {
	if r.Errors {
		return false
	}
	for i := range r.Outcomes {
		if r.Outcomes[i].Status != Done {
			return false
		}
	}
	return true
}

// Add adds what became of another plan, applied after this one.
func (r *Report) Add(next *Report) {
	r.Outcomes = append(r.Outcomes, next.Outcomes...)
	r.Added += next.Added
	r.Changed += next.Changed
	r.Destroyed += next.Destroyed
	r.Imported += next.Imported
	r.Errors = r.Errors || next.Errors
}
