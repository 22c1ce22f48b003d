package xla

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// staged is a batch on the device, in pieces.
type staged struct {
	model    *model.Model
	batch    int // records of a micro-batch
	pieces   []piece
	weights  []float64 // sum of each micro-batch
	released atomic.Bool
	users    atomic.Int32 // steps that have not begun; below 0: the buffers are closed
}

// piece is some of a batch's micro-batches, a power of two: features, labels, weights and,
// with dropout, keys.
type piece struct {
	count  int
	inputs []Buffer
}

// Release implements engine.Staged. A run that still reads the buffers keeps them, and so does a
// step that has not begun.
func (s *staged) Release() {
	if !s.released.Swap(true) {
		s.letGo()
	}
}

// keep keeps the buffers for a step that begins later, until letGo.
func (s *staged) keep() { s.users.Add(1) }

// letGo closes the buffers once the batch is released and no step waits for them.
func (s *staged) letGo() {
	if s.users.Add(-1) >= 0 {
		return
	}
	for _, p := range s.pieces {
		closeAll(p.inputs)
	}
}

func closeAll(buffers []Buffer) {
	for _, b := range buffers {
		if b != nil {
			_ = b.Close() // the device has gone, or the process ends
		}
	}
}

// MicroBatches implements engine.Replica.
func (r *replica) MicroBatches() int { return r.group }

// Stage implements engine.Replica. Its copies to the device may go on behind it.
func (r *replica) Stage(ctx context.Context, b *engine.Batch, rows []model.Rows) (engine.Staged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.closed.Load() {
		return nil, fmt.Errorf("stage batch: %w", errClosed)
	}
	if len(rows) != 0 {
		return nil, fmt.Errorf("stage batch: %d tables' rows for a model without tables", len(rows))
	}
	if err := b.Check(r.model, r.group*r.batch); err != nil {
		return nil, fmt.Errorf("stage batch: %w", err)
	}
	s := &staged{model: r.model, batch: r.batch}
	micro := max(1, (len(b.Weights)+r.batch-1)/r.batch)
	s.weights = make([]float64, micro)
	for i, w := range b.Weights {
		s.weights[i/r.batch] += float64(w)
	}
	for at := 0; at < micro; {
		count := 1
		for 2*count <= min(micro-at, r.group) {
			count *= 2
		}
		p, err := r.upload(b, at, count)
		if err != nil {
			s.Release()
			return nil, fmt.Errorf("stage batch: %w", r.explain(err))
		}
		s.pieces = append(s.pieces, p)
		at += count
	}
	return s, nil
}

// upload copies micro-batches to the device. Records that the batch lacks are zeros of
// weight 0.
func (r *replica) upload(b *engine.Batch, at, count int) (piece, error) {
	p := piece{count: count}
	from, to := at*r.batch, min((at+count)*r.batch, len(b.Weights))
	for i, t := range r.inputs(true) {
		dims := times(t.dims, count)
		record := t.size() / r.batch
		memory, err := r.host.take(count * t.size())
		if err != nil {
			closeAll(p.inputs)
			return piece{}, err
		}
		var used int
		switch i {
		case 0, 1:
			used = copy(memory, b.Inputs[i].Data[from*record:to*record])
		case 2:
			used = putWeights(memory, b.Weights[from:to])
		default:
			used = putKeys(memory, b, from, to)
		}
		clear(memory[used:])
		if i < 2 {
			clearPadding(memory, record, b.Weights[from:to])
		}
		buffer, err := r.device.Upload(t.of, dims, memory, func() { r.host.give(memory) })
		if err != nil {
			closeAll(p.inputs)
			return piece{}, err
		}
		p.inputs = append(p.inputs, buffer)
	}
	return p, nil
}

// clearPadding makes zeros of records of weight 0, which may hold anything: a NaN times 0
// would be a NaN.
func clearPadding(memory []byte, record int, weights []float32) {
	for i, w := range weights {
		if w == 0 {
			clear(memory[i*record : (i+1)*record])
		}
	}
}

func putWeights(memory []byte, weights []float32) int {
	for i, w := range weights {
		binary.LittleEndian.PutUint32(memory[4*i:], math.Float32bits(w))
	}
	return 4 * len(weights)
}

// putKeys writes a number of each record. Dropout's masks follow from it and the layer.
func putKeys(memory []byte, b *engine.Batch, from, to int) int {
	pass := model.Mix(b.Seed) ^ b.Epoch
	for i, record := range b.Records[from:to] {
		binary.LittleEndian.PutUint64(memory[8*i:], model.Mix(model.Mix(pass)^uint64(record)))
	}
	return 8 * (to - from)
}

// floats are the numbers that memory holds, little-endian.
func floats(memory []byte, into []float32) {
	for i := range into {
		into[i] = math.Float32frombits(binary.LittleEndian.Uint32(memory[4*i:]))
	}
}

// uploadFloats copies numbers to the device.
func (r *replica) uploadFloats(v []float32) (Buffer, error) {
	memory, err := r.host.take(4 * len(v))
	if err != nil {
		return nil, err
	}
	putWeights(memory, v)
	return r.device.Upload(stablehlo.F32, []int{len(v)}, memory, func() { r.host.give(memory) })
}
