package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/stokehq/stoke/plan/state/backend"
)

// workspaceVariable overrides which workspace is selected.
const workspaceVariable = "TF_WORKSPACE"

// workspace is the name of the selected workspace.
func (s *session) workspace() (string, error) {
	name, err := s.workspaceName()
	if err != nil {
		s.complain(problem("Selected workspace not known", "Its saved settings cannot be read: %s. Mend that, or name a workspace in %s.", err, workspaceVariable))
		return "", failed
	}
	if err := backend.CheckWorkspace(name); err != nil {
		s.complain(problem("Invalid workspace name", "The selected workspace %q cannot be used: %s. Select another one with \"stoke workspace select\", or change %s.", name, err, workspaceVariable))
		return "", failed
	}
	return name, nil
}

func (s *session) workspaceName() (string, error) {
	if name := s.getenv(workspaceVariable); name != "" {
		return name, nil
	}
	text, err := os.ReadFile(s.selectionFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if name := strings.TrimSpace(string(text)); name != "" {
		return name, nil
	}
	return backend.DefaultWorkspace, nil
}

// selectionFile holds the name of the selected workspace; Terraform's is the
// same.
func (s *session) selectionFile() string { return filepath.Join(s.dataDir(), "environment") }

// selectWorkspace makes a workspace the selected one.
func (s *session) selectWorkspace(name string) error {
	err := os.MkdirAll(s.dataDir(), 0o755)
	if err == nil {
		err = renameio.WriteFile(s.selectionFile(), []byte(name), 0o644)
	}
	if err != nil {
		s.complain(problem("Workspace not selected", "The selection cannot be written down: %s.", err))
		return failed
	}
	return nil
}
