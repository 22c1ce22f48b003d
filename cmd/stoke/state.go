package main

import (
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules"
)

func stateCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state <subcommand> [options] [args]",
		Short: "Look into the state",
		Long:  `Looks into the state, which remembers what was made.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd.CommandPath(), args[0], commandNames(cmd))
			}
			printHelp(cmd)
			return exitCode(127)
		},
	}
	cmd.AddCommand(stateListCommand(s, "list"), stateShowCommand(s))
	return cmd
}

// configuredPath is the path of the state as the configuration names it;
// what is wrong with the configuration is no matter here.
func (s *session) configuredPath() string {
	root, _, diags := modules.Load(modules.OnDisk(), ".")
	if diags.HasErrors() {
		return ""
	}
	path, diags := statePath(root, "")
	if diags.HasErrors() {
		return ""
	}
	return path
}
