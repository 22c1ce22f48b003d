package worker

import (
	"context"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// exchange is the worker's way to the parameters: it brings a replica to a
// version, and takes the sums of leases. One goroutine uses it, except for run,
// news and close.
type exchange interface {
	// run receives messages until the context or a connection ends.
	run(ctx context.Context) error
	// news returns a channel that receives when hasArrived may have changed.
	news() <-chan struct{}
	// hasArrived reports whether a version, or the refusal of it, has arrived.
	hasArrived(v loaded) bool
	// request requests a version, unless it was the last request.
	request(v loaded) error
	// pull brings the replica from the version that it has to another one: to
	// just that one if exact, else to that one or a later one. The error
	// about a version that the holders have left is a refusedError.
	pull(ctx context.Context, r engine.Replica, want loaded, exact bool, has *loaded) error
	// reload lets the next pull fill a new replica.
	reload()
	// reserve returns memory for the sums of a lease of a term that contribute sends without a
	// copy; it returns present where that is still free. nil: there is none.
	reserve(term int64, values int, present *wire.Place) *wire.Place
	// letGo lets the parameters go that the replica has borrowed in pull, once a lease is
	// computed: they may change from then on. It reports whether it had borrowed any.
	letGo() bool
	// contribute sends the sums of a lease, and does not wait for the answer. Once
	// it has arrived, then is called with whether the lease was refused: then it
	// is void. A quiet push has no answer, and then is not called. Sums that lie in a place
	// are not copied.
	contribute(p wire.Push, sums spans, in *wire.Place, then func(refused bool) error) error
	// inFlight reports whether an answer to contribute has not arrived.
	inFlight() bool
	close()
}

// loaded is a version of the parameters; term 0: no version.
type loaded struct{ term, version int64 }

// refusedError is the refusal of a version or a contribution that is too late.
type refusedError struct{ why string }

func (e refusedError) Error() string { return "refused: " + e.why }
