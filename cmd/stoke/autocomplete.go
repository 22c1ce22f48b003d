package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
)

// installed marks the line that autocomplete adds to a shell's start file.
const installed = "# added by stoke -install-autocomplete"

// autocomplete adds completion to the start files of the shells that the user
// has, or takes it away again.
func (s *session) autocomplete(root *cobra.Command, install bool) error {
	home := s.getenv("HOME")
	if home == "" {
		s.complain(problem("No home folder", "The environment variable HOME is not set, so the start files of shells cannot be found."))
		return failed
	}
	found := false
	for name, line := range map[string]string{
		".bashrc": `command -v stoke >/dev/null && source <(stoke completion bash) ` + installed,
		".zshrc":  `command -v stoke >/dev/null && autoload -Uz compinit && compinit && source <(stoke completion zsh) ` + installed,
	} {
		there, err := withLine(filepath.Join(home, name), line, install)
		if err != nil {
			s.complain(problem("Completion not set up", "%s.", err))
			return failed
		}
		found = found || there
	}
	there, err := fishFile(root, filepath.Join(home, ".config", "fish"), install)
	if err != nil {
		s.complain(problem("Completion not set up", "%s.", err))
		return failed
	}
	switch {
	case !found && !there:
		s.complain(problem("No shell found", "%s has no .bashrc, .zshrc or .config/fish. \"stoke completion -help\" shows how to load completion by hand.", home))
		return failed
	case install:
		s.printf("Completion is set up; start a new shell to use it.\n")
	default:
		s.printf("Completion is taken away.\n")
	}
	return nil
}

// withLine makes sure that a start file has the line, or that it has none of
// ours. It reports whether the file is there at all.
func withLine(name, line string, wanted bool) (there bool, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var kept strings.Builder
	for _, l := range strings.SplitAfter(string(text), "\n") {
		if !strings.HasSuffix(strings.TrimSpace(l), installed) {
			kept.WriteString(l)
		}
	}
	if wanted {
		if kept.Len() > 0 && !strings.HasSuffix(kept.String(), "\n") {
			kept.WriteByte('\n')
		}
		kept.WriteString(line + "\n")
	}
	if kept.String() == string(text) {
		return true, nil
	}
	return true, replaceFile(name, []byte(kept.String()))
}

// fishFile writes or removes the file in which fish looks for completions.
func fishFile(root *cobra.Command, dir string, wanted bool) (there bool, err error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return false, nil // fish is not in use here
	}
	name := filepath.Join(dir, "completions", "stoke.fish")
	if !wanted {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
		return true, nil
	}
	var script bytes.Buffer
	if err := root.GenFishCompletion(&script, true); err != nil {
		return true, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return true, err
	}
	return true, renameio.WriteFile(name, script.Bytes(), 0o644)
}
