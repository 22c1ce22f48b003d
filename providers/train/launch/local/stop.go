package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// grace is how long a supervisor may take to end its roles when asked.
const grace = 20 * time.Second

// Stop ends the run's supervisor and with it every role, and returns once it
// is gone. Where there is none, that is at once. It asks first; a supervisor
// that has not ended after a while, or when ctx ends, is killed with its group.
func Stop(ctx context.Context, f run.Folder) error { return end(ctx, f, grace) }

// end is Stop with so long for the run to save itself.
func end(ctx context.Context, f run.Folder, patience time.Duration) error {
	for _, p := range processes(f) {
		if err := stop(ctx, p, patience); err != nil {
			return fmt.Errorf("stop run: %w", err)
		}
	}
	return nil
}

// endProgram ends what a killed supervisor and killed agents have left of a run's
// program.
func endProgram(ctx context.Context, f run.Folder) error {
	s, err := f.ReadSpec()
	if err == nil && !s.HasProgram() || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	grace := spec.DefaultStopGrace
	if err == nil {
		grace = s.Program.StopGrace
	}
	_, err = program.EndMarked(ctx, program.Mark{Run: f.Name()}, time.Duration(grace))
	if err != nil && !errors.Is(err, program.ErrPlatform) { // where no program can have run
		return fmt.Errorf("end what is left of the program: %w", err)
	}
	return nil
}

// processes lists who may own the run: the supervisor's own record and ours,
// the one that we have in case the other is damaged.
func processes(f run.Folder) []run.Process {
	var found []run.Process
	if sup, err := f.ReadSupervisor(); err == nil {
		found = append(found, sup.Process)
	}
	var p run.Process
	if err := run.ReadJSON(filepath.Join(string(f), launchedFile), &p); err == nil {
		found = append(found, p)
	}
	return found
}

// Alive reports whether a supervisor owns the folder now.
func Alive(f run.Folder) bool {
	for _, p := range processes(f) {
		if p.Alive() {
			return true
		}
	}
	return false
}

func stop(ctx context.Context, p run.Process, patience time.Duration) error {
	if !p.Alive() {
		return nil
	}
	// A handle, where the system has them, is opened before the identity is
	// checked again: then the signal cannot reach a later bearer of the number.
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return nil // gone meanwhile
	}
	defer handle.Release()
	if !p.Alive() {
		return nil
	}
	if err := handle.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if waitEnded(asked, p) {
		return nil
	}
	if !p.Alive() {
		return nil
	}
	// The supervisor leads a session of its own, and so a group.
	if group, err := syscall.Getpgid(p.PID); err == nil && group == p.PID {
		err = syscall.Kill(-p.PID, syscall.SIGKILL)
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	} else if err := handle.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	killed, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if !waitEnded(killed, p) {
		return fmt.Errorf("process %d does not end", p.PID)
	}
	return nil
}

// waitEnded waits until the process has ended, or ctx has.
func waitEnded(ctx context.Context, p run.Process) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for p.Alive() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Settle decides what became of a create that was interrupted. It returns the
// run's folder if it was launched, and fs.ErrNotExist if nothing ever ran:
// then whatever was left of it has been removed.
func (p Place) Settle(ctx context.Context, id string) (run.Folder, error) {
	if err := p.Sweep(id); err != nil {
		return "", err
	}
	f, err := p.Find(id)
	if err != nil {
		return "", err
	}
	launched, err := Launched(f)
	if err != nil {
		return "", fmt.Errorf("settle run: %w", err)
	}
	if launched {
		// A supervisor whose launcher died between the record and the word is
		// about to end: a moment shows which it is.
		settle, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		waitDecided(settle, f)
		return f, nil
	}
	if err := Stop(ctx, f); err != nil {
		return "", err
	}
	if err := p.Remove(id); err != nil {
		return "", err
	}
	return "", fmt.Errorf("settle run: %s was never launched: %w", id, fs.ErrNotExist)
}

func waitDecided(ctx context.Context, f run.Folder) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for Alive(f) {
		if s, err := f.Status(); err == nil && s.Phase != spec.Pending {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
