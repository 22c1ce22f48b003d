package packages

import (
	"context"
	"fmt"

	"github.com/stokehq/stoke/providers/metal/host"
)

// tool is the seam between families of distributions: what manages packages on
// one of them. Specs and States, the record and what is refused are the same for
// all. Another tool is another case of toolOf, and another part of observeScript,
// which asks whichever tool there is, in one round trip.
type tool interface {
	foresee(ctx context.Context, m host.Machine, want Spec, have State) (Forecast, error)
	apply(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have State) error
	restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error)
}

// toolOf is the tool of an operating system, by its ID in os-release.
func toolOf(os string) (tool, error) {
	switch os {
	case "debian", "ubuntu":
		return apt{}, nil
	}
	return nil, UnsupportedError{OS: os}
}

// UnsupportedError says that nobody here knows what manages packages on a machine.
type UnsupportedError struct{ OS string }

func (e UnsupportedError) Error() string {
	return fmt.Sprintf("stoke prepares Ubuntu 22.04 and 24.04 and Debian 12 and 13, this is %q: install one of those, or leave packages to whatever manages them there", e.OS)
}

// apt is the tool of Debian and Ubuntu.
type apt struct{}

// Foresee says what Apply would do, in one round trip, or two where something
// has to be told from what stoke itself brought. It changes
// nothing, so that a repository which the machine does not have yet, or lists
// that are older than a version, leave things open: Doubtful and Notes say which,
// and Apply asks again right before it installs. Where apt knows no version of a
// package, all lists are read anew, into a folder that goes again.
func Foresee(ctx context.Context, m host.Machine, want Spec, have State) (Forecast, error) {
	t, err := toolOf(have.OS)
	if err != nil {
		return Forecast{}, err
	}
	return t.foresee(ctx, m, want, have)
}

// Apply brings a machine to what is wanted, in this order: wait for the tool,
// finish what it was cut off in, repositories and settings, lists where they have
// to be read again, everything that is installed and removed in one transaction,
// holds. Before the transaction it is simulated, and what nobody declared is a
// *RefusedError. At the end Apply looks, and what still differs is an error.
//
// What an earlier Apply brought and the Spec no longer declares is taken back.
func Apply(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have State) error {
	t, err := toolOf(have.OS)
	if err != nil {
		return err
	}
	return t.apply(ctx, m, rec, want, have)
}

// Restore takes back what Apply brought: packages that came in are purged, others
// get their versions, holds and marks back, and then files go. What somebody has
// come to need, or changed since, stays, and the outcome says why.
func Restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	var os string
	if known, err := rec.Was(noteOS, &os); !known || err != nil {
		return nil, err // Apply was never here
	}
	t, err := toolOf(os)
	if err != nil {
		return nil, err
	}
	return t.restore(ctx, m, rec)
}
