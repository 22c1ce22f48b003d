package ledger

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
)

func TestOrderIsAPermutation(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, 5, 16, 17, 1000, 4096, 60000} {
		o := NewOrder(7, 1, n, 0)
		seen := make([]bool, n)
		for p := range n {
			r := o.RecordAt(p)
			if r < 0 || r >= n || seen[r] {
				t.Fatalf("n=%d: position %d gives %d (again: %v)", n, p, r, r >= 0 && r < n)
			}
			seen[r] = true
		}
	}
}

func TestOrderDependsOnSeedAndEpoch(t *testing.T) {
	const n = 1000
	same := func(a, b Order) (equal int) {
		for p := range int64(n) {
			if a.RecordAt(p) == b.RecordAt(p) {
				equal++
			}
		}
		return
	}
	first := NewOrder(1, 0, n, 0)
	if same(first, NewOrder(1, 0, n, 0)) != n {
		t.Error("the same seed and epoch give another order")
	}
	for name, o := range map[string]Order{"epoch": NewOrder(1, 1, n, 0), "seed": NewOrder(2, 0, n, 0)} {
		if k := same(first, o); k > 20 { // 1 is expected
			t.Errorf("another %s leaves %d of %d records in place", name, k, n)
		}
	}
}

// Neighbours in the order must not be neighbours in the file: the mean
// distance of two random records is n/3.
func TestOrderSpreadsNeighbours(t *testing.T) {
	const n = 10000
	o := NewOrder(3, 0, n, 0)
	sum := 0.0
	for p := range int64(n - 1) {
		d := o.RecordAt(p) - o.RecordAt(p+1)
		sum += float64(max(d, -d))
	}
	if mean := sum / (n - 1); mean < 0.31*n || mean > 0.36*n {
		t.Errorf("mean distance %g, want about %g", mean, n/3.0)
	}
}

func TestRangesAgainstASet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n = 60
	for range 200 {
		var r Ranges
		set := make([]bool, n)
		for range 40 {
			start := random.Int64N(n)
			end := min(n, start+1+random.Int64N(8))
			free := true
			for _, in := range set[start:end] {
				free = free && !in
			}
			err := r.Add(start, end)
			if (err == nil) != free {
				t.Fatalf("add [%d, %d) to %v: %v", start, end, r, err)
			}
			if free {
				for i := start; i < end; i++ {
					set[i] = true
				}
			}
		}
		got := make([]bool, n)
		last := int64(-1)
		for _, s := range r {
			if s[0] <= last {
				t.Fatalf("ranges touch: %v", r)
			}
			last = s[1]
			for i := s[0]; i < s[1]; i++ {
				got[i] = true
			}
		}
		if diff := cmp.Diff(set, got); diff != "" {
			t.Fatal(diff)
		}
		if r.Count()+r.Gaps(n).Count() != n {
			t.Fatalf("%v and its gaps %v do not fill %d", r, r.Gaps(n), n)
		}
	}
}

func TestBook(t *testing.T) {
	b := NewBook(10)
	c := func(epoch int, start, end int64) spec.Contribution {
		return spec.Contribution{Epoch: epoch, Start: start, End: end}
	}
	if err := b.Commit(c(0, 0, 5), c(0, 5, 10), c(1, 2, 4)); err != nil {
		t.Fatal(err)
	}
	if !b.IsComplete(0) || b.IsComplete(1) || b.IsComplete(2) || b.Records() != 12 {
		t.Errorf("book %+v", b)
	}
	for _, again := range []spec.Contribution{c(0, 9, 10), c(1, 3, 5), c(1, 0, 11), c(-1, 0, 1), c(2, 3, 3)} {
		if err := b.Commit(again); err == nil {
			t.Errorf("%+v was taken", again)
		}
	}
	whole, open := b.Save()
	back, err := Load(10, whole, open)
	if err != nil {
		t.Fatal(err)
	}
	if back.Records() != 12 || back.Epochs() != 1 || back.FirstUncommitted() != 2 {
		t.Errorf("read back %+v", back)
	}
	if diff := cmp.Diff(Ranges{{0, 2}, {4, 10}}, back.Gaps(1)); diff != "" {
		t.Error(diff)
	}
}

// Books of the first version list every epoch.
func TestBookOfEarlierVersion(t *testing.T) {
	all := []spec.EpochLedger{{Epoch: 0, Ranges: [][2]int64{{0, 10}}}, {Epoch: 1, Ranges: [][2]int64{{0, 10}}}, {Epoch: 2, Ranges: [][2]int64{{0, 3}, {5, 6}}}}
	b, err := Load(10, 0, all)
	if err != nil {
		t.Fatal(err)
	}
	if b.Epochs() != 2 || b.Records() != 24 || !b.IsComplete(1) || b.IsComplete(2) {
		t.Errorf("book %+v", b)
	}
	for _, bad := range []int{-1, math.MaxInt} {
		if _, err := Load(10, bad, nil); err == nil {
			t.Errorf("%d whole epochs were read", bad)
		}
	}
}

// Epochs may finish in another order than they began: asynchronous updates of
// a small dataset overtake each other.
func TestBookWithSeveralOpenEpochs(t *testing.T) {
	b := NewBook(4)
	c := func(epoch int, start, end int64) spec.Contribution {
		return spec.Contribution{Epoch: epoch, Start: start, End: end}
	}
	if err := b.Commit(c(0, 0, 2), c(2, 0, 4), c(1, 0, 4)); err != nil {
		t.Fatal(err)
	}
	if b.Epochs() != 0 || b.FirstUncommitted() != 3 || !b.IsComplete(1) || !b.IsComplete(2) || b.IsComplete(0) {
		t.Errorf("book %+v", b)
	}
	if err := b.Commit(c(0, 2, 4)); err != nil || b.Epochs() != 3 || b.Records() != 12 {
		t.Errorf("book %+v, %v", b, err)
	}
	if err := b.Commit(c(1<<40, 0, 1)); err == nil {
		t.Error("an epoch far ahead was committed to")
	}
}

// What a finished epoch leaves behind is a number.
func TestBookCostsTheSameAfterManyEpochs(t *testing.T) {
	const n = 100
	cost := func(epochs int) float64 {
		b := NewBook(n)
		epoch := 0
		one := func() {
			for at := int64(0); at < n; at += 10 {
				if err := b.Commit(spec.Contribution{Epoch: epoch, Start: at, End: at + 10}); err != nil {
					t.Fatal(err)
				}
				if whole, open := b.Save(); whole+len(open) > epoch+1 || len(open) > 1 {
					t.Fatalf("epoch %d is saved as %d whole ones and %v", epoch, whole, open)
				}
				b.Records()
			}
			epoch++
		}
		for range epochs {
			one()
		}
		return testing.AllocsPerRun(10, one)
	}
	if few, many := cost(1), cost(10_000); many > few {
		t.Errorf("%g allocations in an epoch after 10,000 others, %g after one", many, few)
	}
}
