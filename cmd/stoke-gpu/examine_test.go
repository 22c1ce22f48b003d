//go:build cgo && linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/gpu/probe"
)

// rates are those of a GPU that is as fast as it should be.
var rates = gpu.Measured{Upload: 47e9, Download: 46e9, Product: 650e12, Size: 8192}

// A check measures the idle GPUs that it is about, one after the other, and judges by the
// rules. XID events and errors of that time count.
func TestCheckMeasures(t *testing.T) {
	m := newMachine(dgxh100.New)
	m.cards[1].GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: 4711}}, nvml.SUCCESS
	}
	m.cards[2].SetMigMode(nvml.DEVICE_MIG_ENABLE)
	m.cards[2].GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	lose(m.cards[6], nvml.ERROR_GPU_IS_LOST)
	slow, starved := rates, rates
	slow.Product, starved.Download = 100e12, 2e9
	answers := map[string]gpu.Measured{
		m.cards[0].UUID: rates, m.cards[3].UUID: slow, m.cards[4].UUID: starved, m.cards[5].UUID: gpu.Unmeasured(true, "a product is wrong"),
		m.cards[7].UUID: gpu.Unmeasured(false, "no plugin"),
	}
	p, out, _ := m.program()
	var asked []string
	p.measure = func(_ context.Context, name string) gpu.Measured {
		asked = append(asked, name)
		if name == m.cards[0].UUID {
			m.events <- nvml.EventData{Device: m.cards[0], EventData: 94}
		}
		return answers[name]
	}
	if err := run(t, p, "check", "--json", "--measure", "--count", "0"); !errors.Is(err, status(exitUnfit)) {
		t.Fatal(err)
	}
	var r probe.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Snapshot.Validate() != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := make(map[string]int)
	for _, f := range r.Findings {
		found[f.Rule] = f.GPU
	}
	want := map[string]int{gpu.RuleXIDWarning: 0, gpu.RuleProduct: 3, gpu.RuleLink: 4, gpu.RuleCompute: 5, gpu.RuleLost: 6}
	if !maps.Equal(found, want) {
		t.Errorf("%+v", r.Findings)
	}
	if !slices.Equal(asked, []string{m.cards[0].UUID, m.cards[3].UUID, m.cards[4].UUID, m.cards[5].UUID, m.cards[7].UUID}) {
		t.Errorf("measured were %v", asked)
	}
	if g := r.Snapshot.GPUs; g[1].Measured.Unable == "" || g[2].Measured.Unable == "" || g[6].Measured != nil || *g[0].Measured != rates {
		t.Errorf("%s", out)
	}
}

// A check of some GPUs measures only these, and tells people the rates; --measure=false
// measures none, and neither does --json without --measure: a trainer that has a worker's
// GPUs checked waits for 10 seconds only.
func TestCheckOfOneGPUMeasuresOne(t *testing.T) {
	m := newMachine(dgxh100.New)
	p, out, _ := m.program()
	asked := 0
	p.measure = func(context.Context, string) gpu.Measured { asked++; return rates }
	if err := run(t, p, "check", "--gpus", "3"); err != nil || asked != 1 ||
		out.String() != "fit: 1 GPUs\n  GPU 3: 47 GB/s to the GPU, 46 GB/s from it, product of 8192×8192 bfloat16 650 TFLOP/s\n" {
		t.Errorf("%v, %d measured\n%s", err, asked, out)
	}
	if err := run(t, p, "check", "--measure=false"); err != nil || asked != 1 {
		t.Errorf("%v, %d measured", err, asked)
	}
	if err := run(t, p, "check", "--json"); err != nil || asked != 1 {
		t.Errorf("%v, %d measured for JSON", err, asked)
	}
}

// An interrupt during a measurement ends a check without a verdict.
func TestInterruptedCheckIsNotFit(t *testing.T) {
	m := newMachine(dgxh100.New)
	p, out, _ := m.program()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p.measure = func(context.Context, string) gpu.Measured {
		stop()
		return gpu.Unmeasured(false, "it was interrupted")
	}
	cmd := p.command()
	cmd.SetArgs([]string{"check", "--gpus", "3"})
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, status(exitInterrupted)) || out.Len() > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// A driver that hangs while a GPU is measured is told.
func TestDriverHangsAfterTheMeasurement(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	m := newMachine(dgxh100.New)
	p, out, _ := m.program()
	p.measure = func(context.Context, string) gpu.Measured {
		p.limit = 1
		m.cards[3].GetPowerUsageFunc = func() (uint32, nvml.Return) { <-hang; return 0, nvml.SUCCESS }
		return rates
	}
	if err := run(t, p, "check", "--gpus", "0"); !errors.Is(err, status(exitUnfit)) || !strings.Contains(out.String(), "the driver does not answer") {
		t.Errorf("%v\n%s", err, out)
	}
}
