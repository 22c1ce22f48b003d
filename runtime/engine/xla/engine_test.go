package xla_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// pair is a model on the CPU engine and on programs that the interpreter runs.
type pair struct {
	t      testing.TB
	model  *model.Model
	device *xlatest.Device
	cpu    engine.Replica
	xla    engine.Replica
}

// newPair builds both; the values are off their start by up to so much.
func newPair(t testing.TB, m *model.Model, off float32, o engine.Options) *pair {
	t.Helper()
	p := &pair{t: t, model: m, device: new(xlatest.Device)}
	o.Threads, o.Seed = 1, 3
	var err error
	if p.cpu, err = cpu.New().Build(m, o); err != nil {
		t.Fatal(err)
	}
	o.ComputeType = spec.ComputeF32
	if p.xla, err = xla.New(p.device).Build(m, o); err != nil {
		t.Fatal(err)
	}
	v := p.values(p.cpu)
	random := rand.New(rand.NewPCG(7, 8))
	for i := range v {
		v[i] += 2 * off * (random.Float32() - 0.5)
		if p.isVariance(i) {
			v[i] = 0.5 + random.Float32()
		}
	}
	for _, r := range []engine.Replica{p.cpu, p.xla} {
		if err := r.Put(0, 0, v); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(p.close)
	return p
}

// close checks that the replica gave all buffers back.
func (p *pair) close() {
	_ = p.cpu.Close()
	if err := p.xla.Close(); err != nil {
		p.t.Error(err)
	}
	if n := p.device.Counts().Live; n != 0 {
		p.t.Errorf("%d buffers are left on the device", n)
	}
	if err := p.device.Fault(); err != nil {
		p.t.Error(err)
	}
}

func (p *pair) isVariance(i int) bool {
	vars, _ := p.cpu.Layout()
	for _, v := range vars {
		if i >= v.Offset && i < v.Offset+v.Len {
			return strings.HasSuffix(v.Name, "/"+model.Variance)
		}
	}
	return false
}

func (p *pair) values(r engine.Replica) []float32 { return p.vector(r, 0) }

// vector returns the parameters, 0, or a slot of the optimizer.
func (p *pair) vector(r engine.Replica, number int) []float32 {
	p.t.Helper()
	vars, _ := r.Layout()
	v := make([]float32, model.Length(vars))
	if err := r.Get(number, 0, v); err != nil {
		p.t.Fatal(err)
	}
	return v
}

// call is a Step or an Evaluate.
type call func(s engine.Staged, p engine.Pass) (engine.Result, error)

// pass gives batches to a replica as one pass; several at a time where it takes several.
func (p *pair) pass(r engine.Replica, micro int, b *engine.Batch, do call) engine.Result {
	p.t.Helper()
	var parts []*engine.Batch
	record := engine.FeatureBytes(p.model)
	answer, elements := p.model.Answer()
	target := elements * answer.Size()
	for at := 0; at < len(b.Weights); {
		to := min(len(b.Weights), at+micro*r.MicroBatches())
		part := *b
		part.Records, part.Weights = b.Records[at:to], b.Weights[at:to]
		part.Inputs = []engine.Input{
			{Type: b.Inputs[0].Type, Data: b.Inputs[0].Data[at*record : to*record]},
			{Type: b.Inputs[1].Type, Data: b.Inputs[1].Data[at*target : to*target]},
		}
		parts = append(parts, &part)
		at = to
	}
	for i, part := range parts {
		s, err := r.Stage(p.t.Context(), part, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		result, err := do(s, engine.Pass{First: i == 0, Last: i == len(parts)-1})
		s.Release()
		if err != nil {
			p.t.Fatal(err)
		}
		if i == len(parts)-1 {
			return result
		}
	}
	return engine.Result{}
}

// step returns the sums of a pass.
func (p *pair) step(r engine.Replica, micro int, b *engine.Batch) ([]float32, engine.Result) {
	p.t.Helper()
	vars, _ := r.Layout()
	sums := make([]float32, model.Length(vars))
	seen := 0
	result := p.pass(r, micro, b, func(s engine.Staged, pass engine.Pass) (engine.Result, error) {
		pass.Ready = func(offset int, span []float32) { seen += copy(sums[offset:], span) }
		return r.Step(p.t.Context(), s, pass)
	})
	if seen != len(sums) {
		p.t.Errorf("%d of %d sums were reported", seen, len(sums))
	}
	return sums, result
}

// off is the difference of two vectors as a share of the first one's length.
func off(a, b []float32) float64 {
	var difference, size float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		difference += d * d
		size += float64(a[i]) * float64(a[i])
	}
	if math.IsNaN(difference) {
		return math.Inf(1)
	}
	return math.Sqrt(difference) / math.Max(math.Sqrt(size), 1e-6)
}

// compare checks sums, results and predictions of the two engines.
func (p *pair) compare(micro int, b *engine.Batch, most float64) {
	p.t.Helper()
	want, wantResult := p.step(p.cpu, micro, b)
	got, gotResult := p.step(p.xla, micro, b)
	vars, _ := p.cpu.Layout()
	whole := off(want, got)
	for _, v := range vars {
		if d := off(want[v.Offset:v.Offset+v.Len], got[v.Offset:v.Offset+v.Len]); d > most && whole > most/100 {
			p.t.Errorf("the sums of %s are off by %.2g", v.Name, d)
		}
	}
	p.compareResults("training", wantResult, gotResult, most)
	_, elements := p.model.Answer()
	outputs := elements * max(1, p.model.Classes)
	predict := func(r engine.Replica) (engine.Result, []float32) {
		var all []float32
		result := p.pass(r, micro, b, func(s engine.Staged, pass engine.Pass) (engine.Result, error) {
			out := make([]float32, outputs*micro*min(r.MicroBatches(), (len(b.Weights)-len(all)/outputs+micro-1)/micro))
			defer func() { all = append(all, out...) }()
			return r.Evaluate(p.t.Context(), s, pass, out)
		})
		return result, all
	}
	wantResult, wantOut := predict(p.cpu)
	gotResult, gotOut := predict(p.xla)
	p.compareResults("evaluation", wantResult, gotResult, most)
	if len(wantOut) != len(gotOut) {
		p.t.Fatalf("%d and %d predictions", len(wantOut), len(gotOut))
	}
	if d := off(wantOut, gotOut); d > most {
		p.t.Errorf("the predictions are off by %.2g", d)
	}
}

func (p *pair) compareResults(what string, want, got engine.Result, most float64) {
	p.t.Helper()
	if got.Weight != want.Weight || got.Finite != want.Finite || math.Abs(got.Loss-want.Loss) > most*math.Abs(want.Loss) || len(got.Metrics) != len(want.Metrics) {
		p.t.Errorf("%s: %+v, want %+v", what, got, want)
		return
	}
	for i, v := range want.Metrics {
		if math.Abs(got.Metrics[i]-v) > most*math.Abs(v) {
			p.t.Errorf("%s: metric %s is %v, want %v", what, p.model.Metrics[i], got.Metrics[i], v)
		}
	}
}

// small is a model of few layers for three classes.
func small(in model.Features, layers ...model.Layer) *model.Model {
	for i := range layers {
		if layers[i].Name == "" {
			layers[i].Name = fmt.Sprintf("layer%d", i)
		}
	}
	return &model.Model{
		Name: "small", Classes: 3, Layers: layers, Input: in, Loss: model.SoftmaxCrossEntropy, Metrics: []string{model.Accuracy},
	}
}

func pictures(shape ...int) model.Features { return model.Features{Type: model.F32, Shape: shape} }

// Each operation with each of its options gives the CPU engine's sums, losses, metrics
// and predictions, with several micro-batches, weights and padding.
func TestOperations(t *testing.T) {
	dense := model.Layer{Op: model.Dense, Units: 3}
	flat := model.Layer{Op: model.Flatten}
	conv := func(l model.Layer) model.Layer {
		l.Op = model.Conv2D
		return l
	}
	cases := map[string]*model.Model{
		"dense":        small(pictures(4), model.Layer{Op: model.Dense, Units: 5, NoBias: true}, model.Layer{Op: model.ReLU}, dense),
		"activations":  small(pictures(4), model.Layer{Op: model.GELU}, dense, model.Layer{Op: model.Tanh}, model.Layer{Op: model.Sigmoid}, dense),
		"conv":         small(pictures(7, 6, 2), conv(model.Layer{Filters: 4, Kernel: 3}), conv(model.Layer{Filters: 3, Kernel: 2, NoBias: true}), flat, dense),
		"conv same":    small(pictures(7, 6, 2), conv(model.Layer{Filters: 4, Kernel: 3, Padding: model.Same}), conv(model.Layer{Filters: 3, Kernel: 3, Stride: 2, Padding: model.Same}), flat, dense),
		"conv stride":  small(pictures(8, 7, 2), conv(model.Layer{Filters: 4, Kernel: 3, Stride: 2}), conv(model.Layer{Filters: 3, Kernel: 2, Stride: 3}), flat, dense),
		"conv pad":     small(pictures(6, 5, 2), conv(model.Layer{Filters: 4, Kernel: 3, Pad: 2}), conv(model.Layer{Filters: 3, Kernel: 3, Stride: 2, Pad: 1}), flat, dense),
		"conv groups":  small(pictures(6, 5, 4), conv(model.Layer{Filters: 6, Kernel: 3, Groups: 2}), conv(model.Layer{Filters: 6, Kernel: 3, Groups: 3, Pad: 1, Stride: 2}), flat, dense),
		"depthwise":    small(pictures(6, 5, 4), conv(model.Layer{Filters: 4, Kernel: 1}), conv(model.Layer{Filters: 8, Kernel: 3, Groups: 4}), flat, dense),
		"max pool":     small(pictures(7, 6, 2), conv(model.Layer{Filters: 3, Kernel: 2}), model.Layer{Op: model.MaxPool, Kernel: 2}, flat, dense),
		"pool overlap": small(pictures(8, 7, 2), conv(model.Layer{Filters: 3, Kernel: 2}), model.Layer{Op: model.MaxPool, Kernel: 3, Stride: 2}, model.Layer{Op: model.MaxPool, Kernel: 2, Stride: 1}, flat, dense),
		"pool gaps":    small(pictures(8, 7, 2), conv(model.Layer{Filters: 3, Kernel: 1}), model.Layer{Op: model.MaxPool, Kernel: 2, Stride: 3}, flat, dense),
		"pool of equal": small(pictures(6, 6, 2), conv(model.Layer{Filters: 3, Kernel: 3}), model.Layer{Op: model.ReLU},
			model.Layer{Op: model.MaxPool, Kernel: 2}, model.Layer{Op: model.MaxPool, Kernel: 2, Stride: 1, Name: "again"}, flat, dense),
		"average":         small(pictures(7, 6, 2), conv(model.Layer{Filters: 3, Kernel: 2}), model.Layer{Op: model.AvgPool, Kernel: 2}, flat, dense),
		"average overlap": small(pictures(7, 6, 2), conv(model.Layer{Filters: 3, Kernel: 2}), model.Layer{Op: model.AvgPool, Kernel: 3, Stride: 2}, flat, dense),
		"global average":  small(pictures(5, 4, 2), conv(model.Layer{Filters: 3, Kernel: 2}), model.Layer{Op: model.GlobalAvg}, dense),
		"batch norm":      small(pictures(5, 4, 2), conv(model.Layer{Filters: 3, Kernel: 2}), model.Layer{Op: model.BatchNorm, Momentum: 0.7}, model.Layer{Op: model.ReLU}, flat, dense, model.Layer{Op: model.BatchNorm, Epsilon: 0.1}),
		"layer norm":      small(pictures(5), dense, model.Layer{Op: model.LayerNorm}, dense),
		"dropout":         small(pictures(3, 3, 1), conv(model.Layer{Filters: 3, Kernel: 1}), model.Layer{Op: model.Dropout, Rate: 0.4}, flat, model.Layer{Op: model.Dropout, Rate: 0.25}, dense),
		"no dropout":      small(pictures(4), dense, model.Layer{Op: model.Dropout}, dense),
		"graph": small(pictures(4, 4, 2), model.Layer{Name: "a", Op: model.Conv2D, Filters: 2, Kernel: 1},
			model.Layer{Name: "b", Op: model.ReLU, Inputs: []string{"a"}}, model.Layer{Name: "sum", Op: model.Add, Inputs: []string{"a", "b", model.Source}},
			model.Layer{Name: "side", Op: model.Concat, Inputs: []string{"sum", "a", model.Source}}, flat, dense),
		"bytes": small(model.Features{Type: model.U8, Shape: []int{3, 3}}, flat, dense),
		"i32":   small(model.Features{Type: model.I32, Shape: []int{3}, Scale: 0.01}, dense),
		"i64":   small(model.Features{Type: model.I64, Shape: []int{3}, Scale: 0.01}, dense),
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, m, 0.1, engine.Options{MicroBatch: 3})
			p.compare(3, xlatest.Batch(m, 1, 1, 2, 0.5, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1), 2e-5)
		})
	}
}

