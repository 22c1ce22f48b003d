package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules/address"
)

func stateShowCommand(s *session) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "show [options] ADDRESS",
		Short: "Show one object in the state",
		Long:  `Shows the attributes of one object in the state.`,
		Args:  atMost(1, "; one object is shown at a time"),
	}
	cmd.Flags().StringVar(&path, "state", "", "Read `FILE` in place of terraform.tfstate.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the address of an object is needed")}
		}
		a, err := address.ParseInstance(args[0])
		if err != nil {
			s.complain(problem("Invalid address", "%q is not the address of an object: %s.", args[0], err))
			return failed
		}
		file, err := s.currentState(cmd.Context(), path)
		if err != nil {
			return err
		}
		defer file.close()
		st := file.StateForDisplay()
		if st.Current(a) == nil && len(st.Deposed(a)) == 0 {
			s.complain(problem("No such object", "The state has no object at %s. \"stoke state list\" shows all addresses.", a))
			return failed
		}
		s.stdout().Instance(st, a, schemas(cmd.Context(), s.built))
		return nil
	}
	return cmd
}
