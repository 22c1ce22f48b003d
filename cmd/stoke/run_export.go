package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers"
)

func exportCommand(s *session) *cobra.Command {
	var look lookFlags
	var o providers.RunExport
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export [options] -out=FILE ADDRESS",
		Short: "Write the model of a run to a file",
		Long: `Writes the model of the run behind an object of the state as a file in the format
safetensors, which PyTorch, JAX and others read: one float32 tensor for each
variable, with its name and its shape. The metadata of the file have the layers
as JSON ("model"), the name of the experiment, the step and the metrics.
The model is the finished one, or with -checkpoint a checkpoint that the run
keeps. The file is whole or absent; -force replaces an existing file.`,
		Args: atMost(1, "; the model of one run is written at a time"),
	}
	cmd.Flags().StringVar(&o.Path, "out", "", "Write `FILE`, such as model.safetensors.")
	cmd.Flags().Int64Var(&o.Step, "checkpoint", -1, "Write the checkpoint of `STEP` in place of the finished model.")
	cmd.Flags().BoolVar(&o.Replace, "force", false, "Replace a file that exists.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print what was written as a JSON object.")
	look.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Path == "" {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the file is needed: -out=FILE")}
		}
		if cmd.Flags().Changed("checkpoint") && o.Step < 0 {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-checkpoint is the step of a checkpoint, 0 or more")}
		}
		path := o.Path
		var err error
		if o.Path, err = filepath.Abs(path); err != nil {
			return fmt.Errorf("find the working directory: %w", err)
		}
		l := runCommand{cmd.CommandPath(), "The model cannot be exported", &look}
		return s.look(cmd.Context(), l, args, func(ctx context.Context, _ *runs, run providers.Run) error {
			from, ok := run.(providers.RunExporter)
			if !ok {
				s.complain(problem("No model to export", "%s trains no model: only experiments do.", args[0]))
				return failed
			}
			m, err := from.Export(ctx, o)
			if err != nil {
				return err
			}
			if asJSON {
				text, err := json.Marshal(m)
				if err != nil {
					return err
				}
				return s.printOrStop("%s\n", text)
			}
			return s.printOrStop("Wrote %s: %s at step %d, %d tensors, %d parameters.\n", path, m.Name, m.Step, m.Tensors, m.Parameters)
		})
	}
	return cmd
}
