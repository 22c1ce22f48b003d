package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/api"
)

// version is set by the linker for releases.
var version = "dev"

func main() {
	// A launcher that goes away closes our pipes: that must not end a run.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		var reported reportedError
		if !errors.As(err, &reported) {
			fmt.Fprintln(os.Stderr, "Error:", err)
		}
	}
	os.Exit(int(endOf(err)))
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "stoke-trainer",
		Short:         "Train a model: the processes behind a train_experiment",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(superviseCommand(), coordinatorCommand(), serverCommand(), workerCommand(), benchCommand(),
		certificateCommand(), datasetCommand(), modelCommand(), enginesCommand(), measureGPUCommand(), installCommand(), versionCommand())
	markUsageErrors(root)
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version) },
	}
}

// reportedError has been told already, as JSON on standard output or in the
// run's status.
type reportedError struct{ error }

func (e reportedError) Unwrap() error { return e.error }

// failure answers a program that reads our standard error: the error as JSON,
// on the last line.
func failure(out io.Writer, summary string, err error) error {
	f := api.Failure{Summary: summary, Detail: err.Error()}
	var path *fs.PathError
	if errors.As(err, &path) {
		f.File = path.Path
	}
	if encodeErr := json.NewEncoder(out).Encode(f); encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	return reportedError{err}
}
