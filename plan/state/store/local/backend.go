package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
)

// DefaultFolder is where the states of workspaces are kept, each in a folder
// of its own, unless people say otherwise.
const DefaultFolder = "terraform.tfstate.d"

// Kind is the backend "local".
func Kind() *backend.Kind {
	return &backend.Kind{
		Name: "local",
		Arguments: []backend.Argument{
			{Name: "path", Type: cty.String},
			{Name: "workspace_dir", Type: cty.String},
		},
		Open: func(_ context.Context, c backend.Config) (backend.Backend, error) {
			return NewBackend(c.String("path"), c.String("workspace_dir"), Flags{}), nil
		},
	}
}

// Flags are the paths on a command line: -state, -state-out and -backup. ""
// where one is not given.
type Flags struct {
	State, Out, Backup string
}

// Backend keeps the default workspace's state in a file of the working
// directory and those of the others in folders. It is a backend.Backend.
type Backend struct {
	path, folder string
	flags        Flags
}

// NewBackend is the backend with the default workspace's state at path and the
// others below folder; "" stands for Terraform's defaults.
func NewBackend(path, folder string, flags Flags) *Backend {
	if path == "" {
		path = DefaultPath
	}
	if folder == "" {
		folder = DefaultFolder
	}
	return &Backend{path, folder, flags}
}

// Path is where the state of a workspace is.
func (b *Backend) Path(workspace string) string {
	switch {
	case b.flags.State != "":
		return b.flags.State
	case workspace == backend.DefaultWorkspace:
		return b.path
	}
	return filepath.Join(b.folder, workspace, DefaultPath)
}

// Workspaces lists the folders of workspaces.
func (b *Backend) Workspaces(context.Context) ([]string, error) {
	names := []string{backend.DefaultWorkspace}
	list, err := os.ReadDir(b.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		if e.IsDir() && e.Name() != backend.DefaultWorkspace {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// store is a state.Store that is made of files.
type store interface {
	state.Store
	SetBackup(path string)
	Close() error
}

// Store is the store at the path of a workspace.
func (b *Backend) Store(workspace string) (state.Store, error) {
	path := b.Path(workspace)
	var s store
	var err error
	if out := b.flags.Out; out != "" && filepath.Clean(out) != filepath.Clean(path) {
		s, err = NewOut(path, out)
	} else {
		s, err = New(path)
	}
	if err != nil {
		return nil, err
	}
	if b.flags.Backup != "" {
		s.SetBackup(b.flags.Backup)
	}
	return s, nil
}

// Add makes a workspace's folder.
func (b *Backend) Add(_ context.Context, workspace string) (bool, error) {
	if workspace == backend.DefaultWorkspace {
		return true, nil
	}
	return true, os.MkdirAll(filepath.Join(b.folder, workspace), 0o755)
}

// Remove removes a workspace's folder with all that is in it.
func (b *Backend) Remove(_ context.Context, workspace string) error {
	if err := backend.CheckWorkspace(workspace); err != nil || workspace == backend.DefaultWorkspace {
		return errors.Join(errors.New("this workspace cannot be removed"), err)
	}
	return os.RemoveAll(filepath.Join(b.folder, workspace))
}

// Close does nothing: stores are closed one by one.
func (b *Backend) Close() error { return nil }
