package main

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/state"
)

func statePullCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pull [options]",
		Short: "Print the state as it is stored",
		Long: `Prints the state of the selected workspace, wherever it is kept, as JSON. Changes
that a run has recorded in the journal are included.`,
		Args: atMost(0, ""),
	}
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found, err := s.findState(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer found.close()
		return s.pull(cmd.Context(), found.store)
	}
	return cmd
}

// pull prints a state. Nothing else may stand on the standard output.
func (s *session) pull(ctx context.Context, store state.Store) error {
	f, err := state.Open(ctx, store)
	if err != nil {
		s.complain(stateProblem(err))
		return failed
	}
	var warnings hcl.Diagnostics
	for _, note := range f.Notes() {
		warnings = append(warnings, diagnostic(hcl.DiagWarning, "Note on the state", "%s", note))
	}
	if n := len(f.Open()); n > 0 {
		warnings = append(warnings, diagnostic(hcl.DiagWarning, "Operations are under way",
			"The state tells of %d operation(s) that have not ended. The printed state does not have them.", n))
	}
	s.stderr().Diagnostics(warnings, s.source(), false)
	if f.Missing() {
		return nil // as with Terraform
	}
	st := f.State()
	_, err = s.results.Write(st.Encode(st.Serial()))
	return err
}
