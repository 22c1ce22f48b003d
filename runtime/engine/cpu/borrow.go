package cpu

import "fmt"

// extent is where a parameter of a layer lies in the vector.
type extent struct {
	*parameter
	from, to int
}

// BorrowParameters implements engine.Borrower.
func (r *replica) BorrowParameters(values []float32) error {
	if err := r.checkLent(values); err != nil {
		return fmt.Errorf("borrow parameters: %w", err)
	}
	r.borrowed = true
	r.moveParameters(values)
	return nil
}

// BorrowSums implements engine.Borrower.
func (r *replica) BorrowSums(sums []float32) error {
	own := sums == nil
	if own {
		sums = r.ownSums
	}
	if sums == nil {
		sums = make([]float32, len(r.vector))
	}
	if err := r.checkLent(sums); err != nil {
		return fmt.Errorf("borrow sums: %w", err)
	}
	if r.ownSums = nil; own { // one vector at a time: it is as long as the parameters
		r.ownSums = sums
	}
	r.stepping = false
	r.sums[0] = sums
	for _, p := range r.extents {
		p.sums[0] = sums[p.from:p.to]
	}
	return nil
}

// checkLent checks a vector that the caller lends.
func (r *replica) checkLent(v []float32) error {
	if len(v) != len(r.vector) {
		return fmt.Errorf("%d values, want %d", len(v), len(r.vector))
	}
	return r.check(0, 0, len(v))
}

// copyBorrowed makes sure that the parameters are in memory of this replica.
func (r *replica) copyBorrowed() {
	if r.borrowed {
		r.keepParameters(append([]float32(nil), r.vector...))
	}
}

// keepParameters makes a vector the replica's own parameters.
func (r *replica) keepParameters(own []float32) {
	r.borrowed = false
	r.moveParameters(own)
}

// moveParameters makes all layers read their parameters in another vector.
func (r *replica) moveParameters(vector []float32) {
	r.vector, r.dirty = vector, true
	for _, p := range r.extents {
		p.value = vector[p.from:p.to]
	}
}
