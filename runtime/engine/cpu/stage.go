package cpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

// staged is a micro-batch without its padding: records of weight 0 are left
// out, so that nothing has to mask them.
type staged struct {
	pass     pass
	features []byte
	places   []int // of the records in the micro-batch

	home     *buffers
	released atomic.Bool
}

// Release implements engine.Staged.
func (s *staged) Release() {
	if !s.released.Swap(true) {
		s.home.put(s.features)
		s.features = nil
	}
}

// buffers are the features' buffers of batches that were released. A replica
// needs as many as there are batches staged at a time.
type buffers struct {
	mu   sync.Mutex
	free [][]byte
}

func (b *buffers) get(size int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		buffer := b.free[n-1]
		b.free = b.free[:n-1]
		return buffer[:0]
	}
	return make([]byte, 0, size)
}

func (b *buffers) put(buffer []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, buffer)
}

// MicroBatches implements engine.Replica: several at once would save nothing here.
func (r *replica) MicroBatches() int { return 1 }

// Stage implements engine.Replica: it copies what counts of the batch.
func (r *replica) Stage(ctx context.Context, b *engine.Batch, rows []model.Rows) (engine.Staged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(rows) != 0 {
		return nil, fmt.Errorf("stage batch: %d tables' rows for a model without tables", len(rows))
	}
	if err := b.Check(r.model, r.options.MicroBatch); err != nil {
		return nil, fmt.Errorf("stage batch: %w", err)
	}
	record := engine.FeatureBytes(r.model)
	answer, elements := r.model.Answer()
	size := elements * answer.Size()
	s := &staged{pass: pass{seed: b.Seed, epoch: b.Epoch}, home: &r.buffers, features: r.buffers.get(r.options.MicroBatch * record)}
	for i, w := range b.Weights {
		if w == 0 {
			continue
		}
		s.addAnswer(answer, b.Inputs[1].Data[i*size:(i+1)*size])
		s.pass.weights = append(s.pass.weights, w)
		s.pass.records = append(s.pass.records, b.Records[i])
		s.pass.total += float64(w)
		s.places = append(s.places, i)
		s.features = append(s.features, b.Inputs[0].Data[i*record:(i+1)*record]...)
	}
	s.pass.n = len(s.pass.weights)
	return s, nil
}

// addAnswer keeps a record's target.
func (s *staged) addAnswer(of model.DType, data []byte) {
	width := of.Size()
	for i := 0; i < len(data); i += width {
		switch of {
		case model.F32:
			s.pass.numbers = append(s.pass.numbers, math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
		case model.I32:
			s.pass.labels = append(s.pass.labels, int32(binary.LittleEndian.Uint32(data[i:])))
		default:
			s.pass.labels = append(s.pass.labels, int32(data[i]))
		}
	}
}

// load turns the staged features into numbers in the input buffer.
func (r *replica) load(s *staged) {
	r.staged = s
	r.threads.run(s.pass.n, r.convert)
}

func (r *replica) convertPart(_, from, to int) {
	size := product(r.model.Input.Shape)
	x := r.input[from*size : to*size]
	width := r.model.Input.Type.Size()
	data := r.staged.features[from*size*width : to*size*width]
	factor := r.factor
	switch r.model.Input.Type {
	case model.U8:
		for i, v := range data[:len(x)] {
			x[i] = r.bytes[v]
		}
	case model.I32:
		for i := range x {
			x[i] = float32(int32(binary.LittleEndian.Uint32(data[4*i:]))) * factor
		}
	case model.I64:
		for i := range x {
			x[i] = float32(int64(binary.LittleEndian.Uint64(data[8*i:]))) * factor
		}
	default: // F32
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])) * factor
		}
	}
}
