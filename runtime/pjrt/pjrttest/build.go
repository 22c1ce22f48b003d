package pjrttest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

//go:embed testdata
var sources embed.FS

var (
	double  = sync.OnceValues(func() ([]byte, error) { return compile("double.c") })
	library = sync.OnceValues(func() ([]byte, error) { return compile("library.c") })
)

// Build returns the path of a new plugin in a temporary folder. Each file is
// loaded once by a process, with its own state: a test that needs the plugin
// with another STOKE_DOUBLE builds another.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "double.so")
	write(t, path, double)
	return path
}

// BuildLibrary writes a library at path in place of cuDNN: its
// cudnnGetVersion returns 91900. Flags are gcc's.
func BuildLibrary(t testing.TB, path string, flags ...string) {
	t.Helper()
	if len(flags) == 0 {
		write(t, path, library)
		return
	}
	write(t, path, func() ([]byte, error) { return compile("library.c", flags...) })
}

func write(t testing.TB, path string, compiled func() ([]byte, error)) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("the double of a PJRT plugin is built with gcc, which is not installed")
	}
	data, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
}

// compile compiles one of the sources. Tests are built without the folder that
// they came from, so that the sources travel in the binary.
func compile(source string, flags ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "pjrttest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "compiled.so")
	arguments := []string{"-Wall", "-Wextra", "-Werror", "-Wno-unused-value", "-O1", "-fPIC", "-shared", "-pthread",
		"-o", path, filepath.Join(dir, "testdata", source), "-lm", "-ldl"}
	build := exec.Command("gcc", append(arguments, flags...)...)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the double of a PJRT plugin: %w\n%s", err, out)
	}
	return os.ReadFile(path)
}
