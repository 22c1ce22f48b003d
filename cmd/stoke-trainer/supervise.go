package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/supervisor"
	"github.com/stokehq/stoke/runtime/wire"
)

// runFlag adds --run, the folder that run.Folder.Create made.
func runFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "run", "", "folder of the run")
	cmd.MarkFlagRequired("run") // the flag was just defined
}

// folder makes --run absolute: roles have another working directory.
func folder(given string) (run.Folder, error) {
	path, err := filepath.Abs(given)
	return run.Folder(path), err
}

func logTo(path string) (*slog.Logger, *os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	return slog.New(slog.NewTextHandler(file, nil)), file, nil
}

func superviseCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "supervise --run DIR",
		Short: "Own a run: start its roles after \"go\" on standard input, restart and reap them",
		Long: "Own a run on this machine: start its roles after \"go\" on standard input, restart roles that end, and reap\n" +
			"them all before the final status is written.\n\n" + ends(),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := folder(at)
			if err != nil {
				return err
			}
			if _, err := os.Stat(f.Spec()); err != nil {
				return badUsage("open run: %w", err)
			}
			log, file, err := logTo(f.Log("supervisor", 0))
			if err != nil {
				return err
			}
			defer file.Close()
			if err := debug.SetCrashOutput(file, debug.CrashOptions{}); err != nil {
				log.Warn("a crash would not be logged", "error", err)
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			outcome, err := supervisor.Run(cmd.Context(), supervisor.Options{
				Folder: f, Program: program, Version: version, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Log: log,
			})
			switch {
			case errors.Is(err, supervisor.ErrNotStarted):
				log.Info("not started")
				return leave(wire.Leave{End: spec.EndAsked, Reason: err.Error()})
			case err != nil:
				log.Error("supervisor ended", "error", err)
				return err
			}
			return endError(outcome.Phase, outcome.Message, cmd.Context().Err() != nil)
		},
	}
	runFlag(cmd, &at)
	return cmd
}
