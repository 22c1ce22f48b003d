package main

import (
	"github.com/spf13/cobra"
)

func stateCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state <subcommand> [options] [args]",
		Short: "Inspect and edit the state",
		Long:  `Looks into the state, which remembers what was made, and puts it right.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd.CommandPath(), args[0], commandNames(cmd))
			}
			printHelp(cmd)
			return failed
		},
	}
	cmd.AddCommand(stateListCommand(s, "list"), stateShowCommand(s), statePullCommand(s), statePushCommand(s),
		stateMvCommand(s), stateRmCommand(s), stateReplaceProviderCommand(s))
	return cmd
}
