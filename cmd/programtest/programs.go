package programtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
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

// Rank builds a user's program, into dir, and returns its path: see cmd/programtest/ranktest.
func Rank(dir string) (string, error) {
	to := filepath.Join(dir, "rank")
	build := exec.Command("go", "build", "-trimpath", "-o", to, module+"/cmd/programtest/ranktest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // images have no libraries
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program of tests: %w\n%s", err, out)
	}
	return to, nil
}

// folder returns the folder that STOKE_PROGRAMS names, or else one in the user's
// cache folder. go test runs a test again when a variable has changed
// that the test reads: STOKE_PROGRAMS_SUM changes with the programs.
var folder = sync.OnceValues(func() (string, error) {
	if dir, sum := os.Getenv("STOKE_PROGRAMS"), os.Getenv("STOKE_PROGRAMS_SUM"); dir != "" {
		if sum == "" {
			return "", errors.New("STOKE_PROGRAMS is set without STOKE_PROGRAMS_SUM: make test sets both")
		}
		return dir, nil
	}
	key, err := sources()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return build(filepath.Join(cache, "stoke-programs"), key)
})

// unused is how long no test has asked for programs that are removed: longer than
// a package's tests run.
const unused = 40 * time.Minute

// build returns the folder with the programs of a key, which it builds where no
// process has done so before. It removes programs that no test has started with
// for a while.
func build(cache, key string) (string, error) {
	dir := filepath.Join(cache, key)
	if now := time.Now(); os.Chtimes(dir, now, now) == nil {
		return dir, nil
	}
	old, _ := os.ReadDir(cache)
	for _, entry := range old { // each is of other sources, and 100 MB
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > unused {
			_ = os.RemoveAll(filepath.Join(cache, entry.Name()))
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(cache, "part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part) //nolint:errcheck // gone where it was renamed
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", part+"/", module+"/cmd/stoke", module+"/cmd/stoke-trainer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// sources returns a key of the sources of the programs: their names, sizes and
// times. It looks at each of them, so that go test takes a change of one for a
// change of the test's inputs.
func sources() (key string, err error) {
	list := exec.Command("go", "list", "-deps", "-f",
		`{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.GoFiles}} {{.}}{{end}}{{range $.EmbedFiles}} {{.}}{{end}}{{end}}{{end}}`,
		module+"/cmd/stoke", module+"/cmd/stoke-trainer")
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list the sources of the programs: %w", err)
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output() // it names the versions of all other modules
	if err != nil {
		return "", fmt.Errorf("find go.mod: %w", err)
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	dir, name := filepath.Split(strings.TrimSpace(string(mod)))
	for line := range strings.Lines(dir + " " + name + "\n" + string(out)) {
		words := strings.Fields(line)
		for _, name := range words[min(1, len(words)):] {
			info, err := os.Stat(filepath.Join(words[0], name))
			if err != nil {
				return "", err
			}
			fmt.Fprintln(h, words[0], name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:24], nil
}
