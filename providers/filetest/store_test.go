package filetest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKilledUpdate updates a file without a mark, as imported ones are, after
// an update that was killed half-way: nothing is left beside it.
func TestKilledUpdate(t *testing.T) {
	dir := t.TempDir()
	o := object{path: filepath.Join(dir, "a"), mark: unmarked, content: "new"}
	for name, text := range map[string]string{"a": "old", ".a.update.tmp": "torn"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.update(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "a" && e.Name() != logName {
			t.Errorf("%s is left", e.Name())
		}
	}
	if there, err := load(o.path); err != nil || there.content != "new" {
		t.Errorf("the file is %+v, %v", there, err)
	}
}
