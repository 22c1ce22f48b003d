package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/view"
)

func metadataCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metadata <subcommand> [options]",
		Short: "Print data for editors and tools",
		Long:  `Prints what editors and tools want to know about this version of Stoke.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd.CommandPath(), args[0], commandNames(cmd))
			}
			printHelp(cmd)
			return failed
		},
	}
	cmd.AddCommand(metadataFunctionsCommand(s))
	return cmd
}

func metadataFunctionsCommand(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "functions -json",
		Short: "Print the signatures of all functions",
		Long:  `Prints the signatures of all functions of the language, in Terraform's format.`,
		Args:  atMost(0, ""),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Required: JSON is the only form.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !asJSON {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the option -json is required")}
		}
		text, err := view.FunctionsJSON(lang.Functions(""))
		if err != nil {
			return err
		}
		s.printf("%s\n", text)
		return nil
	}
	return cmd
}
