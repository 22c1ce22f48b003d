package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// atHome runs the tests with a home folder of their own, which every program
// that they start inherits: what a user keeps at home, states, runs, datasets
// and settings, is neither read nor written.
type atHome struct{ *testing.M }

func (m atHome) Run() int {
	home, err := os.MkdirTemp("", "stoke-home")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home) //nolint:errcheck // a folder of the tests' own
	if err := moveHome(home); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}

// moveHome makes a folder the home of this process. Go's caches stay where they
// are: tests build programs.
func moveHome(home string) error {
	if out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOENV", "GOMODCACHE", "GOPATH").Output(); err == nil { // else nothing can be built anyway
		var caches map[string]string
		if err := json.Unmarshal(out, &caches); err != nil {
			return fmt.Errorf("go env: %w", err)
		}
		for name, value := range caches {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "XDG_") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	if err := os.Unsetenv("GOGC"); err != nil { // it is for the tests' own memory
		return err
	}
	if err := os.Setenv("CHECKPOINT_DISABLE", "1"); err != nil { // terraform leaves a file at home, and asks the network
		return err
	}
	return os.Setenv("HOME", home)
}

// configurationFiles are the names of files that an example consists of. What
// stoke leaves beside them belongs to whoever ran it: a test that worked on a
// copy of a state would destroy what the state is about.
var configurationFiles = []string{"*.tf", "*.tf.json", "*.stoke.hcl", "*.py", "README.md"}

// copyConfiguration copies the configuration in a folder and in those below it,
// and nothing else.
func copyConfiguration(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != from && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		wanted := false
		for _, pattern := range configurationFiles {
			if ok, _ := filepath.Match(pattern, d.Name()); ok {
				wanted = true
			}
		}
		if !wanted {
			return nil
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name = filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, text, 0o644)
	})
}

// TestExamplesAreCopiedWithoutState: an example that was applied, as the README
// says to do, is copied as if it had not been.
func TestExamplesAreCopiedWithoutState(t *testing.T) {
	r := &reading{T: t, page: &page{name: "README.md"}, root: t.TempDir()}
	for _, name := range []string{
		"main.tf", "README.md", "more.stoke.hcl", "part/main.tf.json",
		"terraform.tfstate", "terraform.tfstate.backup", "terraform.tfstate.journal", ".terraform.tfstate.lock.info", "errored.tfstate",
		"terraform.tfstate.d/dev/terraform.tfstate", ".terraform/terraform.tfstate", ".terraform/modules/a/main.tf", ".terraform.lock.hcl",
		"my.tfplan", "plan.out", "terraform.tfvars", "my.auto.tfvars", "crash.log",
	} {
		for _, example := range copied {
			write(t, filepath.Join(r.root, "examples", example, name), []byte("train = 9\n"))
		}
	}
	r.dir = t.TempDir()
	r.repository()
	var got []string
	err := fs.WalkDir(os.DirFS(filepath.Join(r.dir, "examples", "quickstart")), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	if want := "README.md main.tf more.stoke.hcl part/main.tf.json"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("copied %v %v, want %s", got, err, want)
	}
}

// TestHomeIsTheTests: no program that a test starts finds the user's home.
func TestHomeIsTheTests(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(filepath.Base(home), "stoke-home") || os.Getenv("XDG_STATE_HOME") != "" {
		t.Errorf("the tests' home is %s, XDG_STATE_HOME %q", home, os.Getenv("XDG_STATE_HOME"))
	}
}
