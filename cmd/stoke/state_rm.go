package main

import (
	"context"
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

func stateRmCommand(s *session) *cobra.Command {
	f := &editFlags{keep: true}
	cmd := &cobra.Command{
		Use:   "rm [options] ADDRESS...",
		Short: "Remove objects from the state without destroying them",
		Long: `Takes objects out of the state and leaves them as they are: Stoke no longer
manages them. An address may name an object, a resource with all its instances, or
a module with all that it holds. Where the configuration can say it, a removed
block does the same for all users.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{path: cmd.CommandPath(), err: errors.New("the address of at least one object is needed")}
			}
			return nil
		},
	}
	f.addDryRun(cmd.Flags())
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		targets, err := s.targets(args)
		if err != nil {
			return err
		}
		return s.removeState(cmd.Context(), f, targets)
	}
	return cmd
}

func (s *session) removeState(ctx context.Context, f *editFlags, targets []address.Target) error {
	file, err := s.openEdit(ctx, f, f.state, "StateRm")
	if err != nil {
		return err
	}
	defer file.close()
	if s.emptyState(file) {
		return failed
	}
	st := file.State()
	matched := make([]bool, len(targets))
	var gone []address.Instance
	for _, a := range st.Instances() {
		hit := false
		for i, t := range targets {
			if t.Contains(a) {
				matched[i], hit = true, true
			}
		}
		if hit {
			gone = append(gone, a)
		}
	}
	for i, t := range targets {
		if matched[i] {
			continue
		}
		severity := hcl.DiagWarning
		if len(gone) == 0 {
			severity = hcl.DiagError
		}
		s.complain(diagnostic(severity, "No matching objects", "The state has nothing at %s.%s", t, suggestAddress(st, t.String())))
	}
	if len(gone) == 0 {
		return failed
	}
	if f.dryRun {
		for _, a := range gone {
			s.printf("Would remove %s\n", a)
		}
		return nil
	}
	changes := completing(st, gone)
	for _, a := range gone {
		if st.Current(a) != nil {
			changes = append(changes, state.Change{Address: a})
		}
		for key := range st.Deposed(a) {
			changes = append(changes, state.Change{Address: a, Deposed: key})
		}
	}
	if err := s.write(ctx, file, changes); err != nil {
		return err
	}
	for _, a := range gone {
		s.printf("Removed %s\n", a)
	}
	s.printf("Successfully removed %d resource instance(s).\n", len(gone))
	return nil
}
