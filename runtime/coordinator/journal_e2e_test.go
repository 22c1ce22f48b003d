//go:build e2e

package coordinator

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/history"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestTenMillionUpdates writes the journal of 10 million updates, and opens it as
// a coordinator does that comes back: disk, memory and CPU time have bounds.
func TestTenMillionUpdates(t *testing.T) {
	const n = 10_000_000
	f := run.Folder(t.TempDir())
	h, j := journalOf(t, f)
	if err := j.ledger.Begin(1, 0); err != nil {
		t.Fatal(err)
	}
	for step := int64(1); step <= n; step++ {
		at := (step - 1) % 937 * 64
		if err := j.ledger.Add(ledger.Record{Epoch: int(step / 937), Start: at, End: at + 64}); err != nil {
			t.Fatal(err)
		}
		e := spec.Event{Type: spec.EventUpdate, Term: 1, Step: step, Epoch: int(step / 937), Records: 64, Loss: 0.25, Norm: 1.5}
		if err := h.Add(e); err != nil {
			t.Fatal(err)
		}
		if step%20_000 == 0 {
			if err := h.Thin(anybody); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(j.close(), h.Close()); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	err := filepath.WalkDir(string(f), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	})
	if err != nil || size > 500<<20 {
		t.Errorf("%d bytes, %v", size, err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := cpuTime(t)
	h, j = journalOf(t, f)
	defer h.Close()
	defer j.close()
	took := cpuTime(t) - began
	runtime.ReadMemStats(&after)
	if end, _ := j.ledger.End(); end != n {
		t.Errorf("it ends at step %d", end)
	}
	// All that was ever allocated bounds what was held.
	if used := after.TotalAlloc - before.TotalAlloc; took > 2*time.Second || used > 100<<20 {
		t.Errorf("%v of CPU and %d bytes to come back", took, used)
	} else {
		t.Logf("%d bytes on disk, %v of CPU and %d bytes of memory to come back", size, took, used)
	}
}

// journalOf opens history and ledger of a run.
func journalOf(t *testing.T, f run.Folder) (*history.File, *journal) {
	t.Helper()
	j := new(journal)
	h, err := history.Open(f.Metrics(), j.follow)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Renew(anybody)
	if err = errors.Join(err, j.open(f)); err != nil {
		t.Fatal(err)
	}
	return h, j
}

// anybody may write.
func anybody() error { return nil }

// cpuTime is what this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
