package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A checkpoint that is written again under its name is not complete until it is
// reported again.
func TestCheckpointOfAReusedName(t *testing.T) {
	for _, folder := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "last")
		content := path
		if folder {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			content = filepath.Join(path, "model")
		}
		write := func(at time.Time) {
			t.Helper()
			if err := os.WriteFile(content, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(content, at, at); err != nil {
				t.Fatal(err)
			}
		}
		count := func(want int) {
			t.Helper()
			all, err := Checkpoints(dir)
			if err != nil || len(all) != want {
				t.Errorf("%d checkpoints, %v; want %d", len(all), err, want)
			}
		}
		write(time.Now().Add(-time.Hour))
		if err := complete(path, folder); err != nil {
			t.Fatal(err)
		}
		count(1)
		write(time.Now().Add(time.Hour)) // killed before it is whole
		count(0)
		write(time.Now().Add(-time.Minute))
		if err := complete(path, folder); err != nil {
			t.Fatal(err)
		}
		count(1)
	}
}

func TestNamesOfMetrics(t *testing.T) {
	for name, ok := range map[string]bool{
		"loss": true, "Größe in %": true, strings.Repeat("x", longestName): true, "": false, strings.Repeat("x", longestName+1): false, "\x1b[31m": false, "a\nb": false,
	} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
