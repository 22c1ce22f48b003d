package cpu_test

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

const positions, vocabulary = 5, 4

// sentences is a small model of ids with a class for each position.
func sentences(layers ...model.Layer) *model.Model {
	return &model.Model{
		Name: "small", Classes: classes, Layers: layers, Loss: model.SoftmaxCrossEntropy, Metrics: []string{model.Accuracy},
		Input: model.Features{Type: model.U8, Shape: []int{positions}}, Target: model.Features{Type: model.U8, Shape: []int{positions}},
	}
}

// tracks is a small model of positions × width numbers with a class for each position.
func tracks(width int, layers ...model.Layer) *model.Model {
	m := sentences(layers...)
	m.Input = model.Features{Type: model.F32, Shape: []int{positions, width}}
	m.Target.Type = model.I32
	return m
}

func embedding(name string, units int) model.Layer {
	return model.Layer{Name: name, Op: model.Embedding, Vocabulary: vocabulary, Units: units}
}

func attention(heads int, causal bool, inputs ...string) model.Layer {
	return model.Layer{Name: "mix", Op: model.Attention, Heads: heads, Causal: causal, Inputs: inputs}
}

// product is a matrix product; turned: its second input is transposed.
func product(name string, turned bool, inputs ...string) model.Layer {
	return model.Layer{Name: name, Op: model.MatMul, Transpose: turned, Inputs: inputs}
}

// block is a transformer's.
func block() *model.Model {
	return sentences(embedding("embed", 6), op("place", model.Position),
		op("norm", model.LayerNorm), dense("q", 6), reading(dense("k", 6), "norm"), reading(dense("v", 6), "norm"),
		attention(2, true, "q", "k", "v"), dense("project", 6), reading(op("sum", model.Add), "place", "project"),
		op("norm2", model.LayerNorm), dense("hidden", 40), op("gelu", model.GELU), dense("back", 6),
		reading(op("sum2", model.Add), "sum", "back"), dense("out", classes))
}

// Each operation on sequences, in each place of a graph, against differences of the loss.
func TestSequenceGradients(t *testing.T) {
	one := func(m *model.Model) *model.Model { // class per record
		m.Target = model.Features{}
		return m
	}
	ids := func(of model.DType, m *model.Model) *model.Model {
		m.Input.Type = of
		return m
	}
	for name, m := range map[string]*model.Model{
		"transformer block":          block(),
		"ids of 32 bits, one class":  ids(model.I32, one(sentences(embedding("embed", 3), flat, dense("out", classes)))),
		"ids of 64 bits, two tables": ids(model.I64, sentences(embedding("a", 3), reading(embedding("b", 3), model.Source), reading(op("sum", model.Add), "a", "b"), dense("out", classes))),
		"attention to itself":        one(sentences(embedding("embed", 4), attention(2, false, "embed", "embed", "embed"), flat, dense("out", classes))),
		"one head":                   sentences(embedding("embed", 4), dense("a", 4), attention(1, true, "a", "embed", "a"), dense("out", classes)),
		"only keys learn":            tracks(4, dense("a", 4), attention(2, true, model.Source, "a", model.Source), dense("out", classes)),
		"only queries learn":         tracks(4, dense("a", 4), attention(4, false, "a", model.Source, model.Source), dense("out", classes)),
		"only values learn":          tracks(4, dense("a", 4), attention(1, false, model.Source, model.Source, "a"), dense("out", classes)),
		"nothing before learns":      tracks(4, attention(2, true, model.Source, model.Source, model.Source), dense("out", classes)),
		"positions of the input":     tracks(3, op("place", model.Position), dense("out", classes)),
		"positions that others read": sentences(embedding("embed", 4), op("place", model.Position), op("relu", model.ReLU),
			op("more", model.Position), reading(op("sum", model.Add), "relu", "more", "embed", "place"), dense("out", classes)),
		"dense, wide":                  tracks(4, dense("a", 40), op("tanh", model.Tanh), dense("out", classes)),
		"products":                     tracks(4, dense("a", 6), reading(dense("b", 6), model.Source), product("ab", true, "a", "b"), product("aba", false, "ab", "a"), dense("out", classes)),
		"product with itself":          sentences(embedding("embed", 4), product("square", true, "embed", "embed"), dense("out", classes)),
		"first factor learns":          tracks(positions, dense("a", positions), product("p", false, "a", model.Source), dense("out", classes)),
		"second factor learns":         tracks(positions, dense("a", positions), product("p", false, model.Source, "a"), dense("out", classes)),
		"second factor learns, turned": tracks(4, dense("a", 4), product("p", true, model.Source, "a"), dense("out", classes)),
	} {
		t.Run(name, func(t *testing.T) { checkGradients(t, m, 1, 0.5, 2, 1) })
	}
}

