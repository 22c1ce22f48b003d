package launch

import (
	"context"

	"github.com/stokehq/stoke/runtime/spec"
)

// Bookkeeper is a Launcher whose runs have a ledger of committed records.
type Bookkeeper interface {
	// Ledger returns the records that the run has committed: as its coordinator knows
	// them, or as the newest checkpoint has them; ErrNoLedger where neither can be asked.
	Ledger(ctx context.Context, id string) (spec.Ledger, error)
}

// ErrNoLedger says that no ledger of the run can be read now.
var ErrNoLedger = ledgerError{}

type ledgerError struct{}

func (ledgerError) Error() string { return "no ledger of the run can be read now" }
