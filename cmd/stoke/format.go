package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules/syntax"
)

// Exit codes of fmt beside 0.
const (
	formatFailed    exitCode = 2
	formatDiffering exitCode = 3
)

func formatCommand(s *session) *cobra.Command {
	f := formatter{s: s}
	cmd := &cobra.Command{
		Use:   "fmt [options] [FILE or FOLDER...]",
		Short: "Rewrite configuration files in the canonical style",
		Long: `Rewrites configuration files in the canonical style: .tf, .tfvars, .tftest.hcl,
.tfmock.hcl and .stoke.hcl, in the working directory or in the files and folders
given. With "-" it formats standard input.

A file that cannot be parsed is left as it is, and the exit code is 2. With
-check nothing is written, and the exit code is 3 if something would be.`,
	}
	cmd.Flags().BoolVar(&f.list, "list", true, "Do not list the files whose formatting changes.")
	cmd.Flags().BoolVar(&f.write, "write", true, "Do not write the files.")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "Show what changes.")
	cmd.Flags().BoolVar(&f.check, "check", false, "Write nothing; exit with 3 if a file is not formatted.")
	cmd.Flags().BoolVar(&f.recursive, "recursive", false, "Go into subfolders too.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "-" {
			return f.stdin()
		}
		if len(args) == 0 {
			args = []string{"."}
		}
		return f.targets(args)
	}
	return cmd
}

// formatter formats files and counts what came of it.
type formatter struct {
	s                                   *session
	list, write, diff, check, recursive bool

	differs bool
	diags   hcl.Diagnostics
}

func (f *formatter) targets(names []string) error {
	for _, name := range names {
		name = filepath.Clean(name)
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.fail("No such file or folder", "There is nothing at %s.", name)
		case err != nil:
			f.fail("File cannot be read", "%s.", err)
		case info.IsDir():
			f.folder(name)
		case !formattable(name):
			f.fail("File cannot be formatted", "%s is not a file that stoke fmt can format: they end in .tf, .tfvars, "+
				".tftest.hcl, .tfmock.hcl or .stoke.hcl.", name)
		default:
			f.file(name)
		}
	}
	return f.outcome()
}

func (f *formatter) fail(summary, format string, args ...any) {
	f.diags = append(f.diags, problem(summary, format, args...))
}

// outcome says what went wrong, and returns the exit code.
func (f *formatter) outcome() error {
	f.s.complain(f.diags...)
	switch {
	case f.diags.HasErrors():
		return formatFailed
	case f.check && f.differs:
		return formatDiffering
	}
	return nil
}

// formattable reports whether a file is known by its name to hold
// configuration in native syntax.
func formattable(name string) bool {
	for _, suffix := range []string{".tf", ".tfvars", ".tftest.hcl", ".tfmock.hcl", ".stoke.hcl"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// unwanted reports whether an entry of a folder is hidden or a leftover of
// an editor.
func unwanted(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") ||
		strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

func (f *formatter) folder(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.fail("Folder cannot be read", "%s.", err)
		return
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		switch {
		case unwanted(entry.Name()):
		case entry.IsDir():
			if f.recursive {
				f.folder(name)
			}
		case formattable(name):
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				continue // behind a link
			}
			f.file(name)
		}
	}
}

// maxFormatted bounds how much of a file is read; the parser refuses far less.
const maxFormatted = 256 << 20

func (f *formatter) file(name string) {
	if info, err := os.Stat(name); err == nil && (!info.Mode().IsRegular() || info.Size() > maxFormatted) {
		f.fail("File cannot be formatted", "%s is not a regular file of a reasonable size.", name)
		return
	}
	src, err := os.ReadFile(name)
	if err != nil {
		f.fail("File cannot be read", "%s.", err)
		return
	}
	result, ok := f.format(name, src)
	if !ok {
		return
	}
	if changed := !bytes.Equal(src, result); changed {
		f.differs = true
		if f.list {
			f.s.printf("%s\n", name)
		}
		if f.write && !f.check {
			if err := replaceFile(name, result); err != nil {
				f.fail("File cannot be written", "%s. It is as it was.", err)
				return
			}
		}
		f.show(name, src, result)
	}
	if !f.list && !f.write && !f.diff && !f.check {
		f.print(result)
	}
}

func (f *formatter) stdin() error {
	src, err := f.s.answers.All(maxFormatted, f.s.signals.stopping)
	if err != nil {
		f.fail("Input cannot be read", "%s.", err)
		return f.outcome()
	}
	const name = "<stdin>"
	result, ok := f.format(name, src)
	if ok {
		f.differs = !bytes.Equal(src, result)
		f.show(name, src, result)
		if !f.diff && !f.check {
			f.print(result)
		}
	}
	return f.outcome()
}

// print ends with a line, as what is printed does, whether or not the text does.
func (f *formatter) print(text []byte) {
	f.s.printf("%s", text)
	if !bytes.HasSuffix(text, []byte("\n")) {
		f.s.printf("\n")
	}
}

func (f *formatter) format(name string, src []byte) ([]byte, bool) {
	result, diags := syntax.Format(name, src)
	if diags.HasErrors() {
		f.s.files.AddValues(name, src)
		f.diags = append(f.diags, diags...)
		return nil, false
	}
	return result, true
}

// show prints the difference, where it is asked for, as diff -u does.
func (f *formatter) show(name string, src, result []byte) {
	if !f.diff {
		return
	}
	text := diff.Diff("old/"+name, src, "new/"+name, result)
	if _, unified, ok := bytes.Cut(text, []byte("\n")); ok { // the first line repeats the names
		f.s.printf("%s", unified)
	}
}

// replaceFile gives a file new content in one step, and leaves its mode as it
// is. A link stays a link.
func replaceFile(name string, content []byte) error {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return fmt.Errorf("%s is read-only", name)
	}
	return renameio.WriteFile(path, content, info.Mode().Perm(), renameio.WithStaticPermissions(info.Mode().Perm()))
}
