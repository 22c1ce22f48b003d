package local

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// A run that has ended is started again only once its last supervisor, which
// has the lock, is gone.
func TestAwaitEnding(t *testing.T) {
	f := run.Folder(t.TempDir())
	last := exec.Command("sleep", "600")
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { last.Process.Kill(); last.Wait() })
	process, err := run.Identify(last.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WriteJSON(f.Supervisor(), run.Supervisor{Process: process}); err != nil {
		t.Fatal(err)
	}
	status := func(p spec.Phase) {
		t.Helper()
		if err := run.WriteJSON(f.StatusFile(), spec.Status{Phase: p}); err != nil {
			t.Fatal(err)
		}
	}
	status(spec.Running)
	if err := awaitEnding(t.Context(), f); err != nil {
		t.Errorf("a run that goes on is waited for: %v", err)
	}
	status(spec.Stopped)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := awaitEnding(short, f); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a supervisor that lives is not waited for: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- awaitEnding(t.Context(), f) }()
	last.Process.Kill()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
