package worker

import (
	"context"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/wire"
)

// batch is a lease whose records are being read: while one part of them is
// computed, the next one is read.
type batch struct {
	wire.Lease
	reported bool       // the coordinator knows what came of it
	read     reading    // for the account, where one is kept
	parts    chan *part // read, in order; closed behind the last one
	spare    chan *part // to be read into
	stop     context.CancelFunc

	part   *part         // whose micro-batches are being computed; nil: none yet
	at     int           // its next batch
	staged engine.Staged // that one on the device; nil: it is not there yet
	count  int           // the micro-batches that it has
	err    error         // why it could not be staged
}

// part is some micro-batches of a lease.
type part struct {
	batches []engine.Batch // of whole micro-batches, the last one padded
	last    bool           // of the lease
	err     error          // why they could not be read

	features, labels []byte
	scratch          []byte
	records          []int64
	weights          []float32
}

// buffers is the number of batches: two leases of an update and two of the next one; one
// more is for a lease that is revoked.
const buffers = 5

// partBytes is about how much of a lease is read at a time, so that memory
// does not grow with the batch.
const partBytes = 1 << 20

func newBatch() *batch {
	b := &batch{spare: make(chan *part, 2)}
	for range cap(b.spare) {
		b.spare <- new(part)
	}
	return b
}

// readAhead reads the records of leases while earlier ones are computed: each
// lease by itself, because a later one may be computed first.
func (s *session) readAhead(ctx context.Context) error {
	var all queue
	for {
		free := s.free
		if len(all.leases) == 0 {
			free = nil
		}
		select {
		case l := <-s.leases:
			all.add(l)
			for all.isLate() { // leases that wait for it have the buffers
				s.begin(ctx, newBatch(), all.next())
			}
		case b := <-free:
			s.begin(ctx, b, all.next())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin begins to read the records of a lease.
func (s *session) begin(ctx context.Context, b *batch, l wire.Lease) {
	b.Lease, b.reported, b.read, b.err = l, false, reading{}, nil
	b.parts = make(chan *part, cap(b.spare))
	var reading context.Context
	reading, b.stop = context.WithCancel(ctx)
	s.reading.Go(func() { s.read(reading, b) })
	select {
	case s.batches <- b:
	case <-ctx.Done():
	}
}

// releaseBatch gives a batch back whose records were computed, or will not be.
func (s *session) releaseBatch(b *batch) {
	b.stop()
	b.unstage()
	b.recycle()
	for p := range b.parts {
		b.spare <- p
	}
	select {
	case s.free <- b:
	default: // an additional one
	}
}

// read reads a lease's records, part by part, until all are read, one fails or
// ctx is done.
func (s *session) read(ctx context.Context, b *batch) {
	defer close(b.parts)
	info := s.source(b).Info()
	size := int64(s.micro * max(s.group, partBytes/(s.micro*max(info.FeatureBytes(), info.TargetBytes()))))
	for at, end := b.Start, int64(0); at < b.End; at = end {
		var p *part
		select {
		case p = <-b.spare:
		case <-ctx.Done():
			return
		}
		end = min(at+s.partSize(b, at, size), b.End)
		p.err = s.readPart(ctx, b, p, at, end)
		p.last = end == b.End || p.err != nil
		b.parts <- p // never blocks: it has room for all there are
		if p.last {
			return
		}
		s.advance(b)
	}
}

// partSize returns the records of a part from a place on, about size. Where batches have
// several micro-batches, a leaf is cut into the same batches at each place of a lease:
// sums of different batches may differ in the last bits.
func (s *session) partSize(b *batch, at, size int64) int64 {
	if s.group == 1 || b.Leaf <= 0 {
		return size
	}
	if b.Leaf <= size {
		return size / b.Leaf * b.Leaf
	}
	whole := int64(s.group * s.micro)
	return min(size/whole*whole, b.Leaf-(at-b.Start)%b.Leaf)
}

func (s *session) source(b *batch) dataset.Source {
	if b.Evaluate {
		return s.Workload.Test
	}
	return s.Workload.Train
}

// readPart reads the records at positions [start, end), reusing what the part
// holds.
func (s *session) readPart(ctx context.Context, b *batch, p *part, start, end int64) error {
	source := s.source(b)
	info := source.Info()
	n := int(end - start)
	padded := (n + s.micro - 1) / s.micro * s.micro
	size, label := info.FeatureBytes(), info.TargetBytes()
	p.features, p.labels = sized(p.features, padded*size), sized(p.labels, padded*label)
	p.records, p.weights = sized(p.records, padded), sized(p.weights, padded)
	clear(p.features[n*size:])
	clear(p.labels[n*label:])
	clear(p.weights[n:])
	var order ledger.Order
	if !b.Evaluate {
		order = s.order(b.Epoch)
		s.prefetch(b.Epoch, order, start, end)
	}
	for i := range n {
		p.records[i], p.weights[i] = start+int64(i), 1
		if !b.Evaluate {
			p.records[i] = order.RecordAt(start + int64(i))
		}
	}
	for i := n; i < padded; i++ {
		p.records[i] = p.records[n-1] // of weight 0: any will do
	}
	if err := source.Read(ctx, p.records[:n], p.features[:n*size], p.labels[:n*label]); err != nil {
		return err
	}
	if a := s.Workload.Augmenter; a != nil && !b.Evaluate {
		for i, record := range p.records[:n] {
			p.scratch = a.Apply(p.features[i*size:(i+1)*size], b.Epoch, record, p.scratch)
		}
	}
	if s.Accounts != nil {
		b.read.add(p.records[:n])
	}
	p.slice(info, s.micro, s.Spec.Seed, uint64(b.Epoch), s.group, int(start-b.Start)/s.micro, int(b.Leaf)/s.micro)
	return nil
}

// slice cuts the records into batches of up to group micro-batches. first is the place of
// the part's first micro-batch in its lease. No batch has micro-batches of two leaves,
// which have so many each; 0: the lease has one.
func (p *part) slice(info dataset.Info, micro int, seed, epoch uint64, group, first, leaf int) {
	p.batches = p.batches[:0]
	size, label := info.FeatureBytes(), info.TargetBytes()
	all := len(p.records) / micro
	for at := 0; at < all; {
		count := min(group, all-at)
		if leaf > 0 {
			count = min(count, leaf-(first+at)%leaf)
		}
		records := count * micro
		target, targets := info.Target.Batch(records)
		from, to := at*micro, (at+count)*micro
		p.batches = append(p.batches, engine.Batch{
			Inputs: []engine.Input{
				{Type: info.Type, Shape: append([]int{records}, info.Shape...), Data: p.features[from*size : to*size]},
				{Type: target, Shape: targets, Data: p.labels[from*label : to*label]},
			},
			Records: p.records[from:to],
			Weights: p.weights[from:to],
			Seed:    seed,
			Epoch:   epoch,
		})
		at += count
	}
}

// sized gives a slice of n elements of undefined content.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