// The losses and metrics are the CPU engine's, with label smoothing in training only.
func TestLosses(t *testing.T) {
	dense := func(units int) model.Layer { return model.Layer{Name: "output", Op: model.Dense, Units: units} }
	classes := small(pictures(4), dense(12))
	classes.Classes, classes.LabelSmoothing, classes.Metrics = 12, 0.1, []string{model.Accuracy, model.Top5Accuracy, model.Perplexity}
	equal := small(pictures(4), model.Layer{Op: model.ReLU}, model.Layer{Op: model.Dropout, Rate: 0.999}, dense(12))
	equal.Classes, equal.Metrics = 12, []string{model.Accuracy, model.Top5Accuracy}
	numbers := small(pictures(4), dense(2))
	numbers.Classes, numbers.Loss, numbers.Metrics = 0, model.MeanSquaredError, []string{model.MeanAbsoluteError}
	numbers.Target = model.Features{Type: model.F32, Shape: []int{2}}
	for name, m := range map[string]*model.Model{"classes": classes, "equal logits": equal, "numbers": numbers} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, m, 0.1, engine.Options{MicroBatch: 4})
			p.compare(4, xlatest.Batch(m, 2, 1, 1, 3, 1, 1, 0, 1, 1, 0.25, 1), 2e-5)
		})
	}
}
