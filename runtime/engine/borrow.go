package engine

import "errors"

// Borrower is a Replica in the machine's memory that computes in memory of its caller, so
// that neither parameters nor sums are copied. The vectors have the length of its vector.
type Borrower interface {
	Replica
	// BorrowParameters makes the replica read its parameters in values, which it never
	// changes, until Put of all of them. The caller may change them between two passes, and
	// calls BorrowParameters again before the next one. Get and Fork read them as well; Update,
	// and Put of a part of them, copy them first.
	BorrowParameters(values []float32) error
	// BorrowSums makes the replica add up in sums from the next First on, until the next
	// BorrowSums or Close; nil: in memory of its own. A pass that is under way is void.
	BorrowSums(sums []float32) error
}

// BorrowerOf returns the replica where it can compute in memory of its caller; nil: it
// cannot.
func BorrowerOf(r Replica) Borrower {
	if resident, ok := r.(*Resident); ok {
		if _, ok := resident.Updater.(Borrower); !ok {
			return nil
		}
	}
	b, _ := r.(Borrower)
	return b
}

var errNoBorrower = errors.New("the device does not compute in memory of its caller")

// BorrowParameters implements Borrower.
func (r *Resident) BorrowParameters(values []float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.Updater.(Borrower); ok {
		return b.BorrowParameters(values)
	}
	return errNoBorrower
}

// BorrowSums implements Borrower. Sums that were kept are void.
func (r *Resident) BorrowSums(sums []float32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.Updater.(Borrower); ok {
		r.whole = false
		return b.BorrowSums(sums)
	}
	return errNoBorrower
}
