//go:build gpu

package gpu_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/cuda"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/gpu"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// open starts XLA on the first GPU; a machine without one skips the test.
func open(t *testing.T) engine.Engine {
	t.Helper()
	return openPart(t, 0)
}

// openPart starts XLA with a part of the memory of the first GPU; 0: XLA's default.
func openPart(t *testing.T, fraction float32) engine.Engine {
	t.Helper()
	files, err := cuda.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	files.MemoryFraction = cmp.Or(fraction, files.MemoryFraction)
	if err := cuda.Problem(files); err != nil {
		t.Skip(err)
	}
	d, err := gpu.Open(t.Context(), files, 0, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(d.Class())
	return xla.New(d)
}

// TestOnGPU compares the parameters of models after 20 updates on a GPU with an
// interpreter of the same programs in float64, for each compute type.
func TestOnGPU(t *testing.T) {
	onGPU := open(t)
	inFloat64 := xla.New(new(xlatest.Device))
	for _, c := range []struct {
		name  string
		shape []int
		most  map[string]float64
	}{
		{"mlp", []int{28, 28}, map[string]float64{spec.ComputeF32: 1e-5, spec.ComputeTF32: 1e-3, spec.ComputeBF16: 1e-2}},
		{"mnist-cnn", []int{28, 28}, map[string]float64{spec.ComputeF32: 1e-5, spec.ComputeTF32: 1e-2, spec.ComputeBF16: 5e-2}},
		{"resnet20", []int{32, 32, 3}, map[string]float64{spec.ComputeF32: 1e-5, spec.ComputeTF32: 1e-2, spec.ComputeBF16: 5e-2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := zoo.Model(c.name, model.Data{Input: model.Features{Type: model.U8, Shape: c.shape}, Classes: 10})
			if err != nil {
				t.Fatal(err)
			}
			// XLA keeps the algorithms that it has chosen for all later programs of a process, those
			// of deterministic runs too: these come first.
			o := engine.Options{MicroBatch: 64, ComputeType: spec.ComputeF32, Seed: 1, Deterministic: true}
			first := train(t, onGPU, m, o)
			for i := range 3 {
				if again := train(t, onGPU, m, o); !slices.Equal(first, again) {
					t.Errorf("%s: deterministic runs 1 and %d differ by %.2g", c.name, i+2, distance(first, again))
				}
			}
			o.Deterministic = false
			want := train(t, inFloat64, m, o)
			for kind, most := range c.most {
				o.ComputeType = kind
				got := train(t, onGPU, m, o)
				d := distance(want, got)
				t.Logf("%s %s: parameters are off by %.2g after 20 updates", c.name, kind, d)
				if !(d <= most) {
					t.Errorf("%s %s: want at most %.2g", c.name, kind, most)
				}
			}
		})
	}
}

// TestFullSizeOnGPU compares models that are too large for the interpreter with PyTorch in
// float64, of the Python that PYTHON names.
func TestFullSizeOnGPU(t *testing.T) {
	torch, err := xlatest.FindTorch(t.Context(), cmp.Or(os.Getenv("PYTHON"), "python3"))
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	onGPU := open(t)
	for name, shape := range map[string][]int{"resnet18": {32, 32, 3}, "transformer": {64}} {
		t.Run(name, func(t *testing.T) {
			data := model.Data{Input: model.Features{Type: model.U8, Shape: shape}, Classes: 10}
			if name == "transformer" {
				data.Classes, data.Target = 256, data.Input
			}
			m, err := zoo.Model(name, data)
			if err != nil {
				t.Fatal(err)
			}
			compareWithTorch(t, torch, onGPU, m)
		})
	}
}

// compareWithTorch compares parameters after 20 updates.
func compareWithTorch(t *testing.T, torch *xlatest.Torch, e engine.Engine, m *model.Model) {
	t.Helper()
	const micro, rate, most = 64, 0.001, 5e-5
	r, err := e.Build(m, engine.Options{MicroBatch: micro, ComputeType: spec.ComputeF32, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	start := parameters(t, r)
	var batches []*engine.Batch
	for i := range 20 {
		batches = append(batches, xlatest.Batch(m, uint64(i), slices.Repeat([]float32{1}, micro)...))
		step(t, r, batches[i], i == 0, micro)
	}
	got := parameters(t, r)
	want, err := torch.Train(t.Context(), t.TempDir(), m, start, batches, rate)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(want, start) {
		t.Fatal("PyTorch has changed nothing")
	}
	d := distance(want, got)
	t.Logf("%s f32: parameters are off by %.2g after %d updates", m.Name, d, len(batches))
	if !(d <= most) {
		t.Errorf("%s: want at most %.2g", m.Name, most)
	}
}

// TestSameSumsOnGPU computes the sums of one batch several times, in a deterministic pass, and
// names the variables whose sums differ.
func TestSameSumsOnGPU(t *testing.T) {
	onGPU := open(t)
	const micro = 64
	m, err := zoo.Model("resnet20", model.Data{Input: model.Features{Type: model.U8, Shape: []int{32, 32, 3}}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	r, err := onGPU.Build(m, engine.Options{MicroBatch: micro, ComputeType: spec.ComputeF32, Seed: 1, Deterministic: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	vars, _ := r.Layout()
	var first []float32
	differ := make(map[string]int)
	const repeats = 20
	for i := range repeats {
		s, err := r.Stage(t.Context(), xlatest.Batch(m, 1, slices.Repeat([]float32{1}, micro)...), nil)
		if err != nil {
			t.Fatal(err)
		}
		sums := make([]float32, model.Length(vars))
		pass := engine.Pass{First: true, Last: true, Ready: func(offset int, span []float32) { copy(sums[offset:], span) }}
		_, err = r.Step(t.Context(), s, pass)
		s.Release()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = sums
		}
		for _, v := range vars {
			if !slices.Equal(first[v.Offset:v.Offset+v.Len], sums[v.Offset:v.Offset+v.Len]) {
				differ[v.Name]++
			}
		}
	}
	for _, v := range vars {
		if n := differ[v.Name]; n > 0 {
			t.Errorf("%s %v: %d of %d sums differ from the first ones", v.Name, v.Shape, n, repeats-1)
		}
	}
}

// train makes 20 updates and returns the parameters.
func train(t *testing.T, e engine.Engine, m *model.Model, o engine.Options) []float32 {
	t.Helper()
	r, err := e.Build(m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		b := &engine.Batch{Weights: slices.Repeat([]float32{1}, o.MicroBatch), Seed: 1, Epoch: uint64(i)}
		features := make([]byte, o.MicroBatch*engine.FeatureBytes(m))
		for j := range features {
			features[j] = byte(random.Uint32())
		}
		var labels []byte
		for j := range o.MicroBatch {
			b.Records = append(b.Records, int64(j))
			labels = binary.LittleEndian.AppendUint32(labels, random.Uint32N(uint32(m.Classes)))
		}
		b.Inputs = []engine.Input{{Type: m.Input.Type, Data: features}, {Type: model.I32, Data: labels}}
		step(t, r, b, i == 0, float64(o.MicroBatch))
	}
	return parameters(t, r)
}

// step makes an update of a batch, whose sums stay on the device.
func step(t *testing.T, r engine.Replica, b *engine.Batch, first bool, weight float64) {
	t.Helper()
	s, err := r.Stage(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	if _, err := r.Step(t.Context(), s, engine.Pass{First: first}); err != nil {
		t.Fatal(err)
	}
	if err := r.(engine.Updater).Update(nil, weight, optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.001}); err != nil {
		t.Fatal(err)
	}
}

func parameters(t *testing.T, r engine.Replica) []float32 {
	t.Helper()
	vars, _ := r.Layout()
	v := make([]float32, model.Length(vars))
	if err := r.Get(0, 0, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// distance is the difference of two vectors as a share of the length of the first.
func distance(a, b []float32) float64 {
	difference, size := 0.0, 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		difference += d * d
		size += float64(a[i]) * float64(a[i])
	}
	return math.Sqrt(difference / size)
}

// small returns small data for a model of the zoo, whose programs the interpreter runs in a
// minute, and how many updates it makes in that time.
func small(name string) (d model.Data, updates int) {
	d = model.Data{Input: model.Features{Type: model.U8, Shape: []int{8, 8, 3}}, Classes: 10}
	switch name {
	case "mnist-cnn":
		d.Input.Shape = []int{12, 12}
	case "cifar-cnn":
		d.Input.Shape = []int{16, 16, 3}
	case "linear":
		return model.Data{Input: d.Input, Target: model.Features{Type: model.F32, Shape: []int{2}}}, 20
	case "transformer":
		text := model.Features{Type: model.U8, Shape: []int{12}}
		return model.Data{Input: text, Classes: 64, Target: text}, 6
	case "resnet18":
		return d, 1
	}
	return d, 20
}

// TestEveryModelOnGPU compares each model of the zoo with the interpreter in float64.
func TestEveryModelOnGPU(t *testing.T) {
	onGPU := open(t)
	inFloat64 := xla.New(new(xlatest.Device))
	for _, name := range zoo.Names() {
		data, updates := small(name)
		m, err := zoo.Model(name, data)
		if err != nil {
			t.Fatal(err)
		}
		trained := func(e engine.Engine, deterministic bool) []float32 {
			r, err := e.Build(m, engine.Options{MicroBatch: 8, ComputeType: spec.ComputeF32, Seed: 1, Deterministic: deterministic})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for i := range updates {
				step(t, r, xlatest.Batch(m, uint64(i), 1, 1, 1, 1, 2, 1, 0, 1), i == 0, 8)
			}
			return parameters(t, r)
		}
		want := trained(inFloat64, false)
		for _, deterministic := range []bool{false, true} {
			d := distance(want, trained(onGPU, deterministic))
			t.Logf("%s, deterministic %v: parameters are off by %.2g after %d updates", name, deterministic, d, updates)
			if most := map[bool]float64{false: 1e-5, true: 5e-5}[name == "resnet18" || name == "transformer"]; !(d <= most) {
				t.Errorf("%s: want at most %.2g", name, most)
			}
		}
	}
}

// TestBitsOnGPU prints a hash of the parameters of deterministic updates: check.sh compares
// two processes.
func TestBitsOnGPU(t *testing.T) {
	onGPU := open(t)
	for _, name := range []string{"mlp", "mnist-cnn", "resnet20"} {
		data, _ := small(name)
		m, err := zoo.Model(name, data)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		for _, v := range train(t, onGPU, m, engine.Options{MicroBatch: 64, ComputeType: spec.ComputeF32, Seed: 1, Deterministic: true}) {
			binary.Write(h, binary.LittleEndian, v) //nolint:errcheck // a hash takes all
		}
		t.Logf("bits %s %x", name, h.Sum(nil))
	}
}

// TestTooLargeOnGPU trains with a micro-batch that does not fit into the memory that the
// process may use. The number that the error names is about right: nine tenths of it fit.
func TestTooLargeOnGPU(t *testing.T) {
	onGPU := openPart(t, 0.02)
	m, err := zoo.Model("mnist-cnn", model.Data{Input: model.Features{Type: model.U8, Shape: []int{28, 28}}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	try := func(micro int) error {
		r, err := onGPU.Build(m, engine.Options{MicroBatch: micro, Seed: 1, ComputeType: spec.ComputeTF32})
		if err != nil {
			return err
		}
		defer r.Close()
		ones := slices.Repeat([]float32{1}, micro)
		s, err := r.Stage(t.Context(), xlatest.Batch(m, 1, ones...), nil)
		if err != nil {
			return err
		}
		defer s.Release()
		_, err = r.Step(t.Context(), s, engine.Pass{First: true, Last: true})
		return err
	}
	const large = 8192
	err = try(large)
	var small *xla.MemoryError
	if !errors.As(err, &small) || small.Fits < 1 || small.Fits >= large {
		t.Fatalf("a micro-batch of %d: %v: %+v", large, err, small)
	}
	t.Logf("of %d records about %d would fit", large, small.Fits)
	if err := try(small.Fits * 9 / 10); err != nil {
		t.Errorf("%d records do not fit: %v", small.Fits*9/10, err)
	}
}
