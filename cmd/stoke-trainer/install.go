package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/gpu/probe"
)

// installCommand copies the program itself: a pod's first container brings it to
// a container of another image.
func installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install PATH",
		Short: "Copy this program to a path, for a container of another image",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return installBoth(self, args[0])
		},
	}
}

// installBoth copies the program, and stoke-gpu to the same folder if it is stored next
// to the program.
func installBoth(self, to string) error {
	if err := install(self, to); err != nil {
		return err
	}
	err := install(filepath.Join(filepath.Dir(self), probe.Name), filepath.Join(filepath.Dir(to), probe.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// install copies a program. The copy appears whole: it replaces another one.
func install(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	draft := to + ".new"
	out, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(draft, to)
	}
	if err != nil {
		os.Remove(draft)
	}
	return err
}
