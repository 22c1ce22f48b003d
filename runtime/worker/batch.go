package worker

import (
	"context"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/wire"
)

// batch is a lease with its records read.
type batch struct {
	wire.Lease
	micro []engine.Batch // of the replica's size each, the last one padded
	err   error          // why they could not be read

	features, labels []byte
	records          []int64
	weights          []float32
}

// buffers is how many batches there are: the coordinator gives a worker two
// leases to compute and one to read ahead; one more takes what was taken back
// meanwhile.
const buffers = 4

// readAhead reads the records of leases while earlier ones are computed.
func (s *session) readAhead(ctx context.Context, out chan<- *batch) error {
	for {
		var b *batch
		select {
		case b = <-s.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case b.Lease = <-s.leases:
		case <-ctx.Done():
			return ctx.Err()
		}
		b.err = s.read(ctx, b)
		out <- b // never blocks: it has room for every buffer
	}
}

// read fills the batch, reusing what it holds.
func (s *session) read(ctx context.Context, b *batch) error {
	source := s.Task.Train
	if b.Evaluate {
		source = s.Task.Test
	}
	info := source.Info()
	n := int(b.End - b.Start)
	padded := (n + s.micro - 1) / s.micro * s.micro
	size := info.FeatureBytes()
	b.features, b.labels = sized(b.features, padded*size), sized(b.labels, padded*4)
	b.records, b.weights = sized(b.records, padded), sized(b.weights, padded)
	clear(b.features[n*size:])
	clear(b.labels[n*4:])
	clear(b.weights[n:])
	var order ledger.Order
	if !b.Evaluate {
		order = ledger.NewOrder(s.Spec.Seed, b.Epoch, info.Records)
	}
	for i := range n {
		b.records[i], b.weights[i] = b.Start+int64(i), 1
		if !b.Evaluate {
			b.records[i] = order.At(b.Start + int64(i))
		}
	}
	for i := n; i < padded; i++ {
		b.records[i] = b.records[n-1] // of weight 0: any will do
	}
	if err := source.Read(ctx, b.records[:n], b.features[:n*size], b.labels[:n*4]); err != nil {
		return err
	}
	b.slice(info, s.micro, padded, s.Spec.Seed)
	return nil
}

// slice cuts the records into micro-batches.
func (b *batch) slice(info dataset.Info, micro, padded int, seed uint64) {
	b.micro = b.micro[:0]
	size := info.FeatureBytes()
	for at := 0; at < padded; at += micro {
		to := at + micro
		b.micro = append(b.micro, engine.Batch{
			Inputs: []engine.Input{
				{Type: info.Type, Shape: append([]int{micro}, info.Shape...), Data: b.features[at*size : to*size]},
				{Type: engine.I32, Shape: []int{micro}, Data: b.labels[at*4 : to*4]},
			},
			Records: b.records[at:to],
			Weights: b.weights[at:to],
			Seed:    seed,
			Epoch:   uint64(b.Epoch),
		})
	}
}

// sized gives a slice of n elements of undefined content.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
