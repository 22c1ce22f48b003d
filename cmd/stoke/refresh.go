package main

import "github.com/spf13/cobra"

func refreshCommand(s *session) *cobra.Command {
	f := &planFlags{refreshOnly: true, scopeFlags: scopeFlags{refresh: refreshAll}}
	cmd := &cobra.Command{
		Use:   "refresh [options]",
		Short: "Store the observed values of the real objects",
		Long: `Reads the real objects and stores what is different in the state, without asking.
It is the same as "stoke apply -refresh-only -auto-approve"; without -auto-approve
that command shows the differences first, which is the better way.`,
		Args: atMost(0, ""),
	}
	cmd.Flags().StringArrayVar(&f.targets, "target", nil, "Read only the module, resource or object at `ADDRESS` "+
		"and its dependencies. May be given several times.")
	f.addVariables(cmd.Flags())
	addFlagGroup(cmd.Flags(), planOptions, "target", "var", "var-file")
	f.addRun(s, cmd.Flags())
	cmd.Flags().StringVar(&f.backup, "backup", "", "Keep the state before this run in `FILE`; - keeps none. It is FILE.backup unless said otherwise.")
	addFlagGroup(cmd.Flags(), otherOptions, "backup")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return planAndApply(cmd.Context(), s, f, true)
	}
	return cmd
}
