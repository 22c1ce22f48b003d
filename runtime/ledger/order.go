package ledger

import (
	"math/bits"

	"github.com/stokehq/stoke/runtime/model"
)

// Order is the sequence of an epoch's records: a permutation of 0 … n-1 that is a
// pure function of (seed, epoch, n, block), so that a lease needs to name
// positions only and every process finds the same records. It needs no memory:
// see permute.
//
// With blocks, neighbours in the order are near each other in the file: the
// records, rotated by an offset of the epoch, make blocks; the full blocks are
// permuted; and in each window of windowBlocks of them the records are permuted.
// The last window also has the records that fill no block.
type Order struct {
	n    uint64
	keys [rounds]uint64

	block  uint64 // records; 0: there are no blocks
	offset uint64 // record at which the first block starts
	tweak  uint64 // of the permutation of blocks
}

const (
	rounds       = 6
	windowBlocks = 16
)

// NewOrder makes the order of one epoch of n records, n > 0, by blocks of so
// many records; 0 means no blocks, and more than n means one.
func NewOrder(seed uint64, epoch int, n, block int64) Order {
	o := Order{n: uint64(n), block: uint64(max(0, min(block, n)))}
	state := model.Mix(seed ^ model.Mix(uint64(epoch)+model.Golden))
	draw := func() uint64 {
		state += model.Golden
		return model.Mix(state)
	}
	for i := range o.keys {
		o.keys[i] = draw()
	}
	if o.block > 0 {
		o.tweak = draw()
		o.offset, _ = bits.Mul64(draw(), o.n)
	}
	return o
}

// RecordAt is the record at a position.
func (o Order) RecordAt(position int64) int64 {
	if o.block == 0 {
		return int64(o.permute(uint64(position), o.n, 0))
	}
	start, end := o.window(uint64(position))
	at := start + o.permute(uint64(position)-start, end-start, model.Mix(o.tweak+start+1))
	from, _ := o.slot(at)
	return int64((from + at%o.block + o.offset) % o.n)
}

// Window returns the positions [start, end) of a position's window. Without
// blocks, one window has all positions.
func (o Order) Window(position int64) (start, end int64) {
	if o.block == 0 {
		return 0, int64(o.n)
	}
	from, to := o.window(uint64(position))
	return int64(from), int64(to)
}

// Blocks returns the records at the positions [start, end) of a window.
func (o Order) Blocks(start, end int64) Ranges {
	if o.block == 0 {
		return Ranges{{0, int64(o.n)}}
	}
	var all Ranges
	for at := uint64(start); at < uint64(end); {
		from, size := o.slot(at)
		from = (from + o.offset) % o.n
		before := min(size, o.n-from) // of the file's end; the rest is at its beginning
		all.mustAdd(from, from+before)
		all.mustAdd(0, size-before)
		at += size
	}
	return all
}

// mustAdd adds records that are not in the set yet, or none.
func (r *Ranges) mustAdd(start, end uint64) {
	if start == end {
		return
	}
	if err := r.Add(int64(start), int64(end)); err != nil {
		panic(err) // a permutation gives no block twice
	}
}

// window returns the positions of a position's window. Records that fill no block
// make no window of their own.
func (o *Order) window(position uint64) (start, end uint64) {
	size, last := o.block*windowBlocks, (o.n/o.block-1)/windowBlocks
	i := min(position/size, last)
	if i == last {
		return i * size, o.n
	}
	return i * size, (i + 1) * size
}

// slot returns the first record at a slot, before the rotation, and the number of
// its records: a block, or the records that fill no block.
func (o *Order) slot(position uint64) (start, size uint64) {
	i, blocks := position/o.block, o.n/o.block
	if i >= blocks {
		return blocks * o.block, o.n % o.block
	}
	return o.permute(i, blocks, o.tweak) * o.block, o.block
}

// permute is a permutation of 0 … n-1, another one for each tweak: a Feistel
// network over the smallest even number of bits that holds n, walked until the
// result is below n (Black and Rogaway, "Ciphers with Arbitrary Finite
// Domains", 2002).
func (o *Order) permute(v, n, tweak uint64) uint64 {
	half := uint(max(2, bits.Len64(n-1)+1)) / 2 // bits of one side
	mask := uint64(1)<<half - 1
	for {
		left, right := v>>half, v&mask
		for _, k := range o.keys {
			left, right = right, left^model.Mix(right^k^tweak)&mask
		}
		if v = left<<half | right; v < n {
			return v
		}
	}
}
