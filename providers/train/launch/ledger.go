package launch

import (
	"context"

	"github.com/stokehq/stoke/runtime/spec"
)

// Bookkeeper is a Launcher whose runs have a ledger of committed records.
type Bookkeeper interface {
	// Ledger returns the committed records of the run, from its coordinator or its newest
	// checkpoint; providers.ErrNoLedger without both.
	Ledger(ctx context.Context, id string) (spec.Ledger, error)
}
