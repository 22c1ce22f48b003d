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
		s.home.put(buffer{s.pass, s.features, s.places})
		s.pass, s.features, s.places = pass{}, nil, nil
	}
}

// buffer is the memory of a batch.
type buffer struct {
	pass     pass
	features []byte
	places   []int
}

// buffers are those of batches that were released. A replica needs as many as there are
// batches staged at a time.
type buffers struct {
	mu   sync.Mutex
	free []buffer
}

// get returns memory for a batch, empty and with room for so many bytes of features.
func (b *buffers) get(size int) (m buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.free)
	if n == 0 {
		m.features = make([]byte, 0, size)
		return m
	}
	m = b.free[n-1]
	b.free = b.free[:n-1]
	p := m.pass
	m.pass = pass{weights: p.weights[:0], records: p.records[:0], labels: p.labels[:0], numbers: p.numbers[:0]}
	m.features, m.places = m.features[:0], m.places[:0]
	return m
}

func (b *buffers) put(m buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, m)
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
	m := r.buffers.get(r.options.MicroBatch * record)
	s := &staged{pass: m.pass, features: m.features, places: m.places, home: &r.buffers}
	s.pass.seed, s.pass.epoch = b.Seed, b.Epoch
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
