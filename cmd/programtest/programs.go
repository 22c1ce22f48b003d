package programtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/stokehq/stoke"

// Path returns the path of a program of this module, such as "stoke-trainer".
func Path(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Folder(t), name)
}

// Folder returns a folder with stoke and stoke-trainer. All tests share it:
// none of them writes there.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Copy puts a program of this module at a path, for tests that need it there.
func Copy(name, to string) error {
	dir, err := folder()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// Trainer returns the path of stoke-trainer for tests that have no testing.TB
// yet. With race it is built with the race detector, into dir.
func Trainer(dir string, race bool) (string, error) {
	if !race {
		dir, err := folder()
		return filepath.Join(dir, "stoke-trainer"), err
	}
	to := filepath.Join(dir, "stoke-trainer")
	build := exec.Command("go", "build", "-race", "-o", to, module+"/cmd/stoke-trainer")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the trainer: %w\n%s", err, out)
	}
	return to, nil
}

// folder returns the folder that STOKE_PROGRAMS names, or else builds both
// programs into a new one. go test runs a test again when a variable has changed
// that the test reads: STOKE_PROGRAMS_SUM changes with the programs.
var folder = sync.OnceValues(func() (string, error) {
	if dir, sum := os.Getenv("STOKE_PROGRAMS"), os.Getenv("STOKE_PROGRAMS_SUM"); dir != "" {
		if sum == "" {
			return "", errors.New("STOKE_PROGRAMS is set without STOKE_PROGRAMS_SUM: make test sets both")
		}
		return dir, nil
	}
	if err := mention(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "stoke-programs-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/", module+"/cmd/stoke", module+"/cmd/stoke-trainer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, nil
})

// mention looks at each source of the programs, so that go test takes a change
// of one of them for a change of the test's inputs.
func mention() error {
	list := exec.Command("go", "list", "-deps", "-f",
		`{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.GoFiles}} {{.}}{{end}}{{range $.EmbedFiles}} {{.}}{{end}}{{end}}{{end}}`,
		module+"/cmd/stoke", module+"/cmd/stoke-trainer")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the sources of the programs: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for _, name := range words[min(1, len(words)):] {
			if _, err := os.Stat(filepath.Join(words[0], name)); err != nil {
				return err
			}
		}
	}
	return nil
}
