package ledger

import (
	"math/bits"

	"github.com/stokehq/stoke/runtime/model"
)

// Order is the sequence in which an epoch visits the records: a permutation of
// 0 … n-1 that is a pure function of (seed, epoch, n), so that a lease needs
// to name positions only and every process finds the same records. It needs no
// memory: a Feistel network over the smallest even number of bits that holds
// n, walked until the result is below n (Black and Rogaway, "Ciphers with
// Arbitrary Finite Domains", 2002).
type Order struct {
	n    uint64
	half uint // bits of one side
	keys [rounds]uint64
}

const rounds = 6

// NewOrder makes the order of one epoch of n records, n > 0.
func NewOrder(seed uint64, epoch int, n int64) Order {
	o := Order{n: uint64(n), half: uint(max(2, bits.Len64(uint64(n-1))+1)) / 2}
	state := model.Mix(seed ^ model.Mix(uint64(epoch)+model.Golden))
	for i := range o.keys {
		state += model.Golden
		o.keys[i] = model.Mix(state)
	}
	return o
}

// At is the record at a position.
func (o Order) At(position int64) int64 {
	mask := uint64(1)<<o.half - 1
	for v := uint64(position); ; {
		left, right := v>>o.half, v&mask
		for _, k := range o.keys {
			left, right = right, left^model.Mix(right^k)&mask
		}
		if v = left<<o.half | right; v < o.n {
			return int64(v)
		}
	}
}
