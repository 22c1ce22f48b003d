package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/state/backend"
)

func workspaceCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "workspace <subcommand> [options] [args]",
		Aliases: []string{"env"},
		Short:   "Work with several states of one configuration",
		Long: `Lists, makes, selects and deletes workspaces. Each has a state of its own; an
expression knows its name as terraform.workspace. The environment variable
TF_WORKSPACE overrides which one is selected.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd.CommandPath(), args[0], commandNames(cmd))
			}
			printHelp(cmd)
			return failed
		},
	}
	cmd.AddCommand(workspaceListCommand(s), workspaceShowCommand(s), workspaceNewCommand(s), workspaceSelectCommand(s), workspaceDeleteCommand(s))
	return cmd
}

func workspaceShowCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the name of the selected workspace",
		Args:  atMost(0, ""),
	}
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(*cobra.Command, []string) error {
		name, err := s.workspace()
		if err != nil {
			return err
		}
		s.printf("%s\n", name)
		return nil
	}
	return cmd
}

func workspaceListCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all workspaces",
		Long:  `Lists all workspaces of the backend; a star marks the selected one.`,
		Args:  atMost(0, ""),
	}
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		at, names, err := s.workspaces(cmd.Context())
		if err != nil {
			return err
		}
		defer at.close()
		if i := slices.Index(names, backend.DefaultWorkspace); i > 0 { // it comes first
			names = slices.Insert(slices.Delete(names, i, i+1), 0, backend.DefaultWorkspace)
		}
		for _, name := range names {
			mark := " "
			if name == at.workspace {
				mark = "*"
			}
			s.printf("%s %s\n", mark, name)
		}
		s.printf("\n")
		if s.getenv(workspaceVariable) != "" {
			s.printf("The active workspace is being overridden using the %s environment\nvariable.\n\n", workspaceVariable)
		}
		return nil
	}
	return cmd
}

func workspaceSelectCommand(s *session) *cobra.Command {
	var create bool
	cmd := &cobra.Command{
		Use:   "select [options] NAME",
		Short: "Select a workspace",
		Long:  `Selects the workspace for all commands in this working directory.`,
		Args:  exactArgs(1, "NAME"),
	}
	cmd.Flags().BoolVar(&create, "or-create", false, "Make the workspace if it does not exist.")
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
		if name == at.workspace && slices.Contains(names, name) {
			return nil // Terraform says nothing either
		}
		if !slices.Contains(names, name) {
			if !create {
				return s.noWorkspace(name, names)
			}
			if err := s.newWorkspace(cmd.Context(), at, name, lockFlags{lock: true}, ""); err != nil {
				return err
			}
			s.sayNewWorkspace(name, true)
			return nil
		}
		if err := s.selectWorkspace(name); err != nil {
			return err
		}
		s.printf("Switched to workspace %q.\n", name)
		return nil
	}
	return cmd
}

// workspaces finds the backend and lists its workspaces.
func (s *session) workspaces(ctx context.Context) (*place, []string, error) {
	at, err := s.readablePlace(ctx)
	if err != nil {
		return nil, nil, err
	}
	names, err := at.backend.Workspaces(ctx)
	if err != nil {
		at.close()
		s.complain(workspaceProblem(err))
		return nil, nil, failed
	}
	return at, names, nil
}

// checkSelectable refuses names that no workspace can have, and selections
// that would have no effect.
func (s *session) checkSelectable(name string) error {
	if s.getenv(workspaceVariable) != "" {
		s.complain(problem("Workspace is overridden", "The selected workspace is currently overridden using the %s environment variable. Change or unset it, and run this command again.", workspaceVariable))
		return failed
	}
	return s.checkWorkspaceName(name)
}

func (s *session) checkWorkspaceName(name string) error {
	if err := backend.CheckWorkspace(name); err != nil {
		s.complain(problem("Invalid workspace name", "The workspace name %q is not allowed: %s.", name, err))
		return failed
	}
	return nil
}

func (s *session) noWorkspace(name string, names []string) error {
	s.complain(problem("No such workspace", "Workspace %q doesn't exist%s\n\nYou can create this workspace with the \"new\" subcommand or include the \"-or-create\" flag with the \"select\" subcommand.", name, sentence(suggest("", name, names))))
	return failed
}

// exactArgs is the check of commands that take n arguments, all of them.
func exactArgs(n int, what string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return &usageError{path: cmd.CommandPath(), err: errors.New("an argument is missing: " + what)}
		}
		return atMost(n, "")(cmd, args)
	}
}

// workspaceVariable overrides which workspace is selected.
const workspaceVariable = "TF_WORKSPACE"

// workspace is the name of the selected workspace.
func (s *session) workspace() (string, error) {
	name, err := s.workspaceName()
	if err != nil {
		s.complain(problem("Selected workspace not known",
			"Its saved settings cannot be read: %s. Mend that, or name a workspace in %s.", err, workspaceVariable))
		return "", failed
	}
	if err := backend.CheckWorkspace(name); err != nil {
		s.complain(problem("Invalid workspace name",
			"The selected workspace %q cannot be used: %s. "+
				"Select another one with \"stoke workspace select\", or change %s.", name, err, workspaceVariable))
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
