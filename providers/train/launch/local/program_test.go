package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// script is a program of one file, and its code.
func script(t *testing.T, text string) (spec.Spec, launch.Code) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "train.py"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot, err := code.Read(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	s := spec.DefaultProgram()
	s.Name, s.Program.Code, s.Program.StopGrace = "mine", snapshot.Hash(), spec.Duration(20*time.Millisecond)
	if s.Program.Command, err = spec.JSONOf([]string{"python3", "train.py"}); err != nil {
		t.Fatal(err)
	}
	return s, launch.Code{Snapshot: snapshot, Folder: folder}
}

// archives returns the names of the run's archives of code.
func archives(t *testing.T, f run.Folder) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(string(f))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "code-") {
			found = append(found, filepath.Join(string(f), e.Name()))
		}
	}
	return found
}

func launcherOf(t *testing.T, part string) *Launcher {
	trainer := player(t, part)
	return New(filepath.Join(t.TempDir(), "runs"), func(*spec.Spec) (string, error) { return trainer, nil })
}

func TestCodeLiesInTheRunsFolder(t *testing.T) {
	l := launcherOf(t, "good")
	s, c := script(t, "print(1)")
	id, err := l.Start(t.Context(), "op", s, c)
	if err != nil {
		t.Fatal(err)
	}
	f := l.place.Folder(id)
	stopped := func() {
		t.Helper()
		if err := l.Stop(t.Context(), id, time.Second); err != nil {
			t.Error(err)
		}
		if err := run.WriteJSON(f.StatusFile(), spec.Status{Run: id, Hash: s.Hash(), Phase: spec.Stopped}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(stopped)
	holds := func(s spec.Spec) {
		t.Helper()
		if found := archives(t, f); len(found) != 1 || found[0] != f.Code(s.Program.Code) {
			t.Fatalf("its archives are %v, want %s", found, f.Code(s.Program.Code))
		}
		info, err := os.Stat(f.Code(s.Program.Code))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		archive, err := os.Open(f.Code(s.Program.Code))
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		if _, err := code.Unpack(t.Context(), archive, filepath.Join(t.TempDir(), "code"), s.Program.Code); err != nil {
			t.Error(err)
		}
	}
	holds(s)
	stopped()

	// Other code takes the place of the first only when the run goes on with it.
	other, next := script(t, "print(2)")
	l.trainer = func(*spec.Spec) (string, error) { return filepath.Join(t.TempDir(), "none"), nil }
	if err := l.Resume(t.Context(), id, other, next); err == nil {
		t.Error("a trainer that is missing is no error")
	}
	if found := archives(t, f); len(found) != 2 {
		t.Errorf("after a resume that failed: %v", found)
	}
	trainer := player(t, "good")
	l.trainer = func(*spec.Spec) (string, error) { return trainer, nil }
	if err := l.Resume(t.Context(), id, other, next); err != nil {
		t.Fatal(err)
	}
	holds(other)
	if is, err := f.Status(); err != nil || is.Hash != other.Hash() {
		t.Errorf("the status is of %s, %v", is.Hash, err)
	}
}

// Code that is edited while it is packed starts nothing and leaves nothing.
func TestEditedCodeStartsNothing(t *testing.T) {
	l := launcherOf(t, "good")
	s, c := script(t, "print(1)")
	if err := os.WriteFile(filepath.Join(c.Folder, "train.py"), []byte("print(2)"), 0o600); err != nil {
		t.Fatal(err)
	}
	fault := new(code.Fault)
	if _, err := l.Start(t.Context(), "op", s, c); !errors.As(err, &fault) || !fault.Edited {
		t.Errorf("error is %v", err)
	}
	if entries, err := os.ReadDir(string(l.place)); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A killed supervisor and killed agents may leave processes of the program.
func TestLeftProcessesOfAProgramAreEnded(t *testing.T) {
	l := launcherOf(t, "good")
	s, c := script(t, "print(1)")
	id, err := l.Start(t.Context(), "op", s, c)
	if err != nil {
		t.Fatal(err)
	}
	f := l.place.Folder(id)
	orphan := func(of string) (ended chan error) {
		t.Helper()
		left := exec.Command("sleep", "3600")
		left.Env = append(os.Environ(), "STOKE_MARK="+program.Mark{Run: of, Member: "worker-0", Generation: 3}.String())
		if err := left.Start(); err != nil {
			t.Fatal(err)
		}
		ended = make(chan error, 1)
		go func() { ended <- left.Wait() }()
		t.Cleanup(func() { left.Process.Kill() })
		return ended
	}
	gone := func(what string, ended chan error) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("%s leaves a process of the program", what)
		}
	}
	other := orphan("run-0000000000000000")
	left := orphan(id)
	if err := l.Stop(t.Context(), id, time.Second); err != nil {
		t.Fatal(err)
	}
	gone("a stop", left)
	left = orphan(id)
	if err := run.WriteJSON(f.StatusFile(), spec.Status{Run: id, Phase: spec.Stopped}); err != nil {
		t.Fatal(err)
	}
	if err := l.Resume(t.Context(), id, s, c); err != nil {
		t.Fatal(err)
	}
	gone("a resume", left)
	if err := l.Stop(t.Context(), id, time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case <-other:
		t.Error("a process of another run was ended")
	default:
	}
}

// Checkpoints of a program count when they are complete, at the step that the
// program reported.
func TestCheckpointsOfAProgram(t *testing.T) {
	p := Place(filepath.Join(t.TempDir(), "runs"))
	s, c := script(t, "print(1)")
	id := launch.ID("op")
	f, err := p.Create(t.Context(), id, "op", s, c)
	if err != nil {
		t.Fatal(err)
	}
	l := New(string(p), nil)
	saved := func(reported, want int64) {
		t.Helper()
		if err := run.WriteJSON(f.StatusFile(), spec.Status{Run: id, Phase: spec.Stopped, Saved: reported}); err != nil {
			t.Fatal(err)
		}
		if is, err := l.Status(t.Context(), id); err != nil || is.Saved != want {
			t.Errorf("saved at step %d, want %d; %v", is.Saved, want, err)
		}
	}
	saved(0, -1)
	saved(50, -1) // reported, and gone since
	checkpoint := filepath.Join(f.Checkpoints(), "epoch-1.pt")
	say(t, checkpoint, "weights")
	saved(0, -1)
	say(t, checkpoint+".complete", "")
	saved(0, 0)
	saved(120, 120)
}
