package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/plan/state"
)

func forceUnlockCommand(s *session) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "force-unlock [options] LOCK_ID",
		Short: "Remove the state's lock of a dead run",
		Long: `Removes the lock on the state of the selected workspace. Its ID is in the message
about a locked state. Use it only when no other run is active: two runs at a
time harm each other. A local state's lock cannot be removed while its holder
lives.

Locks of stoke in buckets and Kubernetes are leases: a later run takes the lease
of a dead run over without this command.`,
		Args: exactArgs(1, "LOCK_ID"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "Do not ask.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.forceUnlock(cmd.Context(), args[0], force)
	}
	return cmd
}

func (s *session) forceUnlock(ctx context.Context, id string, force bool) error {
	file, err := s.findState(ctx, "")
	if err != nil {
		return err
	}
	defer file.close()
	if !force {
		sure, err := s.confirm("Do you really want to force-unlock?",
			"Stoke will break the lock on the state. This allows others to run stoke on it, although the lock's holder "+
				"may still be at work.")
		if err != nil {
			return err
		}
		if !sure {
			s.printf("force-unlock cancelled.\n")
			return failed
		}
	}
	err = file.store.ForceUnlock(ctx, id)
	var none *state.NotLockedError
	var other *state.LockedError
	switch {
	case err == nil:
		s.printf("Stoke state has been successfully unlocked!\n\nThe state has been unlocked, and stoke commands should now be able to\nobtain a new lock on it.\n")
		return nil
	case errors.As(err, &none):
		s.complain(problem("State is not locked", "The lock of %s is free.", none.Path))
	case errors.As(err, &other):
		s.complain(problem("Lock has another ID", "The state is locked by %s. The ID given is %q.", other.Holder, id))
	default:
		s.complain(problem("Lock not broken", "%s", asSentence(err.Error())))
	}
	return failed
}

// confirm asks a question that only "yes" answers. It fails without a terminal
// that can answer.
func (s *session) confirm(question, explanation string) (bool, error) {
	if !s.mayAsk(true) {
		s.complain(problem("Approval needed", "%s Questions are turned off.", question))
		return false, failed
	}
	s.printf("\n%s\n  %s\n\n  Only 'yes' will be accepted to confirm.\n\n  Enter a value: ", question, explanation)
	answer, err := s.answers.Line(s.signals.stopping)
	s.printf("\n")
	if err == terminal.ErrNoAnswer {
		s.complain(problem("Approval needed", "The input has ended without an answer."))
		return false, failed
	}
	return err == nil && answer == "yes", nil
}
