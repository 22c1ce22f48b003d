package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// stateFile is an open state, locked or not.
type stateFile struct {
	s     *session
	store *local.Store
	lock  state.Lock // nil: none is held
	*state.File
}

// openState opens the state for reading.
func (s *session) openState(ctx context.Context, path string) (*stateFile, error) {
	store, err := local.New(path)
	if err != nil {
		s.complain(stateProblem(err))
		return nil, failed
	}
	return s.readState(ctx, &stateFile{s: s, store: store})
}

// lockState opens the state for changing it: locked first, unless -lock=false
// says otherwise.
func (s *session) lockState(ctx context.Context, path string, f *planFlags, operation string) (*stateFile, error) {
	store, err := local.New(path)
	if err != nil {
		s.complain(stateProblem(err))
		return nil, failed
	}
	if f.backup != "" {
		store.SetBackup(f.backup)
	}
	file := &stateFile{s: s, store: store}
	if f.lock.lock {
		info := state.LockInfo{Operation: "OperationType" + operation, Version: terraformVersion}
		waiting, done := s.signals.untilStopped(ctx)
		file.lock, err = state.Wait(waiting, store, info, f.lock.timeout)
		done()
		if err != nil {
			s.complain(stateProblem(err))
			return nil, failed
		}
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
			f.s.complain(diagnostic(hcl.DiagWarning, "State lock not released", "%s. It ends with this process.", err))
		}
	}
	if err := f.store.Close(); err != nil {
		f.s.complain(diagnostic(hcl.DiagWarning, "State not closed cleanly", "%s.", err))
	}
}

// stateProblem puts errors of the state in words for people.
func stateProblem(err error) *hcl.Diagnostic {
	var locked *state.LockedError
	var corrupt *state.CorruptError
	var newer *state.NewerVersionError
	var older *state.OlderVersionError
	switch {
	case errors.As(err, &locked):
		return problem("State is locked",
			"The state %s is held by %s.\n\nWait until that run has ended, or let stoke wait with -lock-timeout=5m. A lock ends with the process that holds it.", locked.Path, locked.Holder)
	case errors.As(err, &corrupt):
		return problem("State is corrupt", "%s.\n\nNothing was changed. Restore the file from its .backup or from version control, or mend it by hand.", err)
	case errors.As(err, &newer), errors.As(err, &older):
		return problem("State format not supported", "%s.", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return problem("No permission for the state", "%s.\n\nStoke locks the state and writes its journal beside it, so the folder must be writable. To look without writing, run a plan with -lock=false.", err)
	}
	return problem("State cannot be read", "%s.", err)
}

// statePath is where the state of a configuration is kept.
func statePath(root *modules.Module, flag string) (string, hcl.Diagnostics) {
	if flag != "" || root == nil || root.Settings.Backend == nil {
		return flag, nil
	}
	b := root.Settings.Backend
	if b.Type != "local" {
		return "", hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Backend not supported", Subject: b.Range.Ptr(),
			Detail: "This version of stoke keeps its state in a local file; the backend \"" + b.Type + "\" is not there yet. Remove the block, or use backend \"local\".",
		}}
	}
	attrs, diags := b.Body.JustAttributes()
	attr, ok := attrs["path"]
	if !ok || diags.HasErrors() {
		return "", diags
	}
	v, diags := attr.Expr.Value(nil)
	if diags.HasErrors() || v.IsNull() {
		return "", diags
	}
	if v.Type() != cty.String {
		return "", append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Wrong type of path", Subject: attr.Expr.Range().Ptr(),
			Detail: "The path of the backend \"local\" is the name of a file.",
		})
	}
	return v.AsString(), diags
}

// rescue keeps a state that could not be written where it belongs.
func (s *session) rescue(j *state.Journal, err error) {
	const name = "errored.tfstate"
	data := j.Rescue()
	if werr := os.WriteFile(name, data, 0o600); werr != nil {
		s.complain(problem("State not written", "%s. It could not be kept in %s either: %s. The journal beside the state holds what was done; do not remove it.", err, name, werr))
		return
	}
	s.complain(problem("State not written", "%s. The state as it is now was kept in %s, and the journal beside the state holds what was done: run stoke again when the cause is mended.", err, name))
}
