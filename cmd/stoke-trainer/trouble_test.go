package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// TestRunsThatCannotBegin end at once, and say why.
func TestRunsThatCannotBegin(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*spec.Spec)
		want  string
	}{
		"no data":       {func(s *spec.Spec) { s.Dataset.Path = "/nowhere/at/all" }, "/nowhere/at/all"},
		"other data":    {func(s *spec.Spec) { s.Dataset.Hash = "sha256:other" }, "sha256:other"},
		"unknown model": {func(s *spec.Spec) { s.Model = "mnist-cmn" }, `did you mean "mnist-cnn"`},
		"no GPU engine": {func(s *spec.Spec) { s.Worker.GPUs = 1 }, "worker.gpus"},
	} {
		t.Run(name, func(t *testing.T) {
			s := small()
			tt.spoil(&s)
			r := launch(t, s)
			r.start()
			st := r.wait()
			if st.Phase != spec.Failed || !strings.Contains(st.Message, tt.want) || st.Log == "" {
				t.Errorf("status %+v, want a message with %q", st, tt.want)
			}
		})
	}
}

func TestHungWorkerIsGivenUp(t *testing.T) {
	s := long()
	r := launch(t, s)
	r.start()
	eventually(t, "training began", func() bool { return status(t, r.folder).Step >= 20 })
	for _, p := range roles(t, r.folder) {
		if p.role == "worker 0" {
			if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
	}
	if st := r.wait(); st.Phase != spec.Succeeded || st.Records != longRecords {
		r.dump()
		t.Fatalf("status %+v", st)
	}
	checkLedger(t, r.folder, s, 1500)
}

func TestSuperviseNeedsARun(t *testing.T) {
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
		var f spec.Failure
		if err == nil || len(out) > 0 || json.Unmarshal(reason.Bytes(), &f) != nil || f.Summary == "" || f.Detail == "" {
			t.Errorf("%s: %v, %q", name, err, reason.String())
		}
	}
}
