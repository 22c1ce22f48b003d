package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// parameters is where the parameters lie: its methods ask their holders. It does
// not know when updates are made.
//
// The methods with a context wait for answers: one of them at a time is called
// beside the loop (see coordinator.begin), and while it runs, the loop calls
// watch and discard only. Where the parameters are no longer usable, the error
// is errLost: the run then restores a state.
type parameters interface {
	// connect waits until all holders of parameters answer. It keeps connections
	// that are usable.
	connect(ctx context.Context) error
	// askHeld returns the state of all holders. From then on no coordinator of a
	// lower term changes it.
	askHeld(ctx context.Context, term int64) ([]wire.Holding, error)
	// attachable decides whether the run can go on from what the holders hold. The
	// ledger, which ends at step end, must have all updates, except those that a holder
	// remembers. terms are the terms that may have made them.
	attachable(held []wire.Holding, terms []int64, end int64) (attachment, bool)
	// attach begins a term with the parameters of an attachment. The cut has no
	// parts: holders that lack parameters are laid out by it.
	attach(ctx context.Context, at point, from attachment, c restoreSource) error
	// restore begins a term with the parameters of the cut. An
	// error about files that cannot be used is of type damaged.
	restore(ctx context.Context, c restoreSource) error
	// flush makes the contributions of leases void at once.
	flush(ctx context.Context, at point, void []int64) error
	// commit makes the updates part of the parameters, one after the other, on all
	// holders or on none, and returns the outcome of each. An update with a value
	// that is not finite is skipped, and those that follow it are not made. The
	// version is then so many higher. Where the contribution of a lease did not
	// arrive, nothing is done: the error is a notCome. There are several updates
	// only where commitBeforeReports allows it.
	commit(ctx context.Context, all []proposal) ([]outcome, error)
	// hold keeps the present parameters for write, which saves them as parts of
	// the checkpoint while training goes on.
	hold(ctx context.Context, at point) error
	// write may be called during all other methods.
	write(ctx context.Context, term int64, checkpoint string) ([]checkpoint.Part, error)

	// reportBeforePush reports whether workers may report a lease before its push
	// has arrived: the holder then waits for it when it commits.
	reportBeforePush() bool
	// commitBeforeReports reports whether an update may be proposed before all of its
	// reports have come: the holders then wait for its contributions, and skip it
	// where one of them is not finite.
	commitBeforeReports() bool
	// enter and leave take note of the workers that are members. leave reports
	// whether a call that is under way cannot succeed without the worker.
	enter(m *session.Member)
	leave(m *session.Member) (needed bool)
	// serves reports whether a worker can get the parameters.
	serves(m *session.Member) bool
	// awaitMore waits for a holder with the newest parameters, among so many workers.
	// It reports whether to look again; if not, the run restores a checkpoint.
	awaitMore(ctx context.Context, workers int) bool
	// newcomers lets the wanted workers catch up with the holders, for which the cut has its
	// point and recipe. It returns those that have caught up, or cannot, and are to become
	// holders; with urgent, all of them.
	newcomers(ctx context.Context, c restoreSource, wanted []*session.Member, urgent bool) []string
	// names returns the holders for people.
	names() string
	// lossReason returns why the parameters are no longer usable, or "". watch signals
	// that lost may have changed. drop declares them unusable until connect.
	lossReason() string
	watch() <-chan struct{}
	drop(why error)
	close()
}

// point is a state of the parameters: every term has its own history.
type point struct{ term, version int64 }

// restoreSource is the source of the parameters for a restore: a checkpoint's parts, or
// the initial values if there are none.
type restoreSource struct {
	point
	checkpoint string
	parts      []checkpoint.Part
	recipe     optimizer.Recipe
	initial    func() ([]float32, error) // of the whole vector
	values     []float32                 // the same, once they are computed
}

// proposal is an update that is to be committed.
type proposal struct {
	point
	ids      []int64  // of the leases that computed it
	sessions []string // of the workers that computed them
	taken    []spec.Contribution
	weight   float64 // of its records
	finite   bool    // all its losses and sums, as workers report
	recipe   optimizer.Recipe
	void     []int64 // leases that were taken back, for the holders to forget
	named    bool    // some of it is being computed: the holders wait for that
}

// propose returns the proposal of an update whose units are all computed, or being
// computed.
func propose(u *update, at point, recipe optimizer.Recipe) proposal {
	p := proposal{point: at, recipe: recipe, finite: true}
	for _, t := range u.units {
		p.taken = append(p.taken, t.Contribution)
		if t.report == nil {
			p.ids, p.sessions = append(p.ids, t.lease.id), append(p.sessions, t.lease.member.Hello.Session)
			p.weight += float64(t.End - t.Start)
			p.named = true
			continue
		}
		p.ids, p.sessions = append(p.ids, t.id), append(p.sessions, t.session)
		p.weight += t.report.Weight
		p.finite = p.finite && t.pushes()
	}
	return p
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

// damagedError is an error about a checkpoint's parts.
type damagedError struct{ error }
