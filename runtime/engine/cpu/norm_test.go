package cpu_test

import (
	"math"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
)

var normalise = model.Layer{Name: "norm", Op: model.BatchNorm}

func TestNormGradients(t *testing.T) {
	for name, m := range map[string]*model.Model{
		"rows":     network([]int{5}, dense("a", 6), normalise, rectify, dense("out", classes)),
		"pictures": network([]int{5, 6}, conv("a", 3), rectify, normalise, flat, dense("out", classes)),
		"first":    network([]int{4}, normalise, dense("out", classes)),
	} {
		t.Run(name, func(t *testing.T) { checkGradients(t, m, 1, 0.5, 2, 1, 0, 1) })
	}
}

// Moments are the vector's tail; their sums are moment × weight; evaluation
// normalises with the running ones.
func TestNormMoments(t *testing.T) {
	m := network([]int{3}, normalise, dense("out", classes))
	r := build(t, m, engine.Options{Threads: 2, MicroBatch: 4})
	b := rows(3, 1, 10, -1, 3, 10, -2, 100, 100, 100, 8, 10, 0)
	b.Weights = []float32{1, 2, 0, 1}
	sums, _ := step(t, r, stage(t, r, b))
	vars, _ := r.Layout()
	mean, variance := vars[len(vars)-2], vars[len(vars)-1]
	if mean.Kind != model.Moment || variance.Kind != model.Moment || mean.Name != "norm/mean" {
		t.Fatalf("tail is %+v, %+v", mean, variance)
	}
	// Weighted by 1, 2, 1: means 3.75, 10, -1.25.
	want := []float64{15, 40, -5, 4 * 6.6875, 0, 4 * 0.6875}
	for i, w := range want {
		if got := float64(sums[mean.Offset+i]); math.Abs(got-w) > 1e-4 {
			t.Errorf("moment sum %d is %v, want %v", i, got, w)
		}
	}
	v := values(t, r)
	optimizer.Update(v, nil, sums, 4, vars, optimizer.Recipe{LearningRate: 1e-9})
	for i, w := range want {
		start := float64(i / 3) // mean 0, variance 1
		if got := float64(v[mean.Offset+i]); math.Abs(got-(0.9*start+0.1*w/4)) > 1e-5 {
			t.Errorf("running moment %d is %v, want %v", i, got, 0.9*start+0.1*w/4)
		}
	}
	if err := r.Put(0, 0, v); err != nil {
		t.Fatal(err)
	}
	identity(t, r, 2)
	got := predict(t, r, rows(3, 1, 10, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	for c, x := range []float64{1, 10, -1} {
		w := (x - float64(v[mean.Offset+c])) / math.Sqrt(float64(v[variance.Offset+c])+1e-3)
		if math.Abs(float64(got[c])-w) > 1e-4 {
			t.Errorf("evaluated channel %d is %v, want %v", c, got[c], w)
		}
	}
}
