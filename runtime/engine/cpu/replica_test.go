package cpu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
)

// everything is a network with every operation.
func everything() *model.Model {
	return network([]int{8, 8}, conv("conv", 6), rectify, normalise,
		model.Layer{Name: "pool", Op: model.MaxPool, Kernel: 2},
		model.Layer{Name: "drop", Op: model.Dropout, Rate: 0.25}, flat, dense("out", classes))
}

// keep returns a batch of the records at the given places.
func keep(b *engine.Batch, places ...int) *engine.Batch {
	out := &engine.Batch{Seed: b.Seed, Epoch: b.Epoch, Inputs: []engine.Input{{Type: b.Inputs[0].Type}, {Type: b.Inputs[1].Type}}}
	for _, p := range places {
		out.Weights, out.Records = append(out.Weights, b.Weights[p]), append(out.Records, b.Records[p])
		for i, in := range b.Inputs {
			size := len(in.Data) / len(b.Weights)
			out.Inputs[i].Data = append(out.Inputs[i].Data, in.Data[p*size:(p+1)*size]...)
		}
	}
	return out
}

// Records of weight 0 change no bit of anything, whatever they hold.
func TestPaddingChangesNothing(t *testing.T) {
	m := everything()
	padded := floats(m.Input.Shape, 1, 0, 2, 1, 0, 0)
	size := len(padded.Inputs[0].Data) / 6
	for i := size; i < 2*size; i += 4 {
		binary.LittleEndian.PutUint32(padded.Inputs[0].Data[i:], math.Float32bits(float32(math.NaN())))
	}
	binary.LittleEndian.PutUint32(padded.Inputs[1].Data[4:], 12345) // a label that cannot be
	r := build(t, m, engine.Options{Threads: 2, MicroBatch: 6})
	got, gotResult := step(t, r, stage(t, r, padded))
	want, wantResult := step(t, r, stage(t, r, keep(padded, 0, 2, 3)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("sums:", diff)
	}
	if diff := cmp.Diff(wantResult, gotResult); diff != "" {
		t.Error("result:", diff)
	}
	out := make([]float32, 6*classes)
	if _, err := evaluate(r, stage(t, r, padded), out); err != nil {
		t.Fatal(err)
	}
	packed := make([]float32, 6*classes)
	if _, err := evaluate(r, stage(t, r, keep(padded, 0, 2, 3)), packed); err != nil {
		t.Fatal(err)
	}
	zero := make([]float32, classes)
	for place, from := range []int{0, -1, 1, 2, -1, -1} {
		expected := zero
		if from >= 0 {
			expected = packed[from*classes : (from+1)*classes]
		}
		if diff := cmp.Diff(expected, out[place*classes:(place+1)*classes]); diff != "" {
			t.Errorf("prediction %d: %s", place, diff)
		}
	}
}

// A micro-batch of padding only is a step that adds nothing.
func TestOnlyPadding(t *testing.T) {
	r := build(t, everything(), engine.Options{Threads: 2, MicroBatch: 2})
	sums, res := step(t, r, stage(t, r, floats([]int{8, 8}, 0, 0)))
	if res.Weight != 0 || res.Loss != 0 || !res.Finite || res.Metrics[0] != 0 {
		t.Errorf("result %+v", res)
	}
	for i, v := range sums {
		if v != 0 {
			t.Fatalf("sum %d is %v", i, v)
		}
	}
}

// Without batch normalisation, a batch in pieces sums to the same gradient.
func TestAccumulation(t *testing.T) {
	m := network([]int{8, 8}, conv("conv", 6), rectify, flat, dense("out", classes))
	r := build(t, m, engine.Options{Threads: 2, MicroBatch: 6})
	b := floats(m.Input.Shape, 1, 1, 2, 1, 1, 0.5)
	whole, wholeResult := step(t, r, stage(t, r, b))
	pieces, piecesResult := step(t, r, stage(t, r, keep(b, 0, 1)), stage(t, r, keep(b, 2)), stage(t, r, keep(b, 3, 4, 5)))
	for i := range whole {
		if math.Abs(float64(whole[i]-pieces[i])) > 1e-5 {
			t.Fatalf("sum %d: %v in one, %v in pieces", i, whole[i], pieces[i])
		}
	}
	if math.Abs(wholeResult.Loss-piecesResult.Loss) > 1e-6 || wholeResult.Weight != piecesResult.Weight || wholeResult.Metrics[0] != piecesResult.Metrics[0] {
		t.Errorf("%+v in one, %+v in pieces", wholeResult, piecesResult)
	}
}

// Deterministic sums do not depend on the number of threads.
func TestDeterministic(t *testing.T) {
	var first []float32
	for _, threads := range []int{1, 2, 3, 5} {
		r := build(t, everything(), engine.Options{Threads: threads, MicroBatch: 11, Deterministic: true, Seed: 4})
		weights := []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
		sums, _ := step(t, r, stage(t, r, floats([]int{8, 8}, weights...)))
		if first == nil {
			first = sums
		}
		if diff := cmp.Diff(first, sums); diff != "" {
			t.Errorf("%d threads: %s", threads, diff)
		}
	}
}

// Ready hears of the whole vector, in spans from the back to the front but
// for the moments, which are complete first.
func TestReadySpans(t *testing.T) {
	r := build(t, everything(), engine.Options{Threads: 1, MicroBatch: 2})
	s := stage(t, r, floats([]int{8, 8}, 1, 1))
	vars, _ := r.Layout()
	end := model.Length(vars)
	var reported []int
	_, err := r.Step(context.Background(), s, engine.Pass{First: true, Last: true, Ready: func(offset int, sums []float32) {
		if offset+len(sums) != end {
			t.Errorf("span %d to %d after %d", offset, offset+len(sums), end)
		}
		end = offset
		reported = append(reported, offset)
	}})
	if err != nil || end != 0 || len(reported) != 4 {
		t.Errorf("error %v, spans at %v", err, reported)
	}
	if _, err := r.Step(context.Background(), s, engine.Pass{Last: true}); err == nil {
		t.Error("a step went on with an accumulation that was over")
	}
}

func TestNotFinite(t *testing.T) {
	r := build(t, network([]int{2}, dense("out", classes)), engine.Options{Threads: 1, MicroBatch: 1})
	if err := r.Put(0, 0, []float32{float32(math.Inf(1))}); err != nil {
		t.Fatal(err)
	}
	if _, res := step(t, r, stage(t, r, rows(2, 1, 1))); res.Finite {
		t.Error("an infinite weight went unseen")
	}
}

func TestForkHasValuesOfItsOwn(t *testing.T) {
	r := build(t, everything(), engine.Options{Threads: 2, MicroBatch: 2, Seed: 1})
	jitter(t, r)
	before := values(t, r)
	f, err := r.Fork()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.Put(0, 0, make([]float32, len(before))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, values(t, f)); diff != "" {
		t.Error(diff)
	}
	s := stage(t, r, floats([]int{8, 8}, 1, 1))
	if _, err := evaluate(f, s, nil); err != nil {
		t.Error("a batch staged by the parent:", err)
	}
}

func TestRefusals(t *testing.T) {
	m := everything()
	for name, fits := range map[string]bool{"": true, "f32": true, "tf32": false, "bf16": false} {
		r, err := cpu.New().Build(m, engine.Options{MicroBatch: 1, ComputeType: name})
		if (err == nil) != fits {
			t.Errorf("compute type %q: %v", name, err)
		}
		if err == nil {
			r.Close()
		}
	}
	if _, err := cpu.New().Build(m, engine.Options{}); err == nil {
		t.Error("built for micro-batch 0")
	}
	big := network([]int{2}, dense("a", 4096), dense("out", classes))
	if _, err := cpu.New().Build(big, engine.Options{MicroBatch: 1 << 20}); err == nil || !strings.Contains(err.Error(), "smaller") {
		t.Error("buffers of 16 GB:", err)
	}
	r := build(t, m, engine.Options{Threads: 1, MicroBatch: 2})
	good := func() *engine.Batch { return floats(m.Input.Shape, 1, 1) }
	for want, spoil := range map[string]func(b *engine.Batch){
		"label 3":          func(b *engine.Batch) { b.Inputs[1].Data[0] = 3 },
		"label -1":         func(b *engine.Batch) { copy(b.Inputs[1].Data, "\xff\xff\xff\xff") },
		"weight -1":        func(b *engine.Batch) { b.Weights[1] = -1 },
		"weight NaN":       func(b *engine.Batch) { b.Weights[1] = float32(math.NaN()) },
		"features":         func(b *engine.Batch) { b.Inputs[0].Data = b.Inputs[0].Data[1:] },
		"labels":           func(b *engine.Batch) { b.Inputs[1].Type = model.I64 },
		"inputs":           func(b *engine.Batch) { b.Inputs = nil },
		"micro-batch is 2": func(b *engine.Batch) { b.Weights = make([]float32, 3) },
	} {
		b := good()
		spoil(b)
		if _, err := r.Stage(context.Background(), b, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
	for _, err := range []error{r.Put(3, 0, nil), r.Put(-1, 0, nil), r.Put(0, -1, nil), r.Put(0, 0, make([]float32, 1<<20)), r.Get(0, math.MaxInt, []float32{1})} {
		if err == nil {
			t.Error("a span outside the vector was accepted")
		}
	}
	s := stage(t, r, good())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Step(ctx, s, engine.Pass{First: true, Last: true}); err == nil {
		t.Error("a cancelled step ran")
	}
	r.Close()
	if _, err := r.Step(context.Background(), s, engine.Pass{First: true, Last: true}); err == nil {
		t.Error("a closed replica stepped")
	}
}

// A replica that computes in memory of its caller gives the same bits as one with memory of its
// own, changes no parameter there, and has memory of its own again afterwards.
func TestBorrowedMemory(t *testing.T) {
	m := everything()
	options := engine.Options{Threads: 2, MicroBatch: 6}
	plain, r := build(t, m, options), build(t, m, options)
	b := engine.BorrowerOf(r)
	batch := floats(m.Input.Shape, 1, 0, 2, 1, 0, 0)
	lent, sums := make([]float32, len(values(t, r))), make([]float32, len(values(t, r)))
	for i := range lent {
		lent[i] = float32(i%7) / 8
	}
	before := slices.Clone(lent)
	if err := plain.Put(0, 0, lent); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.BorrowParameters(lent), b.BorrowSums(sums)); err != nil {
		t.Fatal(err)
	}
	want, _ := step(t, plain, stage(t, plain, batch))
	if got, _ := step(t, r, stage(t, r, batch)); !slices.Equal(got, want) || !slices.Equal(sums, want) {
		t.Error("other sums in memory of the caller")
	}
	var out, wantOut [6 * classes]float32
	if _, err := evaluate(r, stage(t, r, batch), out[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := evaluate(plain, stage(t, plain, batch), wantOut[:]); err != nil || out != wantOut {
		t.Error("other predictions with parameters of the caller", err)
	}
	recipe := optimizer.Recipe{LearningRate: 0.1}
	if err := r.(engine.Updater).Update(want, 1, recipe); err != nil {
		t.Fatal(err)
	}
	if err := plain.(engine.Updater).Update(want, 1, recipe); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(values(t, r), values(t, plain)) || !slices.Equal(lent, before) {
		t.Error("an update of borrowed parameters is another one, or changes them")
	}
	if err := errors.Join(b.BorrowParameters(lent), b.Put(0, 3, []float32{5})); err != nil {
		t.Fatal(err)
	}
	if got := values(t, r); got[3] != 5 || got[4] != before[4] || !slices.Equal(lent, before) {
		t.Error("a value is put where it does not belong")
	}
	if err := errors.Join(b.BorrowParameters(lent), b.BorrowSums(nil), r.Put(0, 0, before)); err != nil {
		t.Fatal(err)
	}
	clear(sums)
	if got, _ := step(t, r, stage(t, r, batch)); !slices.Equal(got, want) || slices.Equal(sums, want) || !slices.Equal(lent, before) {
		t.Error("other sums after memory was given back, or they are still there")
	}
	for _, err := range []error{b.BorrowParameters(lent[1:]), b.BorrowSums(lent[1:])} {
		if err == nil || !strings.Contains(err.Error(), "values, want") {
			t.Error("memory of another length:", err)
		}
	}
}
