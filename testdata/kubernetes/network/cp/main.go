// Command cp copies files for images that have no shell: the init containers of
// flannel's manifest run
//
//	cp -f FROM TO
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "-f" {
		args = args[1:]
	}
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cp [-f] FROM TO")
		os.Exit(2)
	}
	if err := replace(args[0], args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "cp:", err)
		os.Exit(1)
	}
}

// replace puts a copy in the place of what is there, which may be a program that
// runs and cannot be written to.
func replace(from, to string) error {
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, filepath.Base(from))
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), ".cp-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}
