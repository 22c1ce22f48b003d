package ledger

import (
	"slices"
	"testing"
)

// ofBlocks are orders with blocks: with records that fill no block and without,
// with few blocks, one block and more than a window of them.
var ofBlocks = []struct{ n, block int64 }{
	{1, 1}, {1, 5}, {2, 1}, {3, 2}, {7, 7}, {7, 8}, {7, 1 << 40}, {16, 1}, {17, 1}, {64, 4}, {65, 4}, {67, 4}, {68, 4}, {100, 64}, {127, 64},
	{1000, 3}, {1024, 64}, {1025, 64}, {1087, 64}, {1088, 64}, {4096, 64}, {4097, 256}, {8191, 256}, {60000, 100}, {60000, 64},
}

func TestOrderByBlocksIsAPermutation(t *testing.T) {
	for _, c := range ofBlocks {
		for epoch := range 3 {
			o := NewOrder(7, epoch, c.n, c.block)
			seen := make([]bool, c.n)
			for p := range c.n {
				r := o.RecordAt(p)
				if r < 0 || r >= c.n || seen[r] {
					t.Fatalf("%+v, epoch %d: position %d gives %d (again: %v)", c, epoch, p, r, r >= 0 && r < c.n)
				}
				seen[r] = true
			}
		}
	}
}

// Windows follow each other, and each has the records of few blocks: these are
// the ones that the order says.
func TestWindowsHaveFewBlocks(t *testing.T) {
	for _, c := range ofBlocks {
		o := NewOrder(3, 2, c.n, c.block)
		block := min(c.block, c.n)
		for at := int64(0); at < c.n; {
			start, end := o.Window(at)
			if from, to := o.Window(end - 1); start != at || end <= at || from != start || to != end {
				t.Fatalf("%+v: position %d is in a window [%d, %d), the last of it in [%d, %d)", c, at, start, end, from, to)
			}
			if end-start < min(block, c.n) || end-start >= (windowBlocks+1)*block {
				t.Errorf("%+v: a window has %d records", c, end-start)
			}
			var records []int64
			for p := start; p < end; p++ {
				records = append(records, o.RecordAt(p))
			}
			slices.Sort(records)
			var want Ranges
			for _, r := range records {
				if err := want.Add(r, r+1); err != nil {
					t.Fatal(err)
				}
			}
			if got := o.Blocks(start, end); !slices.Equal(got, want) {
				t.Errorf("%+v: window [%d, %d) has blocks %v, its records are %v", c, start, end, got, want)
			}
			if len(want) > windowBlocks+2 { // the seam of the rotation cuts a block; the last records fill none
				t.Errorf("%+v: window [%d, %d) is in %d places: %v", c, start, end, len(want), want)
			}
			at = end
		}
	}
}

// Each window has its own permutation: records at the same place in two of them
// come from different places in their blocks.
func TestWindowsDiffer(t *testing.T) {
	const n, block, size = 4096, 64, 64 * windowBlocks
	o, same := NewOrder(9, 0, n, block), 0
	place := func(position int64) int64 { return (o.RecordAt(position) + n - int64(o.offset)) % n % block }
	for p := range int64(size) {
		if place(p) == place(p+size) {
			same++
		}
	}
	if same > 2*size/block { // half of that is expected
		t.Errorf("%d of %d places are the same in two windows", same, size)
	}
}

// Each epoch cuts the records into other blocks.
func TestBlocksStartElsewhereInEachEpoch(t *testing.T) {
	starts := make(map[int64]bool)
	for epoch := range 20 {
		o := NewOrder(2, epoch, 1<<20, 64)
		starts[o.Blocks(o.Window(0))[1][0]%64] = true
	}
	if len(starts) < 10 { // 17 are expected
		t.Errorf("the blocks of 20 epochs start at %v", starts)
	}
}

func TestOrderByBlocksDependsOnAll(t *testing.T) {
	const n = 20000
	first := NewOrder(1, 0, n, 64)
	for name, c := range map[string]struct {
		other Order
		most  int // records in place: 1 is expected
	}{
		"nothing":  {NewOrder(1, 0, n, 64), n},
		"epoch":    {NewOrder(1, 1, n, 64), 20},
		"seed":     {NewOrder(2, 0, n, 64), 20},
		"block":    {NewOrder(1, 0, n, 65), 20},
		"no block": {NewOrder(1, 0, n, 0), 20},
	} {
		same := 0
		for p := range int64(n) {
			if first.RecordAt(p) == c.other.RecordAt(p) {
				same++
			}
		}
		if same > c.most || c.most == n && same != n {
			t.Errorf("another %s leaves %d of %d records in place", name, same, n)
		}
	}
}

// The order without blocks is the one of earlier versions, whose ledgers have
// positions only.
func TestOrderWithoutBlocksStays(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		n    int64
		want []int64
	}{
		{7, 1000, []int64{738, 963, 0, 155, 78, 933}},
		{0, 60000, []int64{10531, 54197, 30446, 49810, 44184, 46721}},
	} {
		var got []int64
		o := NewOrder(c.seed, 1, c.n, 0)
		for p := range int64(6) {
			got = append(got, o.RecordAt(p))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("seed %d, %d records: %v, want %v", c.seed, c.n, got, c.want)
		}
	}
}

// Where a record stands in a window must not depend on where it is in the file: of
// eighths of the window by eighths of its blocks, and of the blocks themselves,
// all combinations are as frequent.
func TestWindowsAreShuffled(t *testing.T) {
	const n, block, parts = 1 << 16, 64, 8
	var places, insides [parts][parts]float64
	records := 0.0
	for epoch := range 4 {
		o := NewOrder(5, epoch, n, block)
		for start := int64(0); start < n; {
			_, end := o.Window(start)
			inOrder := make([]int64, 0, end-start)
			for p := start; p < end; p++ {
				inOrder = append(inOrder, o.RecordAt(p))
			}
			sorted := slices.Sorted(slices.Values(inOrder))
			for i, r := range inOrder {
				rank, _ := slices.BinarySearch(sorted, r)
				places[i*parts/len(inOrder)][rank*parts/len(inOrder)]++
				insides[i*parts/len(inOrder)][rank%block*parts/block]++
				records++
			}
			start = end
		}
	}
	want := records / (parts * parts)
	for name, cells := range map[string][parts][parts]float64{"window": places, "block": insides} {
		sum := 0.0
		for _, row := range cells {
			for _, n := range row {
				sum += (n - want) * (n - want) / want
			}
		}
		if sum > 100 { // chi-square of 49 degrees of freedom: 1 in 30,000 is above
			t.Errorf("chi-square of position and place in the %s: %g", name, sum)
		}
	}
}
