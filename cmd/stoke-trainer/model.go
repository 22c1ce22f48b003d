package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/durable"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/weights"
	"github.com/stokehq/stoke/runtime/workload"
)

func modelCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "Describe and export trained models", Args: cobra.NoArgs}
	cmd.AddCommand(describeCommand(), exportCommand())
	return cmd
}

// described is what describe prints.
type described struct {
	Hash    string           `json:"hash"`
	Tensors []weights.Tensor `json:"tensors"`
}

func describeCommand() *cobra.Command {
	var fits string
	cmd := &cobra.Command{
		Use:   "describe PATH",
		Short: "Print hash, names and shapes of a model: a safetensors file, or the folder of a run or checkpoint",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := describe(cmd.Context(), args[0], fits)
			if err != nil {
				return failure(cmd.ErrOrStderr(), "Model cannot be used", err)
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(d)
		},
	}
	cmd.Flags().StringVar(&fits, "fits", "", "`FILE` of a specification: a model that its run cannot begin from is an error")
	return cmd
}

func describe(ctx context.Context, path, fits string) (d described, err error) {
	w, err := weights.Open(ctx, path)
	if err != nil {
		return d, err
	}
	defer w.Close() //nolint:errcheck // it is only read
	d.Tensors = w.Tensors
	if fits != "" {
		if err := checkFit(w, fits); err != nil {
			return d, err
		}
	}
	d.Hash, err = w.Hash(ctx)
	return d, err
}

// checkFit checks that the run of a specification can begin from a model.
func checkFit(model *weights.Weights, file string) error {
	s := spec.Default()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return fmt.Errorf("read the specification: %w", err)
	}
	w, err := workload.Open(&s)
	if err != nil {
		return nil // which is not about this model: the run reports it
	}
	defer w.Close() //nolint:errcheck // it is only read
	skip, _ := s.InitFrom.Patterns()
	return model.Check(w.Vars, skip)
}

func exportCommand() *cobra.Command {
	var folder, out string
	var step int64
	var force bool
	cmd := &cobra.Command{Use: "export --run FOLDER --out FILE", Short: "Write a run's model as a safetensors file", Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&folder, "run", "", "the run's `FOLDER`")
	f.StringVar(&out, "out", "", "`FILE` to write")
	f.Int64Var(&step, "step", weights.Latest, "`STEP` of a checkpoint; default: the finished model")
	f.BoolVar(&force, "force", false, "replace a file that exists")
	cmd.MarkFlagRequired("run") // the flags were just defined
	cmd.MarkFlagRequired("out")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := export(cmd.Context(), run.Folder(folder), step, out, force)
		switch {
		case errors.Is(err, fs.ErrExist):
			return failure(cmd.ErrOrStderr(), "The file exists already", err)
		case err != nil:
			return failure(cmd.ErrOrStderr(), "Model cannot be exported", err)
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(e)
	}
	return cmd
}

// export writes all of the file, or nothing of it.
func export(ctx context.Context, f run.Folder, step int64, path string, force bool) (e weights.Exported, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return e, err
	}
	if _, err := os.Lstat(path); err == nil && !force {
		return e, &fs.PathError{Op: "write", Path: path, Err: fmt.Errorf("%w: it is replaced with --force only", fs.ErrExist)}
	}
	to, err := durable.Create(path)
	if err != nil {
		return e, err
	}
	defer to.Abort()
	if e, err = weights.Export(ctx, f, step, to); err != nil {
		return e, err
	}
	return e, to.Commit()
}
