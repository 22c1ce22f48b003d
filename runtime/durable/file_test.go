package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// names are the files of a folder.
func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func TestFileIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	content := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); string(got) != want && !(want == "" && os.IsNotExist(err)) {
			t.Errorf("content %q, %v, want %q", got, err, want)
		}
	}
	half := func() *File {
		t.Helper()
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("new"); err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := half()
	content("")
	if got := names(t, dir); len(got) != 1 || got[0][0] != '.' {
		t.Errorf("a file that is being written is %q", got)
	}
	f.Abort()
	if err := f.Commit(); err == nil {
		t.Error("a file that was given up was committed")
	}
	content("")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	f = half()
	content("old")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	content("new")
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("files %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
