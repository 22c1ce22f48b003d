package library

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"testing"
)

func TestLibrary(t *testing.T) {
	names := Names()
	if !slices.Contains(names, "local-training") {
		t.Fatal(names)
	}
	seen := map[string]bool{}
	for _, name := range names {
		files, err := Files(name)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := fs.ReadFile(files, "main.tf"); err != nil || len(text) == 0 {
			t.Errorf("%s has no main.tf: %v", name, err)
		}
		version := Version(name)
		if !regexp.MustCompile(`^1\.0\.0\+[0-9a-f]{12}$`).MatchString(version) || seen[version] {
			t.Errorf("%s has the version %q", name, version)
		}
		seen[version] = true
	}
	for _, name := range []string{"nothing", ".", "..", "", "local-training/main.tf"} {
		if _, err := Files(name); !errors.Is(err, fs.ErrNotExist) || Version(name) != "" {
			t.Errorf("%q: %v", name, err)
		}
	}
}
