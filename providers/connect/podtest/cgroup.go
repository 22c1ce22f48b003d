//go:build e2e && linux

package podtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// prefix is what folders of clusters are called, and their control groups.
const prefix = "podtest-"

// folder makes the folder of a cluster, and removes what killed processes have
// left: nobody has the locks of their folders, and no process is in their control
// groups.
func folder(t testing.TB, parent string) (string, error) {
	left, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		lock := flock.New(filepath.Join(dir, "lock"))
		if free, err := lock.TryLock(); !free || err != nil {
			continue
		}
		groups, err := hierarchies(filepath.Base(dir))
		if err == nil {
			err = errors.Join(removeGroups(groups), os.RemoveAll(dir))
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			return "", fmt.Errorf("remove what a test left: %w", err)
		}
	}
	// It has its name when its lock is taken.
	half, err := os.MkdirTemp(parent, "."+prefix)
	if err != nil {
		return "", err
	}
	lock := flock.New(filepath.Join(half, "lock"))
	if _, err := lock.TryLock(); err != nil {
		return "", err
	}
	dir := filepath.Join(parent, strings.TrimPrefix(filepath.Base(half), "."))
	t.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(dir), lock.Close()); err != nil {
			t.Error(err)
		}
	})
	return dir, os.Rename(half, dir)
}

// hierarchies are the folders of a control group of that name: one in each
// hierarchy of version 1, one in all where there is version 2.
func hierarchies(name string) ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) > 4 && len(kind) > 0 && strings.HasPrefix(kind[0], "cgroup") {
			all = append(all, filepath.Join(fields[4], name))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no control groups are mounted")
	}
	return all, nil
}

// makeGroups makes a control group in every hierarchy.
func makeGroups(groups []string) error {
	for _, g := range groups {
		if err := makeGroup(g); err != nil {
			return err
		}
	}
	return nil
}

func makeGroup(dir string) error {
	parent := filepath.Dir(dir)
	// Version 2: a group has the controllers that its parent hands down.
	if all, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers")); err == nil {
		for c := range strings.FieldsSeq(string(all)) {
			_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+c), 0) // some cannot be
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make a control group: %w", err)
	}
	// Version 1: a new cpuset has neither CPUs nor memory.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		all, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && strings.TrimSpace(string(all)) != "" {
			err = os.WriteFile(filepath.Join(dir, file), all, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeGroups removes groups with those below them. No process is to be in
// them; one that was killed just now may be for a moment.
func removeGroups(groups []string) error {
	for _, g := range groups {
		var dirs []string
		_ = filepath.WalkDir(g, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, name)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			if err := removeGroup(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeGroup(dir string) error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Rmdir(dir)
		if err == nil || err == syscall.ENOENT {
			return nil
		}
		if err != syscall.EBUSY || time.Now().After(end) {
			return fmt.Errorf("remove the control group %s: %w", dir, err)
		}
	}
}
