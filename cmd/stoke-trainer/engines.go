package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/spec"
)

// engineInfo is one engine of this build, as `engines` prints it.
type engineInfo struct {
	Name  string `json:"name"`
	GPUs  int    `json:"gpus"`  // that it can use on this machine
	Cores int    `json:"cores"` //
}

// engines lists what this build can compute with on this machine.
func engines() []engineInfo {
	return []engineInfo{{Name: spec.EngineCPU, Cores: runtime.NumCPU()}}
}

// engineOf gives the engine that the spec asks for; never another one.
func engineOf(s *spec.Spec) (engine.Engine, error) {
	if name := s.EngineName(); name != spec.EngineCPU {
		return nil, fmt.Errorf("this stoke-trainer has no engine %q: use a build with GPU support, or set worker.gpus to 0", name)
	}
	return cpu.New(), nil
}

func enginesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "engines", Short: "List what this build can compute with, as JSON", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(engines())
		},
	}
}
