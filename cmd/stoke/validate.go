package main

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/view"
)

func validateCommand(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate [options]",
		Short: "Check whether the configuration is valid",
		Long: `Checks the configuration by itself: syntax, references, types, and what the
providers say about arguments. It reads neither the state nor real
objects, and needs no values of variables.`,
		Args: atMost(0, "; to validate another folder, use the global option -chdir"),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the outcome as JSON, for editors and pipelines.")
	s.addNoColor(cmd.Flags())
	addTestDirectory(cmd.Flags())
	cmd.Flags().Bool("no-tests", false, "Tests are never looked at.")
	addFlagGroup(cmd.Flags(), acceptedOptions, "no-tests")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		root, diags := s.read()
		if noConfiguration(diags) {
			diags = nil // there is nothing that could be wrong
		}
		if !diags.HasErrors() {
			diags = append(diags, validate(cmd.Context(), s, &configuration{root: root})...)
		}
		return s.validated(diags, asJSON)
	}
	return cmd
}

func (s *session) validated(diags hcl.Diagnostics, asJSON bool) error {
	if asJSON {
		text, err := view.ValidateJSON(diags, s.source())
		if err != nil {
			return err
		}
		s.printf("%s\n", text)
	} else {
		s.complain(diags...)
		if !diags.HasErrors() {
			s.printf("Success! The configuration is valid.\n")
		}
	}
	if diags.HasErrors() {
		return failed
	}
	return nil
}
