package session

import (
	"fmt"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Limits of a session's knowledge of its GPUs.
const (
	maxRefusals = 3    // of a worker: another process of its index may have another machine
	maxBroken   = 1000 // rules that the history has
)

// gpus is what a session knows of its GPUs. The loop owns it.
type gpus struct {
	worst   *spec.GPUHealth     // published with statuses: it is replaced and never changed
	broken  map[brokenRule]bool // rules that the history has
	refused map[int]int         // by index of a worker: how often its GPUs were unfit at its start
}

// brokenRule is one rule of one GPU.
type brokenRule struct {
	role, rule, uuid string
	index            int
}

// judge keeps the worst health of a run, and notes each rule once for a GPU that
// breaks it.
func (s server) judge(now time.Time, role string, of gpu.Snapshot) {
	if len(of.GPUs) == 0 && of.Fault == "" {
		return
	}
	worst := spec.GPUHealth{}
	if s.gpus.worst != nil {
		worst = *s.gpus.worst
	}
	for _, f := range append(gpu.Judge(of, gpu.Expectation{}).Findings, gpu.Finding{Severity: gpu.Fit, GPU: -1}) {
		if gpu.Worst(worst.Finding, f) == f && worst.Finding != f {
			s.gpus.worst = spec.NewGPUHealth(role, now, f)
			worst = *s.gpus.worst
		}
		at := brokenRule{role, f.Rule, f.UUID, f.GPU}
		if f.Severity == gpu.Fit || s.gpus.broken[at] || len(s.gpus.broken) >= maxBroken {
			continue
		}
		if s.gpus.broken == nil {
			s.gpus.broken = make(map[brokenRule]bool)
		}
		s.gpus.broken[at] = true
		s.tellGPU(spec.NewGPUHealth(role, now, f).String())
	}
}

// tellGPU notes a text about GPUs in the history. A run does not end where that fails.
func (s server) tellGPU(text string) {
	s.Log.Warn("GPU", "health", text)
	if err := s.note(spec.Event{Type: spec.EventGPU, Message: text}); err != nil {
		s.Log.Warn("the health of a GPU is not in the history", "error", err)
	}
}

// refuseGPUs answers a worker whose GPUs are unfit. Another process of its index may
// find other ones; after some tries it is given up. The error ends a run that has too
// few workers then.
func (s server) refuseGPUs(index int, why string) (wire.Leave, error) {
	s.tellGPU(fmt.Sprintf("worker-%d is not started: %s", index, why))
	if s.gpus.refused == nil {
		s.gpus.refused = make(map[int]int)
	}
	s.gpus.refused[index]++
	if s.gpus.refused[index] < maxRefusals {
		return wire.Leave{End: spec.EndError, Reason: "its GPUs are unfit"}, nil
	}
	usable := s.Spec.Worker.Replicas
	for i, times := range s.gpus.refused {
		if times >= maxRefusals && i < s.Spec.Worker.Replicas {
			usable--
		}
	}
	if usable < max(1, s.Spec.Worker.MinReplicas) {
		return wire.Leave{}, Stopped{Cause: spec.CauseGPU, Text: fmt.Sprintf("worker-%d cannot work: %s", index, why)}
	}
	return wire.Leave{End: spec.EndGivenUp, Reason: "this worker is given up: its GPUs are unfit"}, nil
}
