package backend

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
)

// DefaultWorkspace is the workspace that is always there.
const DefaultWorkspace = "default"

// Backend is an opened place: where the states of all workspaces are kept.
type Backend interface {
	// Workspaces lists the workspaces that there are, sorted; the default one
	// is always among them. *SingleStateError where there is only that.
	Workspaces(ctx context.Context) ([]string, error)

	// Store is where the state of a workspace is kept, whether there is one
	// yet or not. Nothing is read or made. A Store that is an io.Closer is to
	// be closed.
	Store(workspace string) (state.Store, error)

	// Add makes an empty workspace where that leaves a trace of its own, such
	// as a folder; elsewhere it does nothing, and the workspace is there once
	// it has a state. It reports which of the two.
	Add(ctx context.Context, workspace string) (made bool, err error)

	// Remove deletes the state of a workspace, which is not the default one
	// and has no open journal.
	Remove(ctx context.Context, workspace string) error

	// Close gives back what was opened.
	Close() error
}

// SingleStateError says that a backend knows no workspaces but the default.
type SingleStateError struct {
	Kind string // of the backend
}

func (e *SingleStateError) Error() string {
	return fmt.Sprintf("the backend %q keeps one state only and has no workspaces", e.Kind)
}

// Kind is one type of backend, such as "s3".
type Kind struct {
	Name      string
	Arguments []Argument
	// Open makes a Backend of a configuration that was checked against
	// Arguments. It connects to nothing yet where that can be helped.
	Open func(ctx context.Context, c Config) (Backend, error)
}

// Argument is one argument of a backend block.
type Argument struct {
	Name     string
	Type     cty.Type
	Required bool
	// Environment names the variables that stand in for an argument that is
	// not given, the first that is set counts.
	Environment []string
	// Secret arguments are not remembered by init unless nobody else knows
	// them.
	Secret bool
	// Refused says why a documented argument cannot be honoured and what to do
	// instead. It is never ignored.
	Refused string
	// Nested are the arguments of a block or object; Type is then not used.
	Nested []Argument
}

// CheckWorkspace returns an error if a name is not a valid workspace name. The
// text begins after the name.
func CheckWorkspace(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if name != url.PathEscape(name) || name == "." || name == ".." {
		return errors.New("only letters, digits and - _ . ~ $ & + = : @ are allowed, and no path separators")
	}
	return nil
}
