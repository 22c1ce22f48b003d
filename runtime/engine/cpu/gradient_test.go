package cpu_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
)

const classes = 3

// network is a small model of float records of the given shape.
func network(shape []int, layers ...model.Layer) *model.Model {
	return &model.Model{
		Name: "small", Classes: classes, Layers: layers,
		Input: model.Features{Type: model.F32, Shape: shape},
		Loss:  model.SoftmaxCrossEntropy, Metrics: []string{model.Accuracy},
	}
}

// floats makes a batch of records from −1 … 1 with the given weights.
func floats(shape []int, weights ...float32) *engine.Batch {
	return records(network(shape), weights...)
}

// records makes a batch for the model: numbers from −1 … 1, or ids where an embedding
// reads them, and answers.
func records(m *model.Model, weights ...float32) *engine.Batch {
	random := rand.New(rand.NewPCG(5, 6))
	size := 1
	for _, d := range m.Input.Shape {
		size *= d
	}
	answer, elements := m.Answer()
	var features, answers []byte
	b := &engine.Batch{Weights: weights, Seed: 11, Epoch: 2}
	for i := range weights {
		b.Records = append(b.Records, int64(100+i))
		for range size {
			if m.Vocabulary() > 0 {
				features = number(features, m.Input.Type, float32(random.Uint32()%uint32(m.Vocabulary())))
			} else {
				features = number(features, m.Input.Type, 2*random.Float32()-1)
			}
		}
		for range elements {
			if answer == model.F32 {
				answers = number(answers, answer, 2*random.Float32()-1)
			} else {
				answers = number(answers, answer, float32(random.Uint32()%uint32(m.Classes)))
			}
		}
	}
	b.Inputs = []engine.Input{{Type: m.Input.Type, Data: features}, {Type: answer, Data: answers}}
	return b
}

// number appends a number as an element of the type.
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

func build(t testing.TB, m *model.Model, o engine.Options) engine.Replica {
	t.Helper()
	r, err := cpu.New().Build(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func stage(t testing.TB, r engine.Replica, b *engine.Batch) engine.Staged {
	t.Helper()
	s, err := r.Stage(context.Background(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func values(t testing.TB, r engine.Replica) []float32 {
	t.Helper()
	vars, _ := r.Layout()
	v := make([]float32, model.Length(vars))
	if err := r.Get(0, 0, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// step runs one whole update's sums.
func step(t testing.TB, r engine.Replica, batches ...engine.Staged) ([]float32, engine.Result) {
	t.Helper()
	sums := make([]float32, len(values(t, r)))
	for i, s := range batches {
		result, err := r.Step(context.Background(), s, engine.Pass{
			First: i == 0, Last: i == len(batches)-1,
			Ready: func(offset int, span []float32) { copy(sums[offset:], span) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if i == len(batches)-1 {
			return sums, result
		}
		if !reflect.DeepEqual(result, engine.Result{}) {
			t.Errorf("micro-batch %d reports %+v before the pass is over", i, result)
		}
	}
	return sums, engine.Result{}
}

// evaluate runs one micro-batch as a pass of its own.
func evaluate(r engine.Replica, s engine.Staged, out []float32) (engine.Result, error) {
	return r.Evaluate(context.Background(), s, engine.Pass{First: true, Last: true}, out)
}

// jitter moves every trained value off its symmetric start.
func jitter(t testing.TB, r engine.Replica) {
	t.Helper()
	v := values(t, r)
	random := rand.New(rand.NewPCG(7, 8))
	for i := range v {
		v[i] += 0.2 * (random.Float32() - 0.5)
	}
	if err := r.Put(0, 0, v); err != nil {
		t.Fatal(err)
	}
}

// checkGradients compares each trained variable's sums with central
// differences of the loss.
func checkGradients(t *testing.T, m *model.Model, weights ...float32) {
	t.Helper()
	for _, o := range []engine.Options{
		{Threads: 3, MicroBatch: len(weights) + 2, Seed: 3},
		{Threads: 1, MicroBatch: len(weights), Seed: 3, Deterministic: true},
	} {
		r := build(t, m, o)
		jitter(t, r)
		s := stage(t, r, records(m, weights...))
		sums, first := step(t, r, s)
		at := values(t, r)
		loss := func(i int, h float32) float64 {
			if err := r.Put(0, i, []float32{at[i] + h}); err != nil {
				t.Fatal(err)
			}
			_, res := step(t, r, s)
			return res.Loss
		}
		vars, _ := r.Layout()
		for _, v := range vars {
			if v.Kind == model.Moment {
				continue
			}
			var wrong, size float64
			for i := v.Offset; i < v.Offset+v.Len; i++ {
				// A kink of a rectifier or a maximum spoils the larger
				// steps or one side, rounding the smaller steps: one of
				// the differences must agree.
				off, numeric := math.Inf(1), 0.0
				try := func(n float64) {
					if d := math.Abs(n - float64(sums[i])); d < off {
						off, numeric = d, n
					}
				}
				for _, h := range []float32{4e-3, 1e-3} {
					above, below := loss(i, h), loss(i, -h)
					try((above - below) / (2 * float64(h)))
					try((above - first.Loss) / float64(h))
					try((first.Loss - below) / float64(h))
					if off < 1e-3*math.Abs(numeric) {
						break
					}
				}
				if err := r.Put(0, i, at[i:i+1]); err != nil {
					t.Fatal(err)
				}
				wrong += off * off
				size += numeric * numeric
			}
			if math.Sqrt(wrong) > 0.01*math.Sqrt(size)+1e-3 {
				t.Errorf("%+v: gradient of %s is off by %.3g of %.3g", o, v.Name, math.Sqrt(wrong), math.Sqrt(size))
			}
		}
	}
}

func dense(name string, units int) model.Layer {
	return model.Layer{Name: name, Op: model.Dense, Units: units}
}

func conv(name string, filters int) model.Layer {
	return model.Layer{Name: name, Op: model.Conv2D, Filters: filters, Kernel: 3}
}

var (
	rectify = model.Layer{Name: "relu", Op: model.ReLU}
	flat    = model.Layer{Name: "flatten", Op: model.Flatten}
)
