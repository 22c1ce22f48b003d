package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
)

func listCommand(s *session) *cobra.Command { return stateListCommand(s, "list") }

func stateListCommand(s *session, name string) *cobra.Command {
	var path, id string
	cmd := &cobra.Command{
		Use:   name + " [options] [ADDRESS...]",
		Short: "List the objects in the state",
		Long: `Lists the addresses of all objects in the state, or of those in the modules and
resources given.`,
	}
	cmd.Flags().StringVar(&path, "state", "", "Read `FILE` in place of terraform.tfstate.")
	cmd.Flags().StringVar(&id, "id", "", "List only objects whose attribute \"id\" is `ID`.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		targets, err := s.targets(args)
		if err != nil {
			return err
		}
		file, err := s.currentState(cmd.Context(), path)
		if err != nil {
			return err
		}
		defer file.close()
		if file.Missing() {
			s.complain(problem("No state found", "Nothing was applied here yet, so there is nothing to list. Run this in the folder of a configuration that was, or name a state with -state."))
			return failed
		}
		return s.list(cmd.Context(), file.State(), targets, id)
	}
	return cmd
}

func (s *session) targets(args []string) ([]address.Target, error) {
	var targets []address.Target
	for _, text := range args {
		t, err := address.ParseTarget(text)
		if err != nil {
			s.complain(problem("Invalid address", "%q is no address: %s. It looks like terraform_data.a, terraform_data.a[\"key\"] or module.m.", text, err))
			return nil, failed
		}
		targets = append(targets, t)
	}
	return targets, nil
}

func (s *session) list(ctx context.Context, st *state.State, targets []address.Target, id string) error {
	found := make([]bool, len(targets))
	find := schemas(ctx, s.built)
	for _, a := range st.Instances() {
		wanted := len(targets) == 0
		for i, t := range targets {
			if t.Contains(a) {
				wanted, found[i] = true, true
			}
		}
		if wanted && (id == "" || hasID(st.Current(a), a, id, find)) {
			s.printf("%s\n", a)
		}
	}
	for i, t := range targets {
		if !found[i] {
			s.complain(problem("No such object", "The state has nothing at %s. \"stoke state list\" shows all addresses.", t))
			return failed
		}
	}
	return nil
}

func hasID(o *state.Object, a address.Instance, id string, find view.Schemas) bool {
	if o == nil {
		return false
	}
	v, _ := view.ObjectValue(a, o, find)
	if !v.Type().IsObjectType() || !v.Type().HasAttribute("id") {
		return false
	}
	is := v.GetAttr("id")
	return is.Type() == cty.String && !is.IsNull() && is.AsString() == id
}
