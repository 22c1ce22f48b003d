package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan"
)

// addGenerate defines the option that has configuration written for imported
// objects.
func (f *planFlags) addGenerate(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.generate, "generate-config-out", "", "Write configuration for imported objects that have none to `FILE`, which must not exist.")
	addFlagGroup(cmd.Flags(), planOptions, "generate-config-out")
}

// checkGenerate refuses, before anything is read, to write over what is there.
func (s *session) checkGenerate(cmd *cobra.Command, f *planFlags) error {
	if f.generate == "" {
		return nil
	}
	if f.destroy || f.refreshOnly {
		return &usageError{path: cmd.CommandPath(), err: errors.New("-generate-config-out is for plans that import, not for -destroy or -refresh-only")}
	}
	if _, err := os.Lstat(f.generate); !errors.Is(err, fs.ErrNotExist) {
		s.complain(problem("File for generated configuration exists", "%s is there, and configuration is written to new files only. Name another file, or move what it holds to where it belongs.", f.generate))
		return failed
	}
	return nil
}

// writeGenerated writes the configuration that a plan has made, also when the
// plan has failed because of it: to be mended by hand.
func (o *operation) writeGenerated(pl *plan.Plan) error {
	if len(pl.Generated) == 0 {
		return nil
	}
	f, err := os.OpenFile(o.flags.generate, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(pl.Generated)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", o.flags.generate, err)
	}
	return nil
}

// generated says where to look.
func (s *session) generated(f *planFlags, pl *plan.Plan) {
	if len(pl.Generated) > 0 && !f.json {
		s.stdout().Generated(f.generate)
	}
}
