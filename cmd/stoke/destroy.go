package main

import "github.com/spf13/cobra"

func destroyCommand(s *session) *cobra.Command {
	f := &planFlags{destroy: true}
	var approved bool
	cmd := &cobra.Command{
		Use:   "destroy [options]",
		Short: "Destroy everything that the state holds",
		Long: `Plans to destroy every object in the state, shows the plan, asks, and does it.
It is the same as "stoke apply -destroy".`,
		Args: atMost(0, ""),
	}
	f.addPlan(cmd.Flags(), false)
	addApply(s, f, &approved, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd, s.built); err != nil {
			return err
		}
		return planAndApply(cmd.Context(), s, f, approved)
	}
	return cmd
}
