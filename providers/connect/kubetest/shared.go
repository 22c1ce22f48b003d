package kubetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
)

// Shared is one cluster for all tests of a package. It starts when the first test
// asks for it and ends in Main.
type Shared struct {
	Options Options

	mu      sync.Mutex
	asked   bool
	ours    bool // Main runs
	dir     string
	lock    *flock.Flock
	cluster *Cluster
	err     error
}

// Main runs the tests of a package and ends the cluster; TestMain is to pass what
// it returns to os.Exit.
func (s *Shared) Main(m *testing.M) int {
	s.mu.Lock()
	s.ours = true
	s.mu.Unlock()
	defer s.end()
	return m.Run()
}

// Cluster is the cluster. Where there are no programs for it the test is skipped.
// When the test fails, it shows what the programs complained about meanwhile.
func (s *Shared) Cluster(t testing.TB) *Cluster {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked = true
		s.err = s.start()
	}
	if s.err != nil {
		refuse(t, s.err)
	}
	s.cluster.tell(t)
	return s.cluster
}

// start starts the cluster, which outlives the test that asks first.
func (s *Shared) start() error {
	if !s.ours {
		return errors.New("kubetest.Shared: TestMain must call Main, which ends the cluster")
	}
	programs, err := binaries()
	if err != nil {
		return err
	}
	if s.dir, s.lock, err = folder(os.TempDir()); err != nil {
		return err
	}
	s.cluster, err = start(context.Background(), programs, s.dir, s.Options)
	return err
}

// folder makes a folder, and removes the folders of killed processes, whose
// locks are free.
func folder(parent string) (string, *flock.Flock, error) {
	left, err := filepath.Glob(filepath.Join(parent, "kubetest-*"))
	if err != nil {
		return "", nil, err
	}
	for _, dir := range left {
		lock := flock.New(filepath.Join(dir, "lock"))
		if free, err := lock.TryLock(); free && err == nil {
			_ = os.RemoveAll(dir) // somebody else's cannot be, and is not ours to remove
			_ = lock.Close()
		}
	}
	// It has its name when its lock is taken.
	dir, err := os.MkdirTemp(parent, ".kubetest-")
	if err != nil {
		return "", nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if _, err := lock.TryLock(); err != nil {
		return "", nil, err
	}
	named := filepath.Join(parent, strings.TrimPrefix(filepath.Base(dir), "."))
	return named, lock, os.Rename(dir, named)
}

func (s *Shared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.end()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
		_ = s.lock.Close()
	}
}

// tell shows, when the test has failed, what the programs complained about while
// it ran.
func (c *Cluster) tell(t testing.TB) {
	since := map[*process]int64{}
	for _, p := range c.processes() {
		since[p] = p.size()
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, p := range c.processes() {
			if said := p.said(since[p], true); len(said) > 0 {
				t.Logf("%s said meanwhile:\n%s", p.name, strings.Join(said, "\n"))
			}
		}
	})
}
