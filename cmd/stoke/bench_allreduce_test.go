package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// benchmarkCommand returns a command that measures on this machine, with a folder of runs of its
// own.
func benchmarkCommand(t *testing.T, args ...string) (cmd *exec.Cmd, runs string) {
	t.Helper()
	home := t.TempDir()
	cmd = exec.Command(programtest.Path(t, "stoke"), append([]string{"bench", "allreduce", "-no-color"}, args...)...)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "XDG_STATE_HOME="+home, "TMPDIR="+home)
	return cmd, filepath.Join(home, "stoke", "runs")
}

// nothingLeft checks that the run was removed, with the folder of its credentials.
func nothingLeft(t *testing.T, runs string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(runs, "run-*"))
	folders, _ := filepath.Glob(filepath.Join(runs, "..", "..", "stoke-bench-*"))
	if err != nil || len(left)+len(folders) > 0 {
		t.Errorf("%v and %v are left (%v)", left, folders, err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		if b, _ := os.ReadFile(file); bytes.Contains(b, []byte(runs)) { // it may have ended since
			t.Errorf("a process is left: %s", bytes.ReplaceAll(b, []byte{0}, []byte(" ")))
		}
	}
}

// TestBenchAllReduceHere measures three workers on this machine: every length has a
// result, and nothing is left of the run.
func TestBenchAllReduceHere(t *testing.T) {
	t.Parallel()
	cmd, runs := benchmarkCommand(t, "-workers=3", "-json")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var is struct {
		Workers int
		Results []providers.RunReduction
	}
	if err != nil || json.Unmarshal(out, &is) != nil || is.Workers != 3 || len(is.Results) != 6 {
		t.Fatalf("%v: %s%s", err, out, said.String())
	}
	floats := 100
	for _, r := range is.Results {
		if r.Floats != floats || r.Bytes != 4*floats || r.Updates < 1 || r.Seconds <= 0 || r.Fastest <= 0 || r.Bandwidth <= 0 {
			t.Errorf("result %+v", r)
		}
		floats *= 10
	}
	nothingLeft(t, runs)
}

// After an interrupt a run that could not be removed is told.
func TestBenchTellsOfARunThatIsLeft(t *testing.T) {
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(terminal.ErrStopped)
	r := &runs{s: newSession(stage{in: os.Stdin, out: said, err: said}), secrets: new(redact.Secrets)}
	r.s.cli, r.s.noColor = new(cliConfig), true
	if err := r.benchFailed(ctx, terminal.ErrStopped); !errors.Is(err, interruptedCode) {
		t.Errorf("an interrupt ends with %v", err)
	}
	if text, err := os.ReadFile(said.Name()); err != nil || len(text) > 0 {
		t.Errorf("%v: an interrupt is told: %s", err, text)
	}
	left := &providers.RunLeftError{Run: "run-1", Place: "the namespace x", Err: errors.New("refused")}
	if err := r.benchFailed(ctx, errors.Join(terminal.ErrStopped, left)); !errors.Is(err, interruptedCode) {
		t.Errorf("a run that is left ends with %v", err)
	}
	if text, err := os.ReadFile(said.Name()); err != nil || !strings.Contains(string(text), "run-1 could not be removed from the namespace x") {
		t.Errorf("%v: it says %s", err, text)
	}
}

// TestBenchAllReduceInterrupted presses Ctrl-C once there is a result: the run is removed.
func TestBenchAllReduceInterrupted(t *testing.T) {
	t.Parallel()
	cmd, runs := benchmarkCommand(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 200)
	if n, err := out.Read(head); err != nil || !strings.Contains(string(head[:n]), "FLOATS") {
		t.Errorf("%v: %s", err, head)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	_, _ = rest.ReadFrom(out) // it ends with the process
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.ExitStatus() != int(interruptedCode) {
		t.Errorf("it ended with %v", status)
	}
	if lines := strings.Count(rest.String(), "\n"); lines >= 6 {
		t.Errorf("it measured on: %s", rest.String())
	}
	nothingLeft(t, runs)
}
