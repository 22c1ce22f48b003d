package local

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stokehq/stoke/plan/state"
	"golang.org/x/sys/unix"
)

// TestGuard looks at the lock that Terraform would run into, and runs into one
// of its kind. (A lock of an open file and one of a process conflict.)
func TestGuard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has locks that belong to an open file")
	}
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	if err := run(t, newStore(t, path), 0); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, path)
	held := func() bool {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lk := unix.Flock_t{Type: unix.F_WRLCK}
		return errors.Is(unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk), unix.EAGAIN)
	}
	l, err := s.Lock(t.Context(), state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	if !held() {
		t.Error("Terraform would not see the lock")
	}
	if err := run(t, s, 1); err != nil {
		t.Fatal(err)
	}
	if !held() {
		t.Error("Terraform would not see the lock on the new snapshot")
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if held() {
		t.Error("the lock is still there")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lk := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk); err != nil {
		t.Fatal(err)
	}
	var locked *state.LockedError
	if _, err := s.Lock(t.Context(), state.LockInfo{}); !errors.As(err, &locked) {
		t.Errorf("locked past Terraform: %v", err)
	}
}
