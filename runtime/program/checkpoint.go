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
		info, err := os.Lstat(markerOf(path, e.IsDir()))
		if err == nil && info.Mode().IsRegular() && !changedAfter(path, e.IsDir(), info.ModTime()) {
			all = append(all, Checkpoint{path, info.ModTime()})
		}
	}
	slices.SortStableFunc(all, func(a, b Checkpoint) int { return a.Marked.Compare(b.Marked) })
	return all, nil
}

// changedAfter reports whether a checkpoint, or a file in its folder, was written after
// its mark: it is being made again under its name.
func changedAfter(path string, folder bool, marked time.Time) bool {
	if !folder {
		info, err := os.Lstat(path)
		return err != nil || info.ModTime().After(marked)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return true
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || !info.IsDir() && info.ModTime().After(marked) {
			return true
		}
	}
	return false
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
	file, err := os.OpenFile(markerOf(path, folder), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("mark a checkpoint as complete: %w", err)
	}
	// A write sets the time of the mark by the clock of the file system, as for the
	// checkpoint itself. The mark may exist already.
	_, err = file.WriteString("complete\n")
	return errors.Join(err, file.Sync(), file.Close())
}
