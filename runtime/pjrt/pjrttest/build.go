package pjrttest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed testdata/double.c
var double []byte

//go:embed testdata/library.c
var library []byte

// Build returns the path of a new plugin in a temporary folder. Each file is
// loaded once by a process, with its own state: a test that needs the plugin
// with another STOKE_DOUBLE builds another.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "double.so")
	compile(t, double, path)
	return path
}

// BuildLibrary writes a library at path in place of cuDNN: its
// cudnnGetVersion returns 91900.
func BuildLibrary(t testing.TB, path string) {
	t.Helper()
	compile(t, library, path)
}

func compile(t testing.TB, source []byte, path string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("the double of a PJRT plugin is built with gcc, which is not installed")
	}
	if err := os.WriteFile(path+".c", source, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(gcc, "-Wall", "-Wextra", "-Werror", "-Wno-unused-value", "-O1", "-fPIC", "-shared", "-pthread", "-o", path, path+".c", "-lm", "-ldl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the double of a PJRT plugin: %v\n%s", err, out)
	}
}
