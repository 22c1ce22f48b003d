package xla_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

var update = flag.Bool("update", false, "rewrite the texts of programs in testdata")

// The texts of all programs of a small model are those in testdata: a change of them is
// seen, and a device's cache of compiled programs depends on them.
func TestProgramsAreGolden(t *testing.T) {
	m, device := everything(), new(xlatest.Device)
	r, err := xla.New(device).Build(m, engine.Options{MicroBatch: 2, ComputeType: spec.ComputeBF16})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := &pair{t: t, model: m, device: device}
	b := xlatest.Batch(m, 1, 1, 1, 1, 1)
	sums, result := p.step(r, 2, b)
	recipe := optimizer.Recipe{Name: optimizer.Adam, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 1}
	if err := r.(engine.Updater).Update(sums, result.Weight, recipe); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Step(t.Context(), stage(t, r, xlatest.Batch(m, 2, 1, 1)), engine.Pass{First: true, Last: true, Keep: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.(engine.Updater).Update(nil, 2, recipe); err != nil {
		t.Fatal(err)
	}
	pass := engine.Pass{Last: true, Keep: true, Ahead: true}
	if _, err := r.Step(t.Context(), stage(t, r, xlatest.Batch(m, 2, 1, 1)), pass); err != nil {
		t.Fatal(err)
	}
	if err := r.(engine.Updater).Update(nil, 2, recipe); err != nil {
		t.Fatal(err)
	}
	p.pass(r, 2, b, func(s engine.Staged, pass engine.Pass) (engine.Result, error) {
		return r.Evaluate(t.Context(), s, pass, nil)
	})
	p.values(r)
	seen := make(map[string]bool)
	for _, c := range device.Compiled() {
		file := filepath.Join("testdata", c.Name+".mlir")
		seen[file] = true
		if *update {
			if err := os.WriteFile(file, []byte(c.Text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), c.Text); diff != "" {
			t.Errorf("%s: write it again with -update\n%s", file, diff)
		}
	}
	files, err := filepath.Glob("testdata/*.mlir")
	if err != nil || len(files) != len(seen) {
		t.Errorf("%d files for %d programs (%v)", len(files), len(seen), err)
	}
}

// Backward of windows, apart or overlapping, compares places and not bf16 values: XLA may
// keep more bits of one of them, and no element would equal the maximum.
func TestWindowsCompareNoValues(t *testing.T) {
	for kernel, least := range map[int]int{3: 9, 2: 1} { // of comparisons of places, by the kernel; the stride is 2
		m, device := small(pictures(8, 7, 2), model.Layer{Op: model.Conv2D, Filters: 3, Kernel: 2},
			model.Layer{Op: model.MaxPool, Kernel: kernel, Stride: 2}, model.Layer{Op: model.Flatten}, model.Layer{Op: model.Dense, Units: 3}), new(xlatest.Device)
		r, err := xla.New(device).Build(m, engine.Options{MicroBatch: 2, ComputeType: spec.ComputeBF16})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		places := 0
		for _, c := range device.Compiled() {
			for line := range strings.Lines(c.Text) {
				if strings.Contains(line, "stablehlo.compare EQ") {
					if strings.Contains(line, "bf16") {
						t.Errorf("kernel %d: %s: %s", kernel, c.Name, line)
					}
					if strings.Contains(line, "i32") {
						places++
					}
				}
			}
		}
		if places < least {
			t.Errorf("kernel %d: %d places of windows are compared", kernel, places)
		}
	}
}

// A convolution that leaves elements out at the end has no negative padding forward: XLA's
// convolutions on GPUs take none, and the input would be copied.
func TestForwardConvolutionsPadNothingNegative(t *testing.T) {
	m, device := small(pictures(8, 7, 2), model.Layer{Op: model.Conv2D, Filters: 3, Kernel: 1, Stride: 2},
		model.Layer{Op: model.Conv2D, Filters: 3, Kernel: 3, Stride: 2, Padding: model.Same},
		model.Layer{Op: model.Flatten}, model.Layer{Op: model.Dense, Units: 3}), new(xlatest.Device)
	r, err := xla.New(device).Build(m, engine.Options{MicroBatch: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	forward := 0
	for _, c := range device.Compiled() {
		for line := range strings.Lines(c.Text) {
			if strings.Contains(line, "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]") {
				forward++
				if strings.Contains(line, ", -") {
					t.Errorf("%s: %s", c.Name, line)
				}
			}
		}
	}
	if forward < 2 {
		t.Errorf("%d convolutions forward", forward)
	}
}
