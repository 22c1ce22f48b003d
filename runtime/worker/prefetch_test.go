package worker

import (
	"context"
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// prefetched is a source that counts how often each record was prefetched, and
// notes those that are read without.
type prefetched struct {
	numbered
	times  []int
	missed []int64
}

func (s *prefetched) Prefetch(start, end int64) {
	for i := start; i < end; i++ {
		s.times[i]++
	}
}

func (s *prefetched) Read(ctx context.Context, records []int64, features, labels []byte) error {
	for _, r := range records {
		if s.times[r] == 0 {
			s.missed = append(s.missed, r)
		}
	}
	return s.numbered.Read(ctx, records, features, labels)
}

// reader is a worker that reads leases from a source of its own, as on a machine
// of its own.
type reader struct {
	session
	source *prefetched
}

func newReader(s spec.Spec, records int64) *reader {
	about := dataset.Info{Records: records, Type: model.U8, Shape: []int{3}, Classes: 2}
	source := &prefetched{numbered: numbered{about: about}, times: make([]int, records)}
	w := &worker{Options: Options{Spec: s, Workload: &workload.Workload{Train: source, Test: source}}, micro: 2, group: 1}
	return &reader{session{worker: w}, source}
}

func (r *reader) read(t *testing.T, epoch int, start, end int64) {
	t.Helper()
	l := wire.Lease{Contribution: spec.Contribution{Epoch: epoch, Start: start, End: end}}
	if err := r.readPart(t.Context(), &batch{Lease: l}, new(part), start, end); err != nil {
		t.Fatal(err)
	}
	if len(r.source.missed) > 0 {
		t.Fatalf("epoch %d, positions [%d, %d): records %v were read before they were prefetched", epoch, start, end, r.source.missed)
	}
}

// Workers share the leases of a window: each prefetches the records of a window
// once, before it reads any of them, whichever of its leases comes first.
func TestPrefetchBySeveralWorkers(t *testing.T) {
	const records, block, lease = 1005, 10, 16 // windows of 160 positions, the last of 45
	s := spec.Default()
	s.ShuffleBlock, s.Epochs = block, 2
	workers := []*reader{newReader(s, records), newReader(s, records), newReader(s, records)}
	for epoch := range s.Epochs {
		for start := int64(0); start < records; start += 2 * lease {
			// Of two leases that are given out together, the second one may be read first.
			for i, at := range []int64{start + lease, start} {
				if at < records {
					workers[(int(start/lease)+i+epoch)%len(workers)].read(t, epoch, at, min(at+lease, records))
				}
			}
		}
		for i, w := range workers {
			if epoch+1 < s.Epochs {
				continue
			}
			if at := slices.IndexFunc(w.source.times, func(n int) bool { return n != s.Epochs }); at >= 0 {
				t.Errorf("worker %d prefetched record %d %d times in %d epochs", i, at, w.source.times[at], s.Epochs)
			}
		}
	}
}

// The next window is prefetched once the second half of a window is read, in the
// next epoch too if there is one. Each epoch's order has its own first window.
func TestPrefetchOfTheNextWindow(t *testing.T) {
	const records, block = 1005, 10 // windows of 160 positions, the last of 45
	s := spec.Default()
	s.ShuffleBlock, s.Epochs = block, 2
	window := func(epoch int, at int64) (n int64) {
		start, end := ledger.NewOrder(s.Seed, epoch, records, block).Window(at)
		return end - start
	}
	for _, c := range []struct {
		epoch      int
		start, end int64
		want       int64
	}{
		{0, 0, 80, window(0, 0)},
		{0, 0, 81, window(0, 0) + window(0, 160)},
		{0, 150, 170, window(0, 0) + window(0, 160)},
		{0, 100, 260, window(0, 0) + window(0, 160) + window(0, 320)},
		{0, 960, 982, window(0, 960)},
		{0, 990, 991, window(0, 960) + window(1, 0)},
		{1, 960, 1005, window(1, 960)},
	} {
		r, got := newReader(s, records), int64(0)
		r.read(t, c.epoch, c.start, c.end)
		for _, n := range r.source.times {
			got += int64(n)
		}
		if got != c.want {
			t.Errorf("epoch %d, positions [%d, %d): %d records are prefetched, want %d", c.epoch, c.start, c.end, got, c.want)
		}
	}
}

// Test records are read in their own order, and training records without blocks
// each by itself: nothing is prefetched for either.
func TestNothingIsPrefetchedWithoutBlocks(t *testing.T) {
	s := spec.Default()
	for block, evaluate := range map[int]bool{0: false, 10: true} {
		s.ShuffleBlock = block
		r := newReader(s, 100)
		l := wire.Lease{Contribution: spec.Contribution{End: 100}, Evaluate: evaluate}
		if err := r.readPart(t.Context(), &batch{Lease: l}, new(part), 0, 100); err != nil {
			t.Fatal(err)
		}
		if at := slices.IndexFunc(r.source.times, func(n int) bool { return n > 0 }); at >= 0 {
			t.Errorf("blocks of %d, evaluated %v: record %d was prefetched", block, evaluate, at)
		}
	}
}