func TestLossGradients(t *testing.T) {
	smooth := network([]int{5}, dense("a", 6), op("tanh", model.Tanh), dense("out", classes))
	smooth.LabelSmoothing = 0.2
	positionwise := block()
	positionwise.LabelSmoothing = 0.1
	for name, m := range map[string]*model.Model{
		"label smoothing": smooth, "label smoothing of positions": positionwise,
		"numbers": numbers(dense("a", 6), op("tanh", model.Tanh), dense("out", 2)), "a line": numbers(dense("out", 2)),
	} {
		t.Run(name, func(t *testing.T) { checkGradients(t, m, 1, 0.5, 2) })
	}
}

// numbers is a small model whose target is two numbers.
func numbers(layers ...model.Layer) *model.Model {
	return &model.Model{
		Name: "numbers", Layers: layers, Loss: model.MeanSquaredError, Metrics: []string{model.MeanAbsoluteError},
		Input: model.Features{Type: model.F32, Shape: []int{3}}, Target: model.Features{Type: model.F32, Shape: []int{2}},
	}
}

// Attention against its definition, written out.
func TestAttentionOutputs(t *testing.T) {
	const width, heads = 6, 2
	for _, causal := range []bool{false, true} {
		m := tracks(width, op("twice", model.Tanh), attention(heads, causal, model.Source, "twice", model.Source), dense("out", width))
		m.Classes = width
		r := build(t, m, engine.Options{Threads: 1, MicroBatch: 2})
		weight := make([]float32, width*width+width)
		for i := range width {
			weight[i*width+i] = 1
		}
		if err := r.Put(0, 0, weight); err != nil {
			t.Fatal(err)
		}
		b := records(m, 1, 1)
		got := make([]float32, 2*positions*width)
		if _, err := evaluate(r, stage(t, r, b), got); err != nil {
			t.Fatal(err)
		}
		x := decode(b)
		for at := range got {
			record, i, c := at/width/positions*positions*width, at/width%positions, at%width
			first := c / (width / heads) * (width / heads)
			want, total := 0.0, 0.0
			for j := range positions {
				if causal && j > i {
					continue
				}
				dot := 0.0
				for k := first; k < first+width/heads; k++ {
					dot += float64(x[record+i*width+k]) * math.Tanh(float64(x[record+j*width+k]))
				}
				e := math.Exp(dot / math.Sqrt(width/heads))
				want += e * float64(x[record+j*width+c])
				total += e
			}
			if math.Abs(want/total-float64(got[at])) > 1e-6 {
				t.Fatalf("causal %v: element %d is %v, want %v", causal, at, got[at], want/total)
			}
		}
	}
}

