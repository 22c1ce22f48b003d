//go:build gpu

package main

import (
	"context"
	"log/slog"

	"github.com/stokehq/stoke/runtime/cuda"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/gpu"
	"github.com/stokehq/stoke/runtime/spec"
)

// registerGPU adds the engine of NVIDIA GPUs. It needs libc and libdl, so that only
// the program stoke-trainer-gpu, which is built with the tag gpu, has it.
func registerGPU(r *engine.Registry) {
	r.Register(spec.EngineXLA, engine.Entry{New: openGPU, Problem: gpuProblem, Devices: listGPUs})
}

// openGPU starts XLA on one GPU.
func openGPU(c engine.Config) (engine.Engine, error) {
	files, err := cuda.FromEnvironment()
	if err != nil {
		return nil, err
	}
	log := c.Log
	if log == nil {
		log = slog.Default()
	}
	d, err := gpu.Open(context.Background(), files, c.Device, log)
	if err != nil {
		return nil, err
	}
	return xla.New(d), nil
}

// gpuProblem returns the first reason why no GPU can be used, without opening one.
func gpuProblem() error {
	files, err := cuda.FromEnvironment()
	if err != nil {
		return err
	}
	return cuda.Problem(files)
}

// listGPUs returns the GPUs that this process sees.
func listGPUs() (all []engine.Device) {
	gpus, err := cuda.GPUs()
	if err != nil {
		return nil // gpuProblem reports it
	}
	for _, g := range gpus {
		all = append(all, engine.Device{Index: g.Index, Name: g.Name, UUID: g.UUID})
	}
	return all
}
