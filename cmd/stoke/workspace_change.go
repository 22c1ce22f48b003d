package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
)

func workspaceNewCommand(s *session) *cobra.Command {
	var l lockFlags
	var from string
	cmd := &cobra.Command{
		Use:   "new [options] NAME",
		Short: "Make a workspace and select it",
		Long:  `Makes a workspace, with an empty state or a copy of one, and selects it.`,
		Args:  exactArgs(1, "NAME"),
	}
	cmd.Flags().StringVar(&from, "state", "", "Copy the state in `FILE` into the new workspace.")
	l.add(cmd.Flags())
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if err := s.checkSelectable(name); err != nil {
			return err
		}
		at, names, err := s.workspaces(cmd.Context())
		if err != nil {
			return err
		}
		defer at.close()
		if slices.Contains(names, name) {
			s.complain(problem("Workspace is there already", "Workspace %q already exists. Select it with \"stoke workspace select %s\".", name, name))
			return failed
		}
		if err := s.newWorkspace(cmd.Context(), at, name, l, from); err != nil {
			return err
		}
		s.sayNewWorkspace(name, from == "")
		return nil
	}
	return cmd
}

func (s *session) sayNewWorkspace(name string, empty bool) {
	s.printf("Created and switched to workspace %q!\n", name)
	if !empty {
		return
	}
	s.printf("\n" +
		"You're now on a new, empty workspace. Workspaces isolate their state,\n" +
		"so if you run \"stoke plan\" Stoke will not see any existing state\n" +
		"for this configuration.\n")
}

// newWorkspace makes and selects a workspace. Where it leaves no other trace
// it gets an empty state, so that others see it.
func (s *session) newWorkspace(ctx context.Context, at *place, name string, l lockFlags, from string) error {
	var text []byte
	if from != "" {
		var err error
		if text, err = s.readStateText(from); err != nil {
			return err
		}
	}
	made, err := at.backend.Add(ctx, name)
	if err != nil {
		s.complain(workspaceProblem(err))
		return failed
	}
	if !made || text != nil {
		if err := s.fillWorkspace(ctx, at, name, l, text); err != nil {
			return err
		}
	}
	return s.selectWorkspace(name)
}

// fillWorkspace writes a state where none may be yet; nil is an empty one.
func (s *session) fillWorkspace(ctx context.Context, at *place, name string, l lockFlags, text []byte) error {
	file, err := s.lockPlace(ctx, &place{kind: at.kind, backend: borrowedBackend{at.backend}, workspace: name}, l, "WorkspaceNew")
	if err != nil {
		return err
	}
	defer file.close()
	if text == nil {
		st := file.State()
		text = st.Encode(st.Serial())
	}
	if _, err := file.store.WriteSnapshot(ctx, text, ""); err != nil {
		s.complain(unwritten(err))
		return failed
	}
	return nil
}

// borrowedBackend is a backend that somebody else closes.
type borrowedBackend struct{ backend.Backend }

func (borrowedBackend) Close() error { return nil }

// readStateText reads a state from a file, "-" being the standard input, and
// makes sure that it is one.
func (s *session) readStateText(name string) ([]byte, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = readAll(s.stage.in)
		name = "the standard input"
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		s.complain(problem("State cannot be read", "%s.", err))
		return nil, failed
	}
	st, err := state.Decode(name, text)
	if err != nil {
		s.complain(stateProblem(err))
		return nil, failed
	}
	if st.Unfolded() {
		s.complain(problem("State has an open journal", "%s belongs to a run that has not ended: a journal next to "+
			"the original holds its latest changes. Use \"stoke state pull\" there, which takes both together.", name))
		return nil, failed
	}
	return text, nil
}

func workspaceDeleteCommand(s *session) *cobra.Command {
	var l lockFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "delete [options] NAME",
		Short: "Delete a workspace",
		Long: `Deletes a workspace and its state. A workspace whose state still holds objects is
deleted only with -force: the objects keep existing, and stoke no longer manages
them.`,
		Args: exactArgs(1, "NAME"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "Delete the workspace even if its state holds objects, and forget them.")
	l.add(cmd.Flags())
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if err := s.checkWorkspaceName(name); err != nil {
			return err
		}
		at, names, err := s.workspaces(cmd.Context())
		if err != nil {
			return err
		}
		defer at.close()
		switch {
		case !slices.Contains(names, name):
			return s.noWorkspace(name, names)
		case name == backend.DefaultWorkspace:
			s.complain(problem("Default workspace cannot be deleted", "The workspace %q is always there.", name))
			return failed
		case name == at.workspace:
			s.complain(problem("Workspace is selected", "Workspace %q is your active workspace.\n\nYou cannot delete the currently active workspace. Please switch to another workspace and try again.", name))
			return failed
		}
		return s.deleteWorkspace(cmd.Context(), at, name, l, force)
	}
	return cmd
}

func (s *session) deleteWorkspace(ctx context.Context, at *place, name string, l lockFlags, force bool) error {
	file, err := s.lockPlace(ctx, &place{kind: at.kind, backend: borrowedBackend{at.backend}, workspace: name}, l, "WorkspaceDelete")
	if err != nil {
		return err
	}
	defer func() { file.close() }()
	held := len(file.State().Instances())
	switch {
	case file.Unfolded():
		s.complain(problem("Workspace has an open journal", "A run in %q was cut short. Select the workspace and run \"stoke apply -refresh-only\", which settles what it left, before you delete it.", name))
		return failed
	case held > 0 && !force:
		s.complain(problem("Workspace is not empty", "Workspace %q is currently tracking %d object(s). Destroy them first: select the workspace and run \"stoke destroy\". "+
			"With -force the objects keep existing, and stoke no longer manages them.", name, held))
		return failed
	}
	if err := at.backend.Remove(ctx, name); err != nil {
		s.complain(workspaceProblem(err))
		return failed
	}
	s.printf("Deleted workspace %q!\n", name)
	if held > 0 {
		s.complain(diagnostic(hcl.DiagWarning, "Workspace was not empty", "%q was tracking %d object(s), which are still there and are no longer managed.", name, held))
	}
	return nil
}

// workspaceProblem puts errors of backends in words for people.
func workspaceProblem(err error) *hcl.Diagnostic {
	var single *backend.SingleStateError
	if errors.As(err, &single) {
		return problem("Workspaces not supported", "The backend %q keeps one state, for the workspace \"default\", "+
			"and has no others.", single.Kind)
	}
	return problem("Workspaces not reachable", "%s.", err)
}
