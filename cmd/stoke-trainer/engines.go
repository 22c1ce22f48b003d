package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/worker"
)

// engines names what this build can compute with on this machine.
func engines() []string { return []string{spec.EngineCPU} }

// newCPU makes the CPU engine; tests put one in its place that can be disturbed.
var newCPU = cpu.New

// engineOf gives the engine that the spec asks for; never another one.
func engineOf(s *spec.Spec) (engine.Engine, error) {
	if name := s.EngineName(); name != spec.EngineCPU {
		return nil, worker.ProgramError{
			Err: fmt.Errorf("this stoke-trainer has no engine %q: use a build with GPU support, or set worker.gpus to 0", name),
		}
	}
	return newCPU(), nil
}

func enginesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "engines", Short: "List what this build can compute with", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				layers := make(map[string]string)
				for _, name := range zoo.Names() {
					var err error
					if layers[name], err = zoo.Layers(name); err != nil {
						return err
					}
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"engines": engines(), "models": zoo.Names(), "layers": layers, "operations": model.Ops()})
			}
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(engines(), "\n"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
