package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/spec"
)

func datasetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "dataset", Short: "Check and prepare training data", Args: cobra.NoArgs}
	cmd.AddCommand(inspectCommand(), prepareCommand())
	return cmd
}

// originFlags adds the flags that say where records come from; --origin takes
// all of it as one JSON object instead.
func originFlags(cmd *cobra.Command) func() (spec.Origin, error) {
	var o spec.Origin
	var text string
	f := cmd.Flags()
	f.StringVar(&text, "origin", "", "the whole origin as a JSON object, instead of the other flags")
	f.StringVar(&o.Format, "format", "", strings.Join(spec.DatasetFormats(), ", "))
	f.StringVar(&o.Path, "path", "", "folder or file of the origin")
	f.Int64Var(&o.Train, "train", 0, "most training records; 0 = all")
	f.Int64Var(&o.Test, "test", 0, "most test records; 0 = all")
	f.Uint64Var(&o.Seed, "seed", 0, "of synthetic digits, splits and the order of images")
	return func() (spec.Origin, error) {
		if text == "" {
			return o, nil
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		o = spec.Origin{}
		if err := decoder.Decode(&o); err != nil {
			return o, fmt.Errorf("read origin: %w", err)
		}
		return o, nil
	}
}

// progress writes {"done", "total"} lines to standard error, a few a second.
func progress(out io.Writer) func(done, total int64) {
	var last time.Time
	encoder := json.NewEncoder(out)
	return func(done, total int64) {
		if done < total && time.Since(last) < 200*time.Millisecond {
			return
		}
		last = time.Now()
		encoder.Encode(map[string]int64{"done": done, "total": total}) // nobody may be listening
	}
}

func inspectCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "inspect", Short: "Check an origin and print its manifest", Args: cobra.NoArgs}
	origin := originFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := origin()
		if err != nil {
			return failure(cmd.ErrOrStderr(), "Origin not understood", err)
		}
		m, err := dataset.Inspect(cmd.Context(), o)
		if err != nil {
			return failure(cmd.ErrOrStderr(), "Dataset cannot be used", err)
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
	}
	return cmd
}

func prepareCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "prepare --to DIR", Short: "Write an origin in stoke's own format and print its manifest", Args: cobra.NoArgs}
	origin := originFlags(cmd)
	var to string
	cmd.Flags().StringVar(&to, "to", "", "folder to write")
	cmd.MarkFlagRequired("to") // the flag was just defined
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := origin()
		if err != nil {
			return failure(cmd.ErrOrStderr(), "Origin not understood", err)
		}
		m, err := dataset.Prepare(cmd.Context(), o, to, progress(cmd.ErrOrStderr()))
		if err != nil {
			return failure(cmd.ErrOrStderr(), "Dataset cannot be prepared", err)
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
	}
	return cmd
}
