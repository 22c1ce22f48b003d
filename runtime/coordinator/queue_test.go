package coordinator

import (
	"testing"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
)

// A run that is bounded by its steps may have epochs without end.
func TestEpochsWithoutEndCostNothing(t *testing.T) {
	s := pointsSpec()
	s.Epochs, s.MaxSteps = 1<<40, 30
	st := newBench(t, s, linear{}).run()
	if st.Phase != spec.Succeeded || st.Step != 30 || st.Steps != 30 || st.Records != 1500 || st.Epoch != 2 {
		t.Errorf("status %+v", st)
	}
}

func TestSlicesLeft(t *testing.T) {
	const n, epochs = 100, 50
	book := ledger.NewBook(n)
	commit := func(epoch int, start, end int64) {
		t.Helper()
		if err := book.Commit(spec.Contribution{Epoch: epoch, Start: start, End: end}); err != nil {
			t.Fatal(err)
		}
	}
	commit(0, 0, 100)
	commit(1, 0, 30)
	commit(1, 40, 50)
	commit(2, 0, 95)
	// [30, 40) and [50, 100) of epoch 1, [95, 100) of epoch 2, then 47 × 4.
	if got, want := newQueue(book, epochs).slices(30), int64(1+2+1+47*4); got != want {
		t.Errorf("%d slices are left, want %d", got, want)
	}
	q, left := newQueue(book, epochs), int64(0)
	for ; !q.empty(); left++ {
		q.next(30)
	}
	if left != 1+2+1+47*4 {
		t.Errorf("the queue gave %d slices", left)
	}
	if got := newQueue(ledger.NewBook(1<<40), 1<<40).slices(1); got < 1<<62 {
		t.Errorf("%d slices of a run without end", got)
	}
}

// What is done at every commit does not grow with the epochs that are over.
func TestUpdatesCostTheSameAfterManyEpochs(t *testing.T) {
	cost := func(epochs int) float64 {
		b := newBench(t, pointsSpec(), linear{})
		c := b.opened()
		c.book = ledger.NewBook(c.records())
		c.Spec.Epochs = 1 << 40
		n := c.records()
		for e := range epochs {
			if err := c.book.Commit(spec.Contribution{Epoch: e, End: n}); err != nil {
				t.Fatal(err)
			}
		}
		c.queue = newQueue(c.book, c.Spec.Epochs)
		return testing.AllocsPerRun(20, func() {
			c.forecast(0)
			c.session.Publish()
			if whole, open := c.book.Save(); whole != epochs || len(open) > 0 {
				t.Fatalf("%d epochs are saved as %d and %d more", epochs, whole, len(open))
			}
		})
	}
	if few, many := cost(1), cost(10_000); many > 2*few { // other goroutines allocate a few, too
		t.Errorf("%g allocations per commit after 10,000 epochs, %g after one", many, few)
	}
}
