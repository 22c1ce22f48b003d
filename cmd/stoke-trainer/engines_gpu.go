//go:build gpu

package main

import (
	"errors"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/spec"
)

// gpuEngine is the engine of NVIDIA GPUs.
var gpuEngine = engine.Entry{
	New:     func(engine.Config) (engine.Engine, error) { return nil, errNotLinked },
	Problem: func() error { return errNotLinked },
}

var errNotLinked = errors.New("the XLA engine is not linked yet")

// registerGPU adds the engine of NVIDIA GPUs. It needs libc and libdl, so that only
// the program stoke-trainer-gpu, which is built with the tag gpu, has it.
func registerGPU(r *engine.Registry) { r.Register(spec.EngineXLA, gpuEngine) }
