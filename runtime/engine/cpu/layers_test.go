package cpu_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

// rows makes a batch of records of the given width with weight 1 and label 0.
func rows(width int, data ...float32) *engine.Batch {
	b := &engine.Batch{}
	var features []byte
	for _, v := range data {
		features = binary.LittleEndian.AppendUint32(features, math.Float32bits(v))
	}
	for i := range len(data) / width {
		b.Weights, b.Records = append(b.Weights, 1), append(b.Records, int64(i))
	}
	b.Inputs = []engine.Input{{Type: model.F32, Data: features}, {Type: model.I32, Data: make([]byte, 4*len(b.Weights))}}
	return b
}

func decode(b *engine.Batch) []float32 {
	v := make([]float32, len(b.Inputs[0].Data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b.Inputs[0].Data[4*i:]))
	}
	return v
}

// predict returns the logits of a batch that fills the micro-batch.
func predict(t testing.TB, r engine.Replica, b *engine.Batch) []float32 {
	t.Helper()
	out := make([]float32, len(b.Weights)*classes)
	if _, err := evaluate(r, stage(t, r, b), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// identity makes a network's last dense layer pass its inputs through.
func identity(t testing.TB, r engine.Replica, variable int) {
	t.Helper()
	vars, _ := r.Layout()
	v := make([]float32, classes*classes)
	for i := range classes {
		v[i*classes+i] = 1
	}
	if err := r.Put(0, vars[variable].Offset, v); err != nil {
		t.Fatal(err)
	}
}

func TestReLU(t *testing.T) {
	m := network([]int{5}, dense("a", 9), rectify, dense("out", classes))
	checkGradients(t, m, 1, 1, 2, 1)
	r := build(t, network([]int{3}, rectify, dense("out", classes)), engine.Options{Threads: 1, MicroBatch: 1})
	identity(t, r, 0)
	if diff := cmp.Diff([]float32{0, 2, 0}, predict(t, r, rows(3, -1, 2, 0))); diff != "" {
		t.Error(diff)
	}
}

func TestMaxPool(t *testing.T) {
	pool := model.Layer{Name: "pool", Op: model.MaxPool, Kernel: 2}
	overlapping := model.Layer{Name: "pool", Op: model.MaxPool, Kernel: 3, Stride: 1}
	for _, l := range []model.Layer{pool, overlapping} {
		checkGradients(t, network([]int{7, 8}, conv("a", 3), l, flat, dense("out", classes)), 1, 1, 1)
	}
	// Three channels of one 2 × 2 window; the fifth column does not fit.
	r := build(t, network([]int{2, 3, 3}, pool, flat, dense("out", classes)), engine.Options{Threads: 1, MicroBatch: 1})
	identity(t, r, 0)
	got := predict(t, r, rows(18,
		1, -5, 0, 2, -6, 0, 99, 99, 99,
		3, -7, 4, 0, -8, 0, 99, 99, 99))
	if diff := cmp.Diff([]float32{3, -5, 4}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDropoutGradients(t *testing.T) {
	drop := model.Layer{Name: "drop", Op: model.Dropout, Rate: 0.3}
	checkGradients(t, network([]int{5}, dense("a", 20), rectify, drop, dense("out", classes)), 1, 1, 1)
}

// Which elements are dropped follows from seed, epoch, record and layer, not
// from the place in the batch or the thread; about as many as the rate says.
func TestDropoutMasks(t *testing.T) {
	const width = 5000
	net := func(name string) *model.Model {
		return network([]int{width}, model.Layer{Name: name, Op: model.Dropout, Rate: 0.25}, dense("out", classes))
	}
	// The weight's gradient column of the label's class shows the mask: x = 1.
	mask := func(name string, o engine.Options, seed, epoch uint64, record int64, place int) []float32 {
		r := build(t, net(name), o)
		b := rows(width, make([]float32, width*o.MicroBatch)...)
		b.Seed, b.Epoch = seed, epoch
		for i := range b.Weights {
			b.Weights[i], b.Records[i] = 0, -1
		}
		b.Weights[place], b.Records[place] = 1, record
		for i := range width {
			binary.LittleEndian.PutUint32(b.Inputs[0].Data[4*(place*width+i):], math.Float32bits(1))
		}
		// Equal logits, whatever was dropped.
		vars, _ := r.Layout()
		if err := r.Put(0, 0, make([]float32, model.Length(vars))); err != nil {
			t.Fatal(err)
		}
		sums, _ := step(t, r, stage(t, r, b))
		out := make([]float32, width)
		for i := range out {
			out[i] = sums[i*classes]
		}
		return out
	}
	one := engine.Options{Threads: 1, MicroBatch: 1}
	four := engine.Options{Threads: 2, MicroBatch: 4}
	base := mask("drop", one, 1, 2, 3, 0)
	dropped := 0
	for _, v := range base {
		if v == 0 {
			dropped++
		} else if math.Abs(float64(v)+2.0/3/0.75) > 1e-5 {
			t.Fatalf("a kept element has gradient %v, want it scaled by 1/0.75", v)
		}
	}
	if dropped < width/5 || dropped > width*3/10 {
		t.Errorf("%d of %d dropped, want about a quarter", dropped, width)
	}
	if !cmp.Equal(base, mask("drop", four, 1, 2, 3, 2)) {
		t.Error("the mask depends on the place in the batch")
	}
	for name, other := range map[string][]float32{
		"seed":   mask("drop", one, 2, 2, 3, 0),
		"epoch":  mask("drop", one, 1, 3, 3, 0),
		"record": mask("drop", one, 1, 2, 4, 0),
		"layer":  mask("other", one, 1, 2, 3, 0),
	} {
		if cmp.Equal(base, other) {
			t.Errorf("the mask does not depend on the %s", name)
		}
	}
}

func TestLoss(t *testing.T) {
	r := build(t, network([]int{3}, dense("out", classes)), engine.Options{Threads: 1, MicroBatch: 3})
	if err := r.Put(0, 0, make([]float32, 12)); err != nil {
		t.Fatal(err)
	}
	identity(t, r, 0)
	b := rows(3, 1, 2, 3, 1000, 0, 0, 5, 5, 0)
	b.Weights = []float32{1, 2, 4}
	binary.LittleEndian.PutUint32(b.Inputs[1].Data, 1)     // record 0: wrong
	binary.LittleEndian.PutUint32(b.Inputs[1].Data[8:], 1) // record 2: a tie, which class 0 wins
	res, err := evaluate(r, stage(t, r, b), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Log(math.Exp(-1)+1+math.E) + 4*math.Log(2+math.Exp(-5))
	if math.Abs(res.Loss-want) > 1e-6 || res.Weight != 7 || res.Metrics[0] != 2 || !res.Finite {
		t.Errorf("result %+v, want loss %v, weight 7, 2 correct", res, want)
	}
}
