package providers

import (
	"context"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Catalogue maps provider source addresses, in full such as
// "registry.terraform.io/stokehq/train", to linked-in providers.
type Catalogue map[string]Entry

// Entry is one linked-in provider.
type Entry struct {
	// New returns a fresh, unconfigured value: one per phase and configuration.
	New func() (Provider, error)
	// Version is what `stoke version` and the lock file show.
	Version string
	// Review, when not nil, sees all planned instances once, after planning, for
	// checks that need the whole. It is called if the provider has one of them,
	// even if the plan has errors, so that the user sees all faults at once.
	Review func(ctx context.Context, r Review) ([]Note, Diagnostics)
	// Begin, when not nil, gets the planned instances of this provider, before any
	// of them is applied: by then another process may have planned and reviewed
	// them.
	Begin func(ctx context.Context, planned []PlannedInstance)
	// Functions are what configurations call as provider::LOCAL_NAME::FUNCTION.
	// They depend only on their arguments, so that no provider has to be started
	// or configured for them.
	Functions map[string]function.Function
	// Runs, when not nil, finds the runs behind objects of the provider.
	Runs Runs
	// Limits are the provider's own; the zero value is none.
	Limits Limits
}

// Review is what a provider reviews.
type Review struct {
	// Planned are the instances of all linked-in providers. Sensitive values of
	// other providers' instances are unknown.
	Planned []PlannedInstance
	// Others are addresses of managed instances of all other providers that the
	// plan makes or changes: this provider does not know the results.
	Others []string
	// Configured are the provider's own values, as Entry.New made them, one for
	// each configuration that was needed to plan.
	Configured []Provider
}

// PlannedInstance is one instance as the plan leaves it. Planned is null when
// it is destroyed; of an instance that the provider rejected it is the proposed
// object: computed values may be null.
type PlannedInstance struct {
	Address string
	Source  string // of its provider, as in the Catalogue
	Type    string
	Prior   cty.Value
	Planned cty.Value
}
