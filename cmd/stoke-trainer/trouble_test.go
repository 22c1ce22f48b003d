package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestRunsThatCannotBegin end at once, and say why.
func TestRunsThatCannotBegin(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil  func(*spec.Spec)
		phase  spec.Phase
		reason spec.Reason
		want   string
	}{
		"no data":       {func(s *spec.Spec) { s.Dataset.Path = "/nowhere/at/all" }, spec.Stopped, "", "/nowhere/at/all"},
		"other data":    {func(s *spec.Spec) { s.Dataset.Hash = "sha256:other" }, spec.Stopped, "", "sha256:other"},
		"unknown model": {func(s *spec.Spec) { s.Model = "mnist-cmn" }, spec.Failed, spec.ReasonRejected, `did you mean "mnist-cnn"`},
		"no GPU engine": {func(s *spec.Spec) { s.Worker.GPUs = 1 }, spec.Failed, spec.ReasonRejected, "worker.gpus"},
	} {
		t.Run(name, func(t *testing.T) {
			s := small()
			tt.spoil(&s)
			r := launch(t, s)
			r.start()
			st := r.wait()
			if st.Phase != tt.phase || st.Reason != tt.reason || !strings.Contains(st.Message, tt.want) || st.Log == "" {
				t.Errorf("status %+v, want a message with %q", st, tt.want)
			}
		})
	}
}

// TestHungProcessIsReplaced stops a process without ending it: its connections
// stay open, and it answers nothing.
func TestHungProcessIsReplaced(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"worker 0", "ps 1", "coordinator"} {
		t.Run(role, func(t *testing.T) {
			s := long()
			s.ParameterServer.Replicas = 2
			r, s := disturbed(t, s, atStep(t, 20), func(r *trial) bool {
				for _, p := range roles(t, r.folder) {
					if p.role == role {
						return syscall.Kill(p.pid, syscall.SIGSTOP) == nil
					}
				}
				return false
			})
			if st := r.wait(); st.Phase != spec.Succeeded || st.Records != records(s) {
				r.dump()
				t.Fatalf("status %+v", st)
			}
			checkLedger(t, r.folder, s, 1500)
		})
	}
}

// TestFolderThatVanishesEndsTheRun takes a run's folder away from it: nothing of
// the run stays, and nothing makes the folder again.
func TestFolderThatVanishesEndsTheRun(t *testing.T) {
	t.Parallel()
	s := long()
	s.Epochs, s.Checkpoint.EverySteps = 100_000, 5 // it writes checkpoints all the time
	r := launch(t, s)
	r.start()
	eventually(t, "there is a checkpoint", func() bool { return len(saved(r)) > 0 })
	began, moved := time.Now(), filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(string(r.folder), moved); err != nil {
		t.Fatal(err)
	}
	<-r.reaped
	t.Logf("it ended after %v", time.Since(began))
	if left := roles(t, r.folder); len(left) > 0 {
		t.Errorf("roles left: %v", left)
	}
	if _, err := os.Stat(string(r.folder)); !os.IsNotExist(err) || r.success {
		t.Errorf("the folder is there again: %v, success %v", err, r.success)
	}
	if found := must(filepath.Glob(filepath.Join(moved, "checkpoints", "step-*", spec.ManifestFile))); len(found) == 0 {
		t.Error("the moved folder has no checkpoint")
	}
}

// TestProgramReplacedDuringARun puts another program at stoke-trainer's path,
// as an upgrade does: roles that are started again are of the run's version.
func TestProgramReplacedDuringARun(t *testing.T) { // alone: it changes trainer
	if runtime.GOOS != "linux" {
		t.Skip("only Linux keeps the file that a process runs")
	}
	data, err := os.ReadFile(trainer)
	if err != nil {
		t.Fatal(err)
	}
	original := trainer
	trainer = filepath.Join(t.TempDir(), "stoke-trainer")
	defer func() { trainer = original }()
	install := func(program []byte) {
		if err := os.WriteFile(trainer+".new", program, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(trainer+".new", trainer); err != nil {
			t.Fatal(err)
		}
	}
	install(data)
	r, s := disturbed(t, long(), atStep(t, 20), func(r *trial) bool {
		install([]byte("#!/bin/sh\nexit 1\n"))
		if kill(t, r.folder, "ps") {
			return true
		}
		install(data)
		return false
	})
	if st := r.wait(); st.Phase != spec.Succeeded || st.Records != records(s) {
		r.dump()
		t.Fatalf("status %+v", st)
	}
}

func TestSuperviseNeedsARun(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.MkdirAll(filepath.Join(bad, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bad, "spec.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, bad, filepath.Join(empty, "missing")} {
		out, err := exec.Command(trainer, "supervise", "--run", dir).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "spec.json") {
			t.Errorf("%s: %v, %q", dir, err, out)
		}
	}
}

func TestDatasetErrorsAreJSON(t *testing.T) {
	for name, args := range map[string][]string{
		"missing folder": {"inspect", "--format", "idx", "--path", "/nowhere/at/all"},
		"unknown format": {"inspect", "--format", "tape", "--path", "/tmp"},
		"bad JSON":       {"inspect", "--origin", "{"},
	} {
		cmd := exec.Command(trainer, append([]string{"dataset"}, args...)...)
		var reason bytes.Buffer
		cmd.Stderr = &reason
		out, err := cmd.Output()
		var f api.Failure
		if err == nil || len(out) > 0 || json.Unmarshal(reason.Bytes(), &f) != nil || f.Summary == "" || f.Detail == "" {
			t.Errorf("%s: %v, %q", name, err, reason.String())
		}
	}
}
