package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/worker"
)

// newCPU makes the CPU engine; tests put one in its place that can be disturbed.
var newCPU = cpu.New

// registerMore adds the engines of this build other than the CPU engine; tests put
// others in their place.
var registerMore = registerGPU

// engines returns the engines of this build: the CPU engine, and with the build tag
// gpu the engine of engines_gpu.go.
func engines() *engine.Registry {
	r := new(engine.Registry)
	r.Register(spec.EngineCPU, engine.Entry{New: func(engine.Config) (engine.Engine, error) { return newCPU(), nil }})
	registerMore(r)
	return r
}

// entryOf returns the engine that the spec names; never another one.
func entryOf(s *spec.Spec) (engine.Entry, error) {
	name := s.EngineName()
	e, ok := engines().Find(name)
	if !ok {
		return e, worker.ProgramError{
			Err: fmt.Errorf("this stoke-trainer has no engine %q: run stoke-trainer-gpu, or set worker.gpus to 0", name),
		}
	}
	if err := e.Problem(); err != nil {
		return e, fmt.Errorf("the engine %s does not work on this machine: %w", name, err)
	}
	return e, nil
}

// ability is one engine, as this machine has it.
type ability struct {
	name    string
	problem error
	devices []engine.Device
}

func abilities() (all []ability) {
	r := engines()
	for _, name := range r.Names() {
		e, _ := r.Find(name)
		a := ability{name: name, problem: e.Problem()}
		if a.problem == nil {
			a.devices = e.Devices()
		}
		all = append(all, a)
	}
	return all
}

func enginesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "engines", Short: "List what this build can compute with, and the devices that it sees", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return encodeAbilities(cmd.OutOrStdout(), abilities())
			}
			return printAbilities(cmd.OutOrStdout(), abilities())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// encodeAbilities writes one JSON object. The list of engines has only engines that
// work: earlier versions of stoke read no problems.
func encodeAbilities(to io.Writer, all []ability) error {
	layers := make(map[string]string)
	for _, name := range zoo.Names() {
		var err error
		if layers[name], err = zoo.Layers(name); err != nil {
			return err
		}
	}
	works, devices, problems := []string{}, make(map[string][]engine.Device), make(map[string]string)
	for _, a := range all {
		if a.problem != nil {
			problems[a.name] = a.problem.Error()
			continue
		}
		works = append(works, a.name)
		if len(a.devices) > 0 {
			devices[a.name] = a.devices
		}
	}
	return json.NewEncoder(to).Encode(map[string]any{
		"engines": works, "devices": devices, "problems": problems,
		"models": zoo.Names(), "layers": layers, "operations": model.Ops(),
	})
}

// printAbilities writes a table.
func printAbilities(to io.Writer, all []ability) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ENGINE\tSTATE\tDEVICES")
	for _, a := range all {
		state := "works"
		if a.problem != nil {
			state = "does not work: " + strings.Join(strings.Fields(a.problem.Error()), " ")
		}
		var devices []string
		for _, d := range a.devices {
			devices = append(devices, fmt.Sprintf("%d %s", d.Index, cmp.Or(d.Name, d.UUID)))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", a.name, state, cmp.Or(strings.Join(devices, ", "), "-"))
	}
	return w.Flush()
}
