//go:build e2e && linux

package lab

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroups is where a control group of that name is in every hierarchy that this
// machine has: several of version 1, one of version 2, or both.
func cgroups(name string) ([]string, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var groups []string
	for line := range strings.Lines(string(info)) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if !ok || len(f) < 5 || !strings.HasPrefix(after, "cgroup") || !strings.HasPrefix(f[4], "/sys/fs/cgroup") {
			continue
		}
		if group := filepath.Join(f[4], name); !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("no control groups are mounted at /sys/fs/cgroup")
	}
	return groups, nil
}

// makeGroup makes a group below a lab's, ready to take processes.
func makeGroup(lab, name string) (string, error) {
	group := filepath.Join(lab, name)
	if err := os.MkdirAll(group, 0o755); err != nil {
		return "", err
	}
	for _, g := range []string{lab, group} {
		parent := filepath.Dir(g)
		// Version 1: a new cpuset has neither CPUs nor memory.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if is, err := os.ReadFile(filepath.Join(g, file)); err == nil && strings.TrimSpace(string(is)) == "" {
				if all, err := os.ReadFile(filepath.Join(parent, file)); err == nil {
					_ = os.WriteFile(filepath.Join(g, file), all, 0)
				}
			}
		}
		// Version 2: a group has the controllers that its parent hands down.
		if all, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers")); err == nil {
			for c := range strings.FieldsSeq(string(all)) {
				_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+c), 0)
			}
		}
	}
	return group, nil
}

// empty ends all processes in groups and below them.
func empty(groups []string) error {
	if eventually(10*time.Second, func() bool {
		left := inside(groups)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	}) {
		return nil
	}
	return fmt.Errorf("processes %v in %s do not end", inside(groups), groups[0])
}

// inside lists the processes in groups and below them.
func inside(groups []string) []int {
	var pids []int
	for _, g := range groups {
		_ = filepath.WalkDir(g, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "cgroup.procs" {
				return nil
			}
			content, _ := os.ReadFile(name)
			for field := range strings.FieldsSeq(string(content)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
			return nil
		})
	}
	return pids
}

// removeGroup removes a group with those below it, which must be empty.
func removeGroup(group string) error {
	var dirs []string
	_ = filepath.WalkDir(group, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, name)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		var err error
		if !eventually(5*time.Second, func() bool {
			err = syscall.Rmdir(dir)
			return err == nil || err == syscall.ENOENT
		}) {
			return fmt.Errorf("remove the control group %s: %w", dir, err)
		}
	}
	return nil
}
