package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/certificate"
)

// certificateCommand makes what the roles of a run on several machines know
// each other by.
func certificateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "certificate NAME",
		Short: "Make a run's own certificate: NAME.pem for workers, NAME-key.pem for roles that listen",
		Long: "Make a run's own certificate. NAME.pem is for workers: who has it recognises the run. NAME-key.pem has the\n" +
			"private key as well, readable only by you, and is for the coordinator and the parameter servers. Give them\n" +
			"to the roles with --certificate-file. Existing files are not overwritten.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := certificate.Make(args[0])
			if err != nil {
				return err
			}
			secret, err := made.PEM()
			if err != nil {
				return err
			}
			for _, f := range []struct {
				path string
				text []byte
				mode os.FileMode
			}{{args[0] + "-key.pem", secret, 0o600}, {args[0] + ".pem", made.Pin.PEM(), 0o644}} {
				if err := writeNew(f.path, f.text, f.mode); err != nil {
					return fmt.Errorf("write certificate: %w", err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), f.path)
			}
			return nil
		},
	}
}

// writeNew writes a file that is not there yet.
func writeNew(path string, text []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}
