package launch

import (
	"context"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/spec"
)

// Bookkeeper is a Launcher whose runs have a ledger of committed records.
type Bookkeeper interface {
	// Ledger returns the committed records of the run, from its coordinator or its newest
	// checkpoint; providers.ErrNoLedger without both.
	Ledger(ctx context.Context, id string) (spec.Ledger, error)
}

// Surveyor is a Launcher that knows the machines of its runs.
type Surveyor interface {
	// Survey returns the machines, and who uses them.
	Survey(ctx context.Context) (providers.RunSurvey, error)
}
