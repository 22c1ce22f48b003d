package main

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/google/renameio/v2"
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// stateFile is an open state, locked or not.
type stateFile struct {
	s     *session
	at    *place // nil: a file that was named
	store state.Store
	lock  state.Lock // nil: none is held
	*state.File
}

// openState opens a state for reading: the file given, or with "" the one of
// the configuration and the selected workspace.
func (s *session) openState(ctx context.Context, path string) (*stateFile, error) {
	file, err := s.findState(ctx, path)
	if err != nil {
		return nil, err
	}
	return s.readState(ctx, file)
}

// lockPlace opens the state of a place, locked unless -lock=false says
// otherwise.
func (s *session) lockPlace(ctx context.Context, at *place, l lockFlags, operation string) (*stateFile, error) {
	store, err := at.store()
	if err != nil {
		s.complain(stateProblem(err))
		return nil, failed
	}
	return s.lockFile(ctx, &stateFile{s: s, at: at, store: store}, l, operation)
}

// findState finds the store without reading it.
func (s *session) findState(ctx context.Context, path string) (*stateFile, error) {
	file := &stateFile{s: s}
	var err error
	if path != "" {
		file.store, err = local.New(path)
	} else {
		if file.at, err = s.readablePlace(ctx); err != nil {
			return nil, err
		}
		file.store, err = file.at.store()
	}
	if err != nil {
		s.complain(stateProblem(err))
		return nil, failed
	}
	return file, nil
}

// readablePlace is where the state is for commands that look into the state
// alone. Of the configuration they need the backend block of the root module:
// modules that are not installed are no matter, and where no block can be
// read, what init has remembered has to do. If that is nothing, nobody knows
// where the state is, and to take a local one would be a guess.
func (s *session) readablePlace(ctx context.Context) (*place, error) {
	root, files, diags := modules.LoadRoot(modules.OnDisk(), ".")
	s.files = files
	empty := noConfiguration(diags)
	if diags.HasErrors() && root.Settings.Backend == nil && !empty {
		saved, err := backend.Load(s.dataDir(), backendKind)
		if err == nil && saved == nil {
			s.complain(diags...)
			return nil, failed
		}
		root = nil
	}
	return s.place(ctx, root, local.Flags{})
}

func (s *session) lockFile(ctx context.Context, file *stateFile, l lockFlags, operation string) (*stateFile, error) {
	if l.lock {
		info := state.LockInfo{Operation: "OperationType" + operation, Version: terraformVersion}
		waiting, done := s.signals.untilStopped(ctx)
		lock, err := state.Wait(waiting, file.store, info, l.timeout, func(text string) { s.display().printText(text) })
		done()
		if err != nil {
			s.complain(stateProblem(err))
			file.close()
			return nil, failed
		}
		file.lock = lock
	}
	return s.readState(ctx, file)
}

func (s *session) readState(ctx context.Context, file *stateFile) (*stateFile, error) {
	f, err := state.Open(ctx, file.store)
	if err != nil {
		s.complain(stateProblem(err))
		file.close()
		return nil, failed
	}
	file.File = f
	for _, note := range f.Notes() {
		s.complain(diagnostic(hcl.DiagWarning, "Note on the state", "%s", note))
	}
	return file, nil
}

// close gives everything back. What goes wrong is said; the state itself is
// written by then.
func (f *stateFile) close() {
	if f.lock != nil {
		if err := f.lock.Release(); err != nil {
			f.s.complain(diagnostic(hcl.DiagWarning, "State lock not released", "%s.", err))
		}
	}
	if c, ok := f.store.(io.Closer); ok {
		if err := c.Close(); err != nil {
			f.s.complain(diagnostic(hcl.DiagWarning, "State not closed cleanly", "%s.", err))
		}
	}
	if f.at != nil {
		f.at.close()
	}
}

// stateProblem puts errors of the state in words for people.
func stateProblem(err error) *hcl.Diagnostic {
	var locked *state.LockedError
	var corrupt *state.CorruptError
	var newer *state.NewerVersionError
	var older *state.OlderVersionError
	var lost *state.LostLockError
	var conflict *state.ConflictError
	var serial *state.SerialError
	switch {
	case errors.As(err, &locked):
		return problem("State is locked",
			"The state %s is held by %s.\n\nWait until that run has ended, or let stoke wait with -lock-timeout=5m. %s", locked.Path, locked.Holder, lockAdvice(locked))
	case errors.As(err, &lost):
		return problem("State lock lost", "%s.\n\nAnother run may be changing the state now, so nothing more was "+
			"written. Run stoke again: it continues from the recorded state.", err)
	case errors.As(err, &conflict):
		return problem("State changed meanwhile", "%s. Run stoke again.", err)
	case errors.As(err, &corrupt):
		return problem("State is corrupt", "%s.\n\nNothing was changed. Restore the file from its .backup or from version control, or mend it by hand.", err)
	case errors.As(err, &serial):
		return problem("State serial cannot grow", "%s.\n\nNothing was done. Save the state with \"stoke state pull > pulled.tfstate\", lower its serial there, and put it back with \"stoke state push -force pulled.tfstate\".", err)
	case errors.As(err, &newer), errors.As(err, &older):
		return problem("State format not supported", "%s.", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return problem("No permission for the state", "%s.\n\nStoke locks the state and writes its journal next to "+
			"it, so that both the folder and the state must be writable. To look without writing, run a plan with -lock=false.", err)
	}
	return problem("State cannot be read", "%s", asSentence(err.Error()))
}

// unwritten is stateProblem for what happened while the state was to be written.
func unwritten(err error) *hcl.Diagnostic {
	d := stateProblem(err)
	if d.Summary == "State cannot be read" {
		d.Summary = "State cannot be written"
	}
	return d
}

// lockAdvice says what to do about a holder that is dead.
func lockAdvice(e *state.LockedError) string {
	if e.Advice != "" {
		return e.Advice
	}
	if e.Holder.ID == "" {
		return "If that run is dead, its lock has to be removed by hand."
	}
	return "If you are sure that run is dead, break its lock with \"stoke force-unlock " + e.Holder.ID + "\"."
}

// rescue keeps a state that could not be written where it belongs.
func (s *session) rescue(j *state.Journal, err error) {
	const name = "errored.tfstate"
	data := j.Rescue()
	// One that an earlier run has left is better than half of this one.
	if werr := renameio.WriteFile(name, data, 0o600, renameio.WithTempDir("."), renameio.WithStaticPermissions(0o600)); werr != nil {
		s.complain(problem("State not written", "%s. It could not be kept in %s either: %s. The journal next to the "+
			"state holds all of it that could still be written, and the next run finds out the rest; do not remove it.", err, name, werr))
		return
	}
	if lost := (*state.LostLockError)(nil); errors.As(err, &lost) {
		s.complain(problem("State lock lost", "%s. Another run may be changing the state now, so nothing more was "+
			"written: the next run reads the objects again to find out what this run did. The state as this run knew it was kept in %s.", err, name))
		return
	}
	s.complain(problem("State not written", "%s. The present state was kept in %s, and the journal next to the "+
		"state holds all that was done: run stoke again when the cause is fixed.", err, name))
}

// workspace is the one whose state this is; a state in a file counts as the
// selected workspace's state.
func (f *stateFile) workspace() string {
	if f.at != nil {
		return f.at.workspace
	}
	name, err := f.s.workspaceName()
	if err != nil {
		return backend.DefaultWorkspace
	}
	return name
}
