package kubetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledTestLeavesNothing kills a process with a cluster, which can clean up
// nothing. That process runs this test, too.
func TestKilledTestLeavesNothing(t *testing.T) {
	if file := os.Getenv("KUBETEST_PIDS"); file != "" {
		hold(t, file)
	}
	if _, err := binaries(); err != nil {
		refuse(t, err)
	}
	file := filepath.Join(t.TempDir(), "pids")
	victim := exec.Command(os.Args[0], "-test.run=^TestKilledTestLeavesNothing$")
	victim.Env = append(os.Environ(), "KUBETEST_PIDS="+file, "TMPDIR="+t.TempDir())
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	ended := make(chan error, 1)
	go func() { ended <- victim.Wait() }()
	for pids == nil {
		select {
		case err := <-ended:
			t.Fatalf("the process ended before it was killed: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		text, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(text)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if len(pids) != 2 {
		t.Errorf("got the processes %v, want etcd and kube-apiserver", pids)
	}
	for _, pid := range pids {
		for alive(pid) {
			select {
			case <-ctx.Done():
				t.Fatalf("process %d outlives the one that it was started by", pid)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// hold starts a cluster, writes its processes' ids into a file, and waits to be
// killed.
func hold(t *testing.T, file string) {
	c := Start(t, Options{APIOnly: true})
	half := file + ".half"
	if err := os.WriteFile(half, fmt.Appendln(nil, c.etcd.pid, c.server.pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(half, file); err != nil {
		t.Fatal(err)
	}
	select {}
}

// alive tells whether a process runs: one that ended, and whose end nobody was
// told, does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
