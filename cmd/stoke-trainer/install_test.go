package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The copy is executable, replaces another one, and appears whole or not at all.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, text := range []string{"one", "another"} {
		if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := install(from, to); err != nil {
			t.Fatal(err)
		}
		if got := must(os.ReadFile(to)); string(got) != text {
			t.Errorf("copied %q, not %q", got, text)
		}
		if info := must(os.Stat(to)); info.Mode().Perm()&0o111 == 0 {
			t.Errorf("its mode is %v", info.Mode())
		}
	}
	if err := install(filepath.Join(dir, "missing"), to); err == nil {
		t.Error("a missing program is installed")
	}
	if left := must(os.ReadDir(dir)); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// stoke-gpu is copied with the program where it lies next to it.
func TestInstallWithStokeGPU(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put("stoke-trainer")
	for _, want := range []int{1, 2} {
		if err := installBoth(filepath.Join(from, "stoke-trainer"), filepath.Join(to, "stoke-trainer")); err != nil {
			t.Fatal(err)
		}
		if got := must(os.ReadDir(to)); len(got) != want {
			t.Errorf("copied %v", got)
		}
		put("stoke-gpu")
	}
}
