package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// strategy is how what the workers compute becomes updates of the parameters:
// which units may be computed now, which update commits next, and where the
// parameters lie. Membership, queue, book, journal and API know none of its
// kinds. It is used by loop only, but for write.
//
// Where the parameters are not what they should be any more, its errors are
// errLost: all goes back to one checkpoint.
type strategy interface {
	// now offers the units that can be computed with the present version, in
	// the order in which they are wanted; ahead offers those whose records may
	// be read before their version is there. open are the open updates, the
	// oldest first.
	now(open []*update) offer
	ahead(open []*update) offer
	// left is how many units could be handed out before the next commit.
	left(open []*update) int
	// current reports whether whoever has a lease on a part of u has all that
	// it needs to compute it.
	current(u *update, open []*update) bool
	// exact leases are computed with just the version that they name, others
	// with that or a later one.
	exact() bool
	// whole is the open update that is to be committed next; nil: none yet.
	whole(open []*update) *update
	// early reports whether workers may report before their contributions are
	// where they belong.
	early() bool
	// awaits reports whether the worker waits for this update's commit.
	awaits(u *update, worker int) bool

	// connect waits until everything is there that holds parameters, or ctx is
	// done.
	connect(ctx context.Context) error
	// askHeld returns the state of all holders of parameters. From then on no coordinator
	// of a lower term changes it. attach begins a term at that version; redo is the
	// newest update, for holders that have only prepared it.
	askHeld(term int64) ([]wire.Holding, error)
	attach(at point, held int64, redo *wire.Apply) error
	// restore begins a term in which the parameters are those of the cut.
	// Files that cannot be used are an error of type damaged.
	restore(ctx context.Context, c cut) error
	// lost says why the parameters are; "": they are not. watch tells when it
	// may have changed, drop makes it so until connect.
	lost() string
	watch() <-chan struct{}
	drop(why error)
	// discard makes the contributions of leases void that were taken back, with
	// the next request at the latest; flush does so at once.
	discard(leases ...int64)
	flush(at point) error
	// commit makes the update part of the parameters, everywhere or nowhere;
	// where something of it is not finite it is skipped. The version is then
	// one higher. norm is that of the mean gradient. Where the contribution of a
	// lease did not come, nothing is done: the error is a notCome.
	commit(at point, u *update, r engine.Recipe) (norm float64, applied bool, err error)
	// hold keeps the present parameters for write, which saves them as parts of
	// the checkpoint while training goes on.
	hold(at point) error
	write(ctx context.Context, term int64, checkpoint string) ([]checkpoint.Part, error)
	close()
}

// offer is some units, and whether another update may be opened where none of
// them is left.
type offer struct {
	units []*unit
	more  bool
}

// point is a state of the parameters: every term has its own history.
type point struct{ term, version int64 }

// cut is what the parameters are to be restored to: a checkpoint's parts, or
// where there are none the initial values.
type cut struct {
	point
	checkpoint string
	parts      []checkpoint.Part
	recipe     engine.Recipe
	initial    func() ([]float32, error) // of the whole vector
}

// errLost means that the parameters are not where they should be: they go back
// to one checkpoint.
var errLost = errors.New("parameters lost")

// notCome is about a lease whose contribution did not come, though it was
// reported.
type notCome struct{ lease int64 }

func (n notCome) Error() string {
	return fmt.Sprintf("the contribution of lease %d did not come", n.lease)
}

// damaged is an error about a checkpoint's parts.
type damaged struct{ error }

// newStrategy is the one place that knows which strategies there are. hung
// hears of a server that does not answer.
func newStrategy(o Options, hung func(server int)) strategy {
	s := newServers(o, hung)
	if o.Spec.Asynchronous {
		return &asynchronous{parameterServers{servers: s}}
	}
	return &synchronous{parameterServers{servers: s, exactly: true}}
}
