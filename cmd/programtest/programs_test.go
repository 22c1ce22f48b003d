package programtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestBuiltBefore takes the programs of an earlier process and leaves them alone.
func TestBuiltBefore(t *testing.T) {
	cache := t.TempDir()
	if err := os.MkdirAll(filepath.Join(cache, "key"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "") // building would fail
	if dir, err := build(cache, "key"); err != nil || dir != filepath.Join(cache, "key") {
		t.Errorf("got %q, %v", dir, err)
	}
	old := time.Now().Add(-72 * time.Hour)
	if err := os.Chtimes(filepath.Join(cache, "key"), old, old); err != nil {
		t.Fatal(err)
	}
	if dir, err := build(cache, "other"); err == nil {
		t.Errorf("without go it built %s", dir)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
