package xlatest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

// Batch makes records of random numbers, or ids, and answers. Records of weight 0 hold
// what counts nowhere.
func Batch(m *model.Model, seed uint64, weights ...float32) *engine.Batch {
	random := rand.New(rand.NewPCG(5, seed))
	b := &engine.Batch{Weights: weights, Seed: 11, Epoch: 2}
	size := engine.FeatureBytes(m) / m.Input.Type.Size()
	answer, elements := m.Answer()
	var features, answers []byte
	for i, w := range weights {
		b.Records = append(b.Records, int64(100*seed)+int64(i))
		for range size {
			v := 2*random.Float32() - 1
			switch {
			case w == 0 && m.Input.Type == model.F32:
				v = float32(math.NaN())
			case w == 0:
				v = 127
			case m.Vocabulary() > 0:
				v = float32(random.Uint32() % uint32(m.Vocabulary()))
			case m.Input.Type != model.F32:
				v = float32(random.Uint32() % 128)
			}
			features = number(features, m.Input.Type, v)
		}
		for range elements {
			v := 2*random.Float32() - 1
			if answer != model.F32 {
				v = float32(random.Uint32() % uint32(m.Classes))
			}
			answers = number(answers, answer, v)
		}
	}
	b.Inputs = []engine.Input{{Type: m.Input.Type, Data: features}, {Type: answer, Data: answers}}
	return b
}

func number(data []byte, of model.DType, v float32) []byte {
	switch of {
	case model.U8:
		return append(data, byte(v))
	case model.I32:
		return binary.LittleEndian.AppendUint32(data, uint32(int32(v)))
	case model.I64:
		return binary.LittleEndian.AppendUint64(data, uint64(int64(v)))
	}
	return binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
}
