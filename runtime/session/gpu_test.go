package session

import (
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/spec"
)

// snapshotOf is a machine with one GPU.
func snapshotOf(r gpu.Reading) gpu.Snapshot { return gpu.Snapshot{GPUs: []gpu.Reading{r}} }

// The status has the worst health of a run, also that of an earlier coordinator; the
// history has each broken rule of a GPU once.
func TestWorstHealth(t *testing.T) {
	b := newBench(t, 2)
	c := b.opened()
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1000, 0)
	report := func(role string, s gpu.Snapshot) *spec.GPUHealth {
		at = at.Add(5 * time.Second)
		server{c.Session}.takeUsage(at, role, spec.Usage{GPUs: s})
		c.Publish()
		return c.Status().GPUHealth
	}
	if h := report("worker-0", gpu.Snapshot{Absent: "no driver"}); h != nil {
		t.Errorf("without GPUs: %+v", h)
	}
	if h := report("worker-0", snapshotOf(gpu.Reading{Index: 3})); h == nil || h.Severity != gpu.Fit || h.String() != "fit" {
		t.Errorf("%+v", h)
	}
	hot := gpu.Reading{Index: 3, Throttle: []string{"hardware_thermal"}}
	first := at.Add(5 * time.Second)
	for range 3 {
		if h := report("worker-1", snapshotOf(hot)); h.Rule != gpu.RuleThermal || h.Role != "worker-1" || !h.At.Equal(first) {
			t.Errorf("%+v", h)
		}
	}
	report("worker-0", snapshotOf(gpu.Reading{Fault: gpu.FaultLost}))
	report("worker-0", gpu.Snapshot{Fault: gpu.FaultSilent})
	if h := report("worker-0", snapshotOf(gpu.Reading{Index: 3})); h.Rule != gpu.RuleLost {
		t.Errorf("%+v", h)
	}
	var told []string
	for _, e := range eventsIn(t, c.history) {
		if e.Type == spec.EventGPU {
			told = append(told, e.Message)
		}
	}
	if len(told) != 3 || told[0] != "warning: worker-1: GPU 3: its clocks are low: the hardware cools the chip" ||
		told[1] != "unfit: worker-0: GPU 0: it has fallen off the bus" || told[2] != "unfit: worker-0: the driver does not answer" {
		t.Errorf("told %q", told)
	}
	after := account{}
	if err := (statusFile{c.Session}).write(c.Status()); err != nil {
		t.Fatal(err)
	}
	if after.remember(c.Folder); after.gpus.worst == nil || after.gpus.worst.Rule != gpu.RuleLost {
		t.Errorf("remembered %+v", after.gpus.worst)
	}
}

// A worker on unfit GPUs is tried again, and given up after some tries. The run stops
// when too few workers are left, for a reason that passes.
func TestUnfitGPUsAreRefused(t *testing.T) {
	c := newBench(t, 2).opened()
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	c.Spec.Worker.Replicas, c.Spec.Worker.MinReplicas = 2, 1
	for worker, last := range []spec.End{spec.EndGivenUp, 0} {
		for i := range maxRefusals {
			how, err := server{c.Session}.refuseGPUs(worker, "GPU 0 is lost")
			switch {
			case i < maxRefusals-1:
				if how.End != spec.EndError || err != nil {
					t.Errorf("worker %d, try %d: %+v, %v", worker, i, how, err)
				}
			case last != 0:
				if how.End != last || err != nil {
					t.Errorf("worker %d: %+v, %v", worker, how, err)
				}
			default:
				if stop, ok := err.(Stopped); !ok || stop.Cause != spec.CauseGPU {
					t.Errorf("worker %d: %v", worker, err)
				}
			}
		}
	}
}
