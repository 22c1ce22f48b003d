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

// Stage implements engine.Replica: it copies what counts of the batch.
func (r *replica) Stage(ctx context.Context, b *engine.Batch, rows []model.Rows) (engine.Staged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(rows) != 0 {
		return nil, fmt.Errorf("stage batch: %d tables' rows for a model without tables", len(rows))
	}
	n := len(b.Weights)
	if n > r.options.MicroBatch {
		return nil, fmt.Errorf("stage batch: %d records, but the micro-batch is %d", n, r.options.MicroBatch)
	}
	if len(b.Records) != n || len(b.Inputs) != 2 {
		return nil, fmt.Errorf("stage batch: %d weights, %d record numbers, %d inputs: want as many numbers as weights, and features and labels", n, len(b.Records), len(b.Inputs))
	}
	features, labels := b.Inputs[0], b.Inputs[1]
	record := product(r.model.Input.Shape) * r.model.Input.Type.Size()
	if features.Type != r.model.Input.Type || len(features.Data) != n*record {
		return nil, fmt.Errorf("stage batch: features are %d bytes of %s, want %d records of %d bytes of %s", len(features.Data), features.Type, n, record, r.model.Input.Type)
	}
	answer, elements := r.model.Answer()
	size := elements * answer.Size()
	if labels.Type != answer || len(labels.Data) != n*size {
		return nil, fmt.Errorf("stage batch: labels are %d bytes of %s, want %d of %s", len(labels.Data), labels.Type, n*elements, answer)
	}
	s := &staged{pass: pass{seed: b.Seed, epoch: b.Epoch}, home: &r.buffers, features: r.buffers.get(r.options.MicroBatch * record)}
	for i, w := range b.Weights {
		if w == 0 {
			continue
		}
		values := features.Data[i*record : (i+1)*record]
		err := s.addAnswer(r.model, labels.Data[i*size:(i+1)*size])
		switch {
		case !(w >= 0) || math.IsInf(float64(w), 0):
			err = fmt.Errorf("weight %v", w)
		case err == nil:
			err = r.checkIDs(values)
		}
		if err != nil {
			s.Release()
			return nil, fmt.Errorf("stage batch: record %d has %w", b.Records[i], err)
		}
		s.pass.weights = append(s.pass.weights, w)
		s.pass.records = append(s.pass.records, b.Records[i])
		s.pass.total += float64(w)
		s.places = append(s.places, i)
		s.features = append(s.features, values...)
	}
	s.pass.n = len(s.pass.weights)
	return s, nil
}

// addAnswer checks and keeps a record's target.
func (s *staged) addAnswer(m *model.Model, data []byte) error {
	of, _ := m.Answer()
	width := of.Size()
	for i := 0; i < len(data); i += width {
		if of == model.F32 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
			if v-v != 0 {
				return fmt.Errorf("the number %v, which is not finite, at place %d of its target", v, i/width)
			}
			s.pass.numbers = append(s.pass.numbers, v)
			continue
		}
		label := int32(data[i])
		if of == model.I32 {
			label = int32(binary.LittleEndian.Uint32(data[i:]))
		}
		if label < 0 || int(label) >= m.Classes {
			return fmt.Errorf("label %d%s, but there are %d classes", label, namePosition(i/width, len(data)/width), m.Classes)
		}
		s.pass.labels = append(s.pass.labels, label)
	}
	return nil
}

// namePosition returns the place of an element in a record of n, as errors name it.
func namePosition(i, n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" at position %d", i)
}

// checkIDs checks a record's features where they are ids.
func (r *replica) checkIDs(data []byte) error {
	vocabulary, width := r.vocabulary, r.model.Input.Type.Size()
	if vocabulary == 0 {
		return nil
	}
	for i := 0; i < len(data); i += width {
		id := int64(data[i])
		switch r.model.Input.Type {
		case model.I32:
			id = int64(int32(binary.LittleEndian.Uint32(data[i:])))
		case model.I64:
			id = int64(binary.LittleEndian.Uint64(data[i:]))
		}
		if id < 0 || id >= int64(vocabulary) {
			return fmt.Errorf("id %d%s, but the vocabulary has %d", id, namePosition(i/width, len(data)/width), vocabulary)
		}
	}
	return nil
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
