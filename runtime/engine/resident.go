package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/optimizer"
)

// Resident is a replica whose parameters and optimizer slots stay on the device: a worker
// computes contributions with it, and the holder of the parameters, in a goroutine of its
// own, makes the updates there. It keeps the numbers of the contributions whose sums are on the device.
type Resident struct {
	Updater

	mu      sync.Mutex // of the replica and all below
	of      [2]int64   // term and version that the sums belong to
	whole   bool       // the sums are of ids and of no other contribution, and a pass is under way
	ids     []int64
	results []Result // of these contributions
	spoiled bool     // no update may be made of the sums
	failed  bool     // the device makes no updates
}

// NewResident makes the replica resident. Put gives it the parameters.
func NewResident(u Updater) *Resident { return &Resident{Updater: u} }

// Put implements Replica.
func (r *Resident) Put(vector, offset int, v []float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Updater.Put(vector, offset, v)
}

// Get implements Replica.
func (r *Resident) Get(vector, offset int, v []float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Updater.Get(vector, offset, v)
}

// Step implements Replica. The sums on the device are void until Keep.
func (r *Resident) Step(ctx context.Context, s Staged, p Pass) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole = false
	return r.Updater.Step(ctx, s, p)
}

// Evaluate implements Replica. The sums on the device are void.
func (r *Resident) Evaluate(ctx context.Context, s Staged, p Pass, out []float32) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole = false
	return r.Updater.Evaluate(ctx, s, p, out)
}

// Update implements Updater.
func (r *Resident) Update(sums []float32, weight float64, recipe optimizer.Recipe) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Updater.Update(sums, weight, recipe)
}

// Fork implements Replica.
func (r *Resident) Fork() (Replica, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Updater.Fork()
}

// Close implements Replica.
func (r *Resident) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Updater.Close()
}

// Begin begins a contribution to the update of a version. It reports whether the first
// Step begins a pass: it does not where the sums on the device are of earlier
// contributions to the same update. All Steps have Pass.Keep. A contribution that ends
// before its first Step leaves the sums as they are.
func (r *Resident) Begin(term, version int64) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := [2]int64{term, version}; !r.whole || r.of != at {
		r.of, r.ids, r.results, r.whole, r.spoiled, first = at, nil, nil, false, false, true
	}
	return first
}

// Keep ends a contribution with the result of its last Step: its sums are on the device.
func (r *Resident) Keep(id int64, result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole, r.ids, r.results = true, append(r.ids, id), append(r.results, result)
}

// Spoil makes the sums on the device ones that no update may be made of, until a pass
// begins: the loss of a contribution is not finite, though its gradients may be.
func (r *Resident) Spoil() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoiled = true
}

// Sums returns the sum of the squares of the sums on the device; ok is false unless they are
// the sums of just these contributions to the update of a version.
func (r *Resident) Sums(term, version int64, ids []int64) (s Squares, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	want, has := slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(r.ids))
	return Squares{r.results, r.spoiled}, r.whole && r.of == [2]int64{term, version} && slices.Equal(want, has)
}

// Squares is the sum of the squares of sums on the device.
type Squares struct {
	results []Result // of the contributions
	spoiled bool
}

// IsKnown reports whether Wait returns at once.
func (s Squares) IsKnown() bool {
	return !slices.ContainsFunc(s.results, func(r Result) bool { return r.Later != nil })
}

// Wait returns the sum, which is not a number where no update may be made of the sums.
func (s Squares) Wait() (sum float64, err error) {
	finite := !s.spoiled
	for _, r := range s.results {
		if r.Later != nil {
			if r, err = r.Later(); err != nil {
				return math.NaN(), err
			}
			finite = finite && r.Finite
		}
		sum = r.Squares
	}
	if !finite {
		return math.NaN(), nil
	}
	return sum, nil
}

// Commit makes the update of a version from the sums on the device. slots are the
// optimizer's slots, where the device does not have them. After an error the parameters
// are as before, and Fails reports true from then on.
func (r *Resident) Commit(term, version int64, weight float64, recipe optimizer.Recipe, slots [][]float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.commit(weight, recipe, slots)
	r.of, r.ids, r.results = [2]int64{term, version + 1}, nil, nil
	r.whole, r.failed = err == nil, err != nil
	return err
}

func (r *Resident) commit(weight float64, recipe optimizer.Recipe, slots [][]float32) error {
	for i, slot := range slots {
		if err := r.Updater.Put(i+1, 0, slot); err != nil {
			return fmt.Errorf("take the optimizer's slots: %w", err)
		}
	}
	return r.Updater.Update(nil, weight, recipe)
}

// Fails reports whether the device could not make an update, which the holder then has to
// make: it may have too little memory for the slots.
func (r *Resident) Fails() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Fetch copies parameters and slots from the device.
func (r *Resident) Fetch(vectors [][]float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, v := range vectors {
		if err := r.Updater.Get(i, 0, v); err != nil {
			return err
		}
	}
	return nil
}
