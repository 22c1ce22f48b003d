package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// Check reports what a batch of at most so many records has that its model does not
// take: a wrong number of bytes, a label or an id that is out of range, a target or a
// weight that is not a finite number. Records of weight 0 may hold anything.
func (b *Batch) Check(m *model.Model, most int) error {
	n := len(b.Weights)
	if n > most {
		return fmt.Errorf("%d records, but the micro-batch is %d", n, most)
	}
	if len(b.Records) != n || len(b.Inputs) != 2 {
		return fmt.Errorf("%d weights, %d record numbers, %d inputs: want as many numbers as weights, and features and labels",
			n, len(b.Records), len(b.Inputs))
	}
	features, labels := b.Inputs[0], b.Inputs[1]
	record := FeatureBytes(m)
	if features.Type != m.Input.Type || len(features.Data) != n*record {
		return fmt.Errorf("features are %d bytes of %s, want %d records of %d bytes of %s",
			len(features.Data), features.Type, n, record, m.Input.Type)
	}
	answer, elements := m.Answer()
	size := elements * answer.Size()
	if labels.Type != answer || len(labels.Data) != n*size {
		return fmt.Errorf("labels are %d bytes of %s, want %d of %s", len(labels.Data), labels.Type, n*elements, answer)
	}
	vocabulary := m.Vocabulary()
	for i, w := range b.Weights {
		if w == 0 {
			continue
		}
		err := checkAnswer(m, labels.Data[i*size:(i+1)*size])
		switch {
		case !(w >= 0) || math.IsInf(float64(w), 0):
			err = fmt.Errorf("weight %v", w)
		case err == nil && vocabulary > 0:
			err = checkIDs(vocabulary, m.Input.Type, features.Data[i*record:(i+1)*record])
		}
		if err != nil {
			return fmt.Errorf("record %d has %w", b.Records[i], err)
		}
	}
	return nil
}

// FeatureBytes returns the bytes of a record's features.
func FeatureBytes(m *model.Model) int {
	n := m.Input.Type.Size()
	for _, d := range m.Input.Shape {
		n *= d
	}
	return n
}

// checkAnswer checks a record's target.
func checkAnswer(m *model.Model, data []byte) error {
	of, _ := m.Answer()
	width := of.Size()
	for i := 0; i < len(data); i += width {
		if of == model.F32 {
			if v := math.Float32frombits(binary.LittleEndian.Uint32(data[i:])); v-v != 0 {
				return fmt.Errorf("the number %v, which is not finite, at place %d of its target", v, i/width)
			}
			continue
		}
		label := int32(data[i])
		if of == model.I32 {
			label = int32(binary.LittleEndian.Uint32(data[i:]))
		}
		if label < 0 || int(label) >= m.Classes {
			return fmt.Errorf("label %d%s, but there are %d classes", label, namePosition(i/width, len(data)/width), m.Classes)
		}
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
func checkIDs(vocabulary int, of model.DType, data []byte) error {
	width := of.Size()
	for i := 0; i < len(data); i += width {
		id := int64(data[i])
		switch of {
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
