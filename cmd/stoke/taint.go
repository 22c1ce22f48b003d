package main

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

func taintCommand(s *session) *cobra.Command {
	return taintingCommand(s, true, "taint", "Have the next apply recreate an object",
		`Marks an object in the state as not to be trusted, so that the next plan replaces
it. "stoke apply -replace=ADDRESS" does the same at once and shows it first.`)
}

func untaintCommand(s *session) *cobra.Command {
	return taintingCommand(s, false, "untaint", "Take the mark of taint away",
		`Takes away the mark that makes the next plan replace an object, which "stoke taint"
or a creation that failed has left.`)
}

func taintingCommand(s *session, taint bool, name, short, long string) *cobra.Command {
	f := &editFlags{}
	var missingOK bool
	cmd := &cobra.Command{Use: name + " [options] ADDRESS", Short: short, Long: long, Args: exactArgs(1, "the address of an object is needed")}
	cmd.Flags().BoolVar(&missingOK, "allow-missing", false, "Succeed also when the state has no such object.")
	f.add(s, cmd.Flags())
	cmd.Flags().String("state-out", "", "Accepted and without effect.")
	_ = cmd.Flags().MarkHidden("state-out") // it is there
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := address.ParseInstance(args[0])
		if err != nil {
			s.complain(problem("Invalid address", "%q is not the address of an object: %s.", args[0], err))
			return failed
		}
		if a.Mode == address.Data {
			s.complain(problem("Data sources cannot be tainted", "%s is read again with every plan; there is nothing to replace.", a))
			return failed
		}
		return s.taint(cmd.Context(), f, a, taint, missingOK)
	}
	return cmd
}

func (s *session) taint(ctx context.Context, f *editFlags, a address.Instance, taint, missingOK bool) error {
	operation := "Untaint"
	if taint {
		operation = "Taint"
	}
	file, err := s.openEdit(ctx, f, f.state, operation)
	if err != nil {
		return err
	}
	defer file.close()
	o := file.State().Current(a)
	switch {
	case o == nil && missingOK:
		s.complain(diagnostic(hcl.DiagWarning, "No such object", "The state has no object at %s; -allow-missing "+
			"allows that.", a))
		return nil
	case o == nil:
		s.complain(problem("No such object", "The state has no object at %s.%s", a, suggestAddress(file.State(), a.String())))
		return failed
	case !taint && !o.Tainted:
		s.complain(problem("Object is not tainted", "%s has no mark that could be taken away.", a))
		return failed
	}
	if o.Tainted != taint {
		if err := s.write(ctx, file, []state.Change{{Address: a, Object: o.WithTainted(taint)}}); err != nil {
			return err
		}
	}
	if taint {
		s.printf("Resource instance %s has been marked as tainted.\n", a)
	} else {
		s.printf("Resource instance %s has been successfully untainted.\n", a)
	}
	return nil
}
