package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/gpu/probe"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
)

// watchGPUs starts stoke-gpu in one process of each machine or pod: in the coordinator
// of a run on one machine, in each worker of a run elsewhere. Where stoke-gpu is
// missing, the run has no readings.
func (r *role) watchGPUs(name string) {
	if r.spec.Worker.GPUs == 0 || r.supervised != (name == wire.RoleCoordinator) || !r.supervised && name != wire.RoleWorker {
		return
	}
	path := probe.Path()
	if path == "" {
		r.log.Info("the GPUs are not watched: stoke-gpu is neither next to this program nor in $PATH")
		return
	}
	r.gpus = probe.Follow(probe.Options{Path: path, Every: r.usageInterval, Log: r.log})
}

// readGPUs returns the newest readings of the GPUs that this process may use.
func (r *role) readGPUs(now time.Time) (s gpu.Snapshot) {
	if r.gpus == nil {
		return s
	}
	s, ok := r.gpus.Newest(now)
	if ok && len(s.GPUs) > 0 {
		s.GPUs = gpu.Choose(s.GPUs, visibleGPUs())
	}
	return s
}

// visibleGPUs returns the GPUs that CUDA_VISIBLE_DEVICES names; nil: all, also where
// it names instances of MIG.
func visibleGPUs() []string {
	list := os.Getenv("CUDA_VISIBLE_DEVICES")
	names := strings.Split(list, ",")
	if list == "" || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "MIG-") }) {
		return nil
	}
	return names
}

// machineError is a fault of the machine's driver, or a check without a verdict: it is
// the same for all GPUs of the machine.
type machineError struct{ error }

func (e machineError) Unwrap() error { return e.error }

// checkGPUs returns a worker.GPUError where gpu_health is required and the GPUs of a
// worker, nil for all, are not known to be fit.
func (r *role) checkGPUs(ctx context.Context, names []string) error {
	if !r.spec.RequiresFitGPUs() {
		return nil
	}
	e := gpu.Expectation{Count: r.spec.Worker.GPUs, GPUs: names}
	// The device plugin names the instances of a container in the second variable.
	if e.GPUs == nil && strings.Contains(os.Getenv("CUDA_VISIBLE_DEVICES")+os.Getenv("NVIDIA_VISIBLE_DEVICES"), "MIG-") {
		e.Count = 1 // instances are parts of one GPU or more
	}
	report, err := probe.Check(ctx, probe.Path(), e)
	switch {
	case err != nil:
		return machineError{worker.GPUError{Err: fmt.Errorf("gpu_health is required, and the GPUs cannot be checked: %w", err)}}
	case report.Verdict == gpu.Unfit:
		err := worker.GPUError{Err: fmt.Errorf("gpu_health is required, and the GPUs are unfit: %s", report.Reasons())}
		if report.Snapshot.Fault != "" {
			return machineError{err}
		}
		return err
	case report.Verdict == gpu.Warning:
		r.log.Warn("GPUs", "warning", report.Reasons())
	}
	return nil
}

// refuse reports to the coordinator why the worker does not start.
func (r *role) refuse(ctx context.Context, why error) error {
	tail := new(worker.Tail)
	return worker.Fail(ctx, worker.Options{
		Spec: r.spec, Index: r.index + r.firstIndex, Credentials: r.known, Coordinator: r.coordinator,
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(tail, os.Stderr), nil)), Tail: tail,
	}, why)
}

// attachGPUs adds the readings of GPUs to each usage.
func (r *role) attachGPUs(send func(context.Context, spec.Usage) error) func(context.Context, spec.Usage) error {
	return func(ctx context.Context, u spec.Usage) error {
		u.GPUs = r.readGPUs(time.Now())
		if waits := r.waits.Load(); waits != nil {
			u = u.Waits(*waits)
		}
		return send(ctx, u)
	}
}
