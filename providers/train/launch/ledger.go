package launch

import (
	"context"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/spec"
)

// Bookkeeper is a Launcher whose runs have a ledger of committed records.
type Bookkeeper interface {
	// Ledger returns the committed records of the run, from its coordinator or its newest
	// checkpoint; ErrNoLedger without both.
	Ledger(ctx context.Context, id string) (spec.Ledger, error)
}

// ErrNoLedger is the error for a run without a ledger that can be read now.
var ErrNoLedger = ledgerError{}

type ledgerError struct{}

func (ledgerError) Error() string { return "no ledger of the run can be read now" }

// Surveyor is a Launcher that knows the machines of its runs.
type Surveyor interface {
	// Survey returns the machines, and who uses them.
	Survey(ctx context.Context) (providers.RunSurvey, error)
}
