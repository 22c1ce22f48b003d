package worker

import (
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/ledger"
)

// prefetcher holds the windows of the training set that the kernel reads ahead.
// Leases are read at the same time, so several of them may need one window.
type prefetcher struct {
	mu     sync.Mutex
	latest [2 * buffers]window
	oldest int // index in latest
}

// window is a window of an epoch's order.
type window struct {
	number int   // of the epoch, from 1: the zero value is not a window
	start  int64 // position
}

// order returns the order of an epoch of the training set.
func (w *worker) order(epoch int) ledger.Order {
	return ledger.NewOrder(w.Spec.Seed, epoch, w.Workload.Train.Info().Records, int64(w.Spec.ShuffleBlock))
}

// prefetch makes the kernel read the windows of positions [start, end) of an
// epoch. Positions in the second half of a window make it read the next window too.
func (w *worker) prefetch(epoch int, order ledger.Order, start, end int64) {
	if w.Spec.ShuffleBlock == 0 {
		return
	}
	source := w.Workload.Train
	for start < end {
		first, last := order.Window(start)
		w.ahead.readWindow(source, epoch, order, first)
		switch {
		case end <= first+(last-first)/2:
		case last < source.Info().Records:
			w.ahead.readWindow(source, epoch, order, last)
		case epoch+1 < w.Spec.Epochs:
			w.ahead.readWindow(source, epoch+1, w.order(epoch+1), 0)
		}
		start = last
	}
}

// readWindow makes the kernel read the records of a window, unless it is one of
// the latest ones.
func (p *prefetcher) readWindow(source dataset.Source, epoch int, order ledger.Order, start int64) {
	p.mu.Lock()
	defer p.mu.Unlock() // other leases of the window begin after this
	of := window{epoch + 1, start}
	if slices.Contains(p.latest[:], of) {
		return
	}
	p.latest[p.oldest] = of
	p.oldest = (p.oldest + 1) % len(p.latest)
	for _, records := range order.Blocks(order.Window(start)) {
		source.Prefetch(records[0], records[1])
	}
}
