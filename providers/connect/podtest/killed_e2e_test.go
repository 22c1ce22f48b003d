//go:build e2e && linux

package podtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A killed process takes its node with it, whose processes it could not end; the
// next cluster removes the rest. That process runs this test, too.
func TestKilledTestRealPods(t *testing.T) {
	if file := os.Getenv("PODTEST_GROUP"); file != "" {
		c := Start(t, Options{})
		if err := os.WriteFile(file+".half", fmt.Appendln(nil, c.dir), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".half", file); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	if _, why := missing(); why != "" {
		Start(t, Options{}) // says why
	}
	parent, file := t.TempDir(), filepath.Join(t.TempDir(), "group")
	var said strings.Builder
	victim := exec.Command(os.Args[0], "-test.run=^TestKilledTestRealPods$")
	victim.Env = append(os.Environ(), "PODTEST_GROUP="+file, "TMPDIR="+parent)
	victim.Stdout, victim.Stderr = &said, &said
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- victim.Wait() }()
	var dir string
	for dir == "" {
		select {
		case err := <-ended:
			t.Fatalf("the process ended before it was killed: %v\n%s", err, said.String())
		case <-time.After(50 * time.Millisecond):
		}
		text, _ := os.ReadFile(file)
		dir = strings.TrimSpace(string(text))
	}
	groups, err := hierarchies(filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(inside(groups)) < 2 {
		t.Fatalf("in the node's control groups are %v, want its programs", inside(groups))
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	for end := time.Now().Add(patience); len(inside(groups)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v outlive the one that they were started by", inside(groups))
		}
	}
	if _, err := folder(t, parent); err != nil {
		t.Fatal(err)
	}
	for _, left := range append(groups, dir) {
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
}

// inside lists the processes in groups and below them.
func inside(groups []string) []string {
	var pids []string
	for _, g := range groups {
		_ = filepath.WalkDir(g, func(name string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "cgroup.procs" {
				text, _ := os.ReadFile(name)
				pids = append(pids, strings.Fields(string(text))...)
			}
			return nil
		})
	}
	return pids
}
