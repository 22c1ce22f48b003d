package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/spec"
)

// measurer is an engine that measures its device.
type measurer interface {
	Measure(ctx context.Context, rows int) (gpu.Measured, error)
}

// measureGPUCommand is for stoke-gpu check, which judges what it prints.
func measureGPUCommand() *cobra.Command {
	rows := 8192
	cmd := &cobra.Command{
		Use: "measure-gpu GPU", Short: "Measure copies and products on one GPU, by UUID or index", Args: cobra.ExactArgs(1),
		Long: "Measure copies between host and GPU, and products of matrices of bfloat16. The numbers of one product are checked.\n" +
			"It prints a JSON object, also where the GPU fails. The GPU should have nothing else to do.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(measureGPU(cmd.Context(), args[0], rows))
		},
	}
	cmd.Flags().IntVar(&rows, "rows", rows, "`ROWS` of the matrices, a multiple of 16")
	return cmd
}

// measureGPU measures one GPU. A fault of the machine's software is not a fault of the GPU.
func measureGPU(ctx context.Context, name string, rows int) gpu.Measured {
	unable := func(err error) gpu.Measured { return gpu.Unmeasured(false, err.Error()) }
	entry, err := entryOf(&spec.Spec{Engine: spec.EngineXLA})
	if err != nil {
		return unable(err)
	}
	devices := entry.Devices()
	at := slices.IndexFunc(devices, func(d engine.Device) bool { return name == d.UUID || name == strconv.Itoa(d.Index) })
	if at < 0 {
		return unable(fmt.Errorf("this process does not see the GPU %s", name))
	}
	e, err := entry.New(engine.Config{Device: devices[at].Index})
	if err != nil {
		var blame interface{ OfGPU() bool }
		return gpu.Unmeasured(!errors.As(err, &blame) || blame.OfGPU(), err.Error())
	}
	m, ok := e.(measurer)
	if !ok {
		return unable(fmt.Errorf("the engine %s measures no devices", spec.EngineXLA))
	}
	measured, err := m.Measure(ctx, rows)
	if err != nil {
		return gpu.Unmeasured(true, err.Error())
	}
	return measured
}
