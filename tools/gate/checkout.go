package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock waits until no other run of the gate works in the cache's checkout.
func (c cache) lock() (unlock func(), err error) {
	f, err := os.OpenFile(c.path("lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Println("waiting for another run of the gate on this machine")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
	return func() { _ = f.Close() }, nil
}

// checkout brings the kept checkout to the files of root, changes that are not
// committed included. Files that are the same stay untouched.
func (c cache) checkout(root string) (string, error) {
	dir, err := place()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		if _, err := output(root, "git", "init", "-q", dir); err != nil {
			return "", err
		}
	}
	commit, err := snapshot(root)
	if err != nil {
		return "", err
	}
	for _, words := range [][]string{
		{"fetch", "-q", root, commit},
		{"checkout", "-q", "-f", "--detach", commit},
		{"clean", "-q", "-ffdx", "-e", "/bin"},
	} {
		if _, err := output(dir, "git", words...); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// place is the folder of the kept checkout. It is not in the user's cache folder:
// staticcheck reads no configuration there.
func place() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "stoke-ci"), nil
}

// snapshot returns a commit of the files of a checkout as they are now: HEAD
// where nothing is changed.
func snapshot(root string) (string, error) {
	tree, err := writeTree(root)
	if err != nil {
		return "", err
	}
	for _, words := range [][]string{{"rev-parse", "HEAD^{tree}"}, {"rev-parse", "HEAD"}} {
		out, err := output(root, "git", words...)
		if err != nil {
			return "", err
		}
		if out = strings.TrimSpace(out); words[1] == "HEAD" {
			return out, nil
		} else if out != tree {
			break
		}
	}
	commit, err := output(root, "git", "-c", "user.name=gate", "-c", "user.email=gate@localhost", "commit-tree", tree, "-p", "HEAD", "-m", "What the gate tests")
	return strings.TrimSpace(commit), err
}