// A causal model's answers do not depend on later ids.
func TestCausal(t *testing.T) {
	m := block()
	r := build(t, m, engine.Options{Threads: 1, MicroBatch: 1, Seed: 2})
	jitter(t, r)
	b := records(m, 1)
	answers := func() []float32 {
		out := make([]float32, positions*classes)
		if _, err := evaluate(r, stage(t, r, b), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := answers()
	b.Inputs[0].Data[positions-1] ^= 1
	after := answers()
	last := (positions - 1) * classes
	if !cmp.Equal(before[:last], after[:last]) || cmp.Equal(before[last:], after[last:]) {
		t.Errorf("another last id: %v before, %v after", before, after)
	}
}

// Deterministic sums do not depend on threads, and padding changes nothing.
func TestSequencesAreDeterministic(t *testing.T) {
	m := block()
	b := records(m, 1, 1, 0, 1, 1, 2, 1, 1, 1)
	copy(b.Inputs[0].Data[2*positions:], "\xff\xff") // ids and labels that cannot be, of weight 0
	copy(b.Inputs[1].Data[2*positions:], "\xff\xff")
	var want []float32
	for _, threads := range []int{1, 3} {
		for _, batch := range []*engine.Batch{b, keep(b, 0, 1, 3, 4, 5, 6, 7, 8)} {
			r := build(t, m, engine.Options{Threads: threads, MicroBatch: 9, Seed: 3, Deterministic: true})
			sums, _ := step(t, r, stage(t, r, batch))
			if want == nil {
				want = sums
			} else if !cmp.Equal(want, sums) {
				t.Errorf("%d threads, %d records have other sums", threads, len(batch.Weights))
			}
		}
	}
}

// Losses and metrics that are known by hand.
func TestMetrics(t *testing.T) {
	m := network([]int{7}, dense("out", 7))
	m.Classes, m.LabelSmoothing, m.Metrics = 7, 0.1, []string{model.Perplexity, model.Top5Accuracy, model.Accuracy}
	r := build(t, m, engine.Options{Threads: 1, MicroBatch: 4})
	vars, _ := r.Layout()
	weight := make([]float32, model.Length(vars))
	for i := range 7 {
		weight[i*7+i] = 1
	}
	if err := r.Put(0, 0, weight); err != nil {
		t.Fatal(err)
	}
	z := []float32{1, 6, 5, 4, 3, 2, 0}
	b := rows(7, append(append(append(append([]float32{}, z...), z...), z...), 1, 1, 1, 1, 1, 1, 1)...)
	b.Weights = []float32{1, 2, 4, 8}
	for i, label := range []uint32{1, 5, 0, 5} { // the best, the fifth, the sixth, the sixth of equal ones
		binary.LittleEndian.PutUint32(b.Inputs[1].Data[4*i:], label)
	}
	norm := 0.0
	for _, v := range z {
		norm += math.Exp(float64(v))
	}
	plain := (math.Log(norm) - 6) + 2*(math.Log(norm)-2) + 4*(math.Log(norm)-1) + 8*math.Log(7)
	mean := 3.0 // of z
	smoothed := plain + 0.1*((6-mean)+2*(2-mean)+4*(1-mean))
	s := stage(t, r, b)
	got, err := evaluate(r, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Result{Weight: 15, Loss: plain, Metrics: []float64{plain, 3, 1}, Finite: true}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error("evaluated:", diff)
	}
	_, got = step(t, r, s)
	want.Loss = smoothed
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error("trained:", diff)
	}
}

// The loss and the accuracy of a record are means over its positions.
func TestSequenceLoss(t *testing.T) {
	m := sentences(embedding("embed", 2), dense("out", classes))
	r := build(t, m, engine.Options{Threads: 1, MicroBatch: 1})
	if err := r.Put(0, 0, make([]float32, len(values(t, r)))); err != nil {
		t.Fatal(err)
	}
	b := records(m, 2)
	b.Inputs[1].Data = []byte{0, 1, 0, 2, 2} // of equal logits, class 0 answers
	_, got := step(t, r, stage(t, r, b))
	if math.Abs(got.Loss-2*math.Log(3)) > 1e-6 || math.Abs(got.Metrics[0]-2*0.4) > 1e-9 || got.Weight != 2 {
		t.Errorf("result %+v", got)
	}
}

func TestMeanSquaredError(t *testing.T) {
	r := build(t, numbers(dense("out", 2)), engine.Options{Threads: 1, MicroBatch: 2})
	if err := r.Put(0, 0, []float32{1, 0, 0, 1, 0, 0, 0, 0.5}); err != nil { // the first two inputs, and 0.5
		t.Fatal(err)
	}
	b := rows(3, 1, 2, 9, -1, 0, 9)
	b.Weights = []float32{1, 3}
	var answers []byte
	for _, v := range []float32{0, 3, -1, 0.5} { // off by 1 and -0.5; right
		answers = number(answers, model.F32, v)
	}
	b.Inputs[1] = engine.Input{Type: model.F32, Data: answers}
	out := make([]float32, 4)
	got, err := evaluate(r, stage(t, r, b), out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(engine.Result{Weight: 4, Loss: 0.625, Metrics: []float64{0.75}, Finite: true}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float32{1, 2.5, -1, 0.5}, out); diff != "" {
		t.Error("predictions:", diff)
	}
}

// Records that do not fit are errors that name the record.
func TestSequenceRefusals(t *testing.T) {
	for want, test := range map[string]struct {
		m     *model.Model
		spoil func(b *engine.Batch)
	}{
		"record 101 has label 3 at position 2, but there are 3 classes": {block(), func(b *engine.Batch) { b.Inputs[1].Data[positions+2] = 3 }},
		"record 101 has id 4 at position 1, but the vocabulary has 4":   {block(), func(b *engine.Batch) { b.Inputs[0].Data[positions+1] = 4 }},
		"labels are 10 bytes of i32, want 10 of u8":                     {block(), func(b *engine.Batch) { b.Inputs[1].Type = model.I32 }},
		"labels are 9 bytes of u8":                                      {block(), func(b *engine.Batch) { b.Inputs[1].Data = b.Inputs[1].Data[1:] }},
		"label -1 at position 0":                                        {tracks(3, dense("out", classes)), func(b *engine.Batch) { copy(b.Inputs[1].Data, "\xff\xff\xff\xff") }},
		"record 101 has the number NaN, which is not finite, at place 1": {numbers(dense("out", 2)), func(b *engine.Batch) {
			binary.LittleEndian.PutUint32(b.Inputs[1].Data[12:], math.Float32bits(float32(math.NaN())))
		}},
	} {
		r := build(t, test.m, engine.Options{Threads: 1, MicroBatch: 2})
		b := records(test.m, 1, 1)
		test.spoil(b)
		if _, err := r.Stage(context.Background(), b, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	negative := sentences(embedding("embed", 3), dense("out", classes))
	negative.Input.Type = model.I64
	r := build(t, negative, engine.Options{Threads: 1, MicroBatch: 1})
	b := records(negative, 1)
	binary.LittleEndian.PutUint64(b.Inputs[0].Data, 1<<63)
	if _, err := r.Stage(context.Background(), b, nil); err == nil || !strings.Contains(err.Error(), "id -9223372036854775808 at position 0") {
		t.Errorf("a negative id: %v", err)
	}
	if _, err := evaluate(r, stage(t, r, records(negative, 1)), make([]float32, classes)); err == nil || !strings.Contains(err.Error(), "want 15") {
		t.Errorf("room for one position: %v", err)
	}
}
