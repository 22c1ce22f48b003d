package kubetest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFoldersOfTheDead shows that a folder is removed when nobody has its lock,
// and kept as long as somebody has.
func TestFoldersOfTheDead(t *testing.T) {
	parent := t.TempDir()
	dead, lock, err := folder(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	alive, lock, err := folder(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	mine, another, err := folder(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	if _, err := os.Stat(dead); err == nil {
		t.Error("the folder of a process that is gone is still there")
	}
	got, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil || len(got) != 2 {
		t.Errorf("there are %v (%v), want %s and %s", got, err, alive, mine)
	}
}
