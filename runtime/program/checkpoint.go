package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// marker is the end of the name of the file that makes a checkpoint complete: a
// file in a folder, or next to a file.
const marker = ".complete"

// Checkpoint is a complete checkpoint.
type Checkpoint struct {
	Path   string    // the absolute name of the file or folder
	Marked time.Time // when it was complete
}

// Checkpoints returns the complete checkpoints of a folder, the newest one last. A
// folder that does not exist has none.
func Checkpoints(dir string) ([]Checkpoint, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var all []Checkpoint
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(e.Name(), marker) {
			continue
		}
		if info, err := os.Lstat(markerOf(path, e.IsDir())); err == nil && info.Mode().IsRegular() {
			all = append(all, Checkpoint{path, info.ModTime()})
		}
	}
	slices.SortStableFunc(all, func(a, b Checkpoint) int { return a.Marked.Compare(b.Marked) })
	return all, nil
}

func markerOf(path string, folder bool) string {
	if folder {
		return filepath.Join(path, marker)
	}
	return path + marker
}

// locate returns the absolute name of a checkpoint that a rank reports, which is
// directly below the folder of checkpoints.
func locate(dir, name string) (path string, folder bool, err error) {
	if dir == "" {
		return "", false, errors.New("the run has no folder for checkpoints")
	}
	path = name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path = filepath.Clean(path)
	if filepath.Dir(path) != filepath.Clean(dir) || strings.HasSuffix(path, marker) {
		return "", false, fmt.Errorf("the checkpoint %q is not directly in $%s", name, checkpointVariable)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", false, fmt.Errorf("the checkpoint %q does not exist", name)
	}
	return path, info.IsDir(), nil
}

// complete makes the mark of a checkpoint that a rank reported, so that a later
// generation finds it.
func complete(path string, folder bool) error {
	file, err := os.OpenFile(markerOf(path, folder), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("mark a checkpoint as complete: %w", err)
	}
	now := time.Now()
	return errors.Join(file.Sync(), file.Close(), os.Chtimes(file.Name(), now, now)) // it may have been complete before
}
