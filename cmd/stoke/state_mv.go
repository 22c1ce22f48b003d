package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
)

func stateMvCommand(s *session) *cobra.Command {
	f := &editFlags{keep: true}
	var out string
	cmd := &cobra.Command{
		Use:   "mv [options] SOURCE DESTINATION",
		Short: "Give objects in the state another address",
		Long: `Gives an object, a resource with all its instances, or a module with all that it
holds another address in the state. The objects themselves are not touched. Where
the configuration can say it, a moved block does the same for all users.

With -state-out the objects go to another state.`,
		Args: exactArgs(2, "two addresses are needed, SOURCE and DESTINATION"),
	}
	f.addDryRun(cmd.Flags())
	f.add(s, cmd.Flags())
	cmd.Flags().StringVar(&out, "state-out", "", "Move the objects to the state in `FILE`.")
	cmd.Flags().String("backup-out", "", "Accepted and without effect: the other state's backup is next to it.")
	_ = cmd.Flags().MarkHidden("backup-out") // it is there
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, err := s.parseTarget(args[0])
		if err != nil {
			return err
		}
		to, err := s.parseTarget(args[1])
		if err != nil {
			return err
		}
		return s.moveState(cmd.Context(), f, out, from, to)
	}
	return cmd
}

func (s *session) moveState(ctx context.Context, f *editFlags, out string, from, to address.Target) error {
	file, err := s.openEdit(ctx, f, f.state, "StateMv")
	if err != nil {
		return err
	}
	defer file.close()
	if s.emptyState(file) {
		return failed
	}
	target := file
	if name, _ := file.store.Names(); out != "" && out != name {
		if target, err = s.openEdit(ctx, &editFlags{lock: f.lock, keep: true}, out, "StateMv"); err != nil {
			return err
		}
		defer target.close()
	}
	moves, err := plan.MovesTo(file.State(), from, to, target.State())
	if err != nil {
		s.complain(problem("Objects cannot be moved", "Cannot move %s to %s: %s.", from, to, err))
		return failed
	}
	if len(moves) == 0 {
		s.complain(problem("Nothing to move", "The state has nothing at %s.%s", from, suggestAddress(file.State(), from.String())))
		return failed
	}
	if f.dryRun {
		s.printf("Would move %q to %q\n", from.String(), to.String())
		return nil
	}
	s.printf("Move %q to %q\n", from.String(), to.String())
	changes := plan.Relocated(file.State(), moves)
	if target != file {
		// Should the program die in between, the objects are in both states
		// rather than in none.
		var arriving []state.Change
		arriving, changes = splitChanges(changes, moves)
		gone := make([]address.Instance, len(moves))
		for i, m := range moves {
			gone[i] = m.From
		}
		changes = append(completing(file.State(), gone), changes...)
		if err := s.write(ctx, target, arriving); err != nil {
			return err
		}
	}
	if err := s.write(ctx, file, changes); err != nil {
		return err
	}
	s.printf("Successfully moved %d object(s).\n", len(moves))
	return nil
}

// splitChanges divides what changes between the state that objects arrive in and
// the one that they leave.
func splitChanges(changes []state.Change, moves []plan.Move) (arriving, leaving []state.Change) {
	to := make(map[address.Instance]bool, len(moves))
	from := make(map[address.Instance]bool, len(moves))
	for _, m := range moves {
		to[m.To], from[m.From] = true, true
	}
	for _, c := range changes {
		if c.Object != nil && to[c.Address] {
			arriving = append(arriving, c)
		} else if c.Object == nil && from[c.Address] {
			leaving = append(leaving, c)
		}
	}
	return arriving, leaving
}
