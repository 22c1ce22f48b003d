package worker

import (
	"context"
	"crypto/rand"

	"github.com/stokehq/stoke/runtime/wire"
)

// Reducer is a member's way to the other members of an all-reduce, without a worker
// that computes: the benchmark measures the exchange of training with it.
type Reducer struct{ group *group }

// NewReducer returns the reducer of a member. The options have its index, its address,
// its holder, the credentials and the log.
func NewReducer(o Options) *Reducer { return &Reducer{newGroup(o, rand.Text())} }

// Run connects to the members of each term's group, and receives from them until ctx is
// done.
func (r *Reducer) Run(ctx context.Context) error { return r.group.run(ctx) }

// Contribute gives every member its share of a vector, and does not wait for the update.
// sums must stay as they are until the update is made.
func (r *Reducer) Contribute(p wire.Push, sums []float32) error {
	return r.group.contribute(p, spans{{0, sums}}, wire.NewPlace(sums), func(bool) error { return nil })
}
