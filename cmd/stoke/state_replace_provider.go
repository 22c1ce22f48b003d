package main

import (
	"context"
	"strings"

	tfaddr "github.com/hashicorp/terraform-registry-address"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
)

func stateReplaceProviderCommand(s *session) *cobra.Command {
	f := &editFlags{keep: true}
	var approved, input bool
	cmd := &cobra.Command{
		Use:   "replace-provider [options] FROM TO",
		Short: "Change the provider of objects in the state",
		Long: `Writes another provider into all objects of one provider, such as after a fork or
when a provider got another source address. Both are source addresses, such as
stokehq/train. The new provider must understand what the old one has stored.`,
		Args: exactArgs(2, "two source addresses are needed, FROM and TO"),
	}
	cmd.Flags().BoolVar(&approved, "auto-approve", false, "Do it without asking.")
	cmd.Flags().BoolVar(&input, "input", true, "Ask for nothing.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var sources [2]string
		for i, text := range args {
			p, err := tfaddr.ParseProviderSource(text)
			if err != nil {
				s.complain(problem("Invalid provider source", "%q is not the source address of a provider, such as "+
					"stokehq/train: %s.", text, err))
				return failed
			}
			sources[i] = p.String()
		}
		return s.replaceProvider(cmd.Context(), f, sources[0], sources[1], approved, input)
	}
	return cmd
}

func (s *session) replaceProvider(ctx context.Context, f *editFlags, from, to string, approved, input bool) error {
	file, err := s.openEdit(ctx, f, f.state, "StateReplaceProvider")
	if err != nil {
		return err
	}
	defer file.close()
	if s.emptyState(file) {
		return failed
	}
	changes, names := providerChanges(file.State(), from, to)
	if len(changes) == 0 {
		s.printf("No matching resources found.\n")
		return nil
	}
	s.printf("Stoke will perform the following actions:\n\n  ~ Updating provider:\n    - %s\n    + %s\n\nChanging %d resources:\n\n", from, to, len(names))
	for _, name := range names {
		s.printf("  %s\n", name)
	}
	if !approved {
		if !s.mayAsk(input) {
			s.complain(problem("Approval needed", "This needs approval, and questions are turned off (-input=false or "+
				"TF_INPUT). Add -auto-approve to go on without a question."))
			return failed
		}
		s.printf("\nDo you want to make these changes?\n  Only 'yes' will be accepted to continue.\n\n  Enter a value: ")
		answer, err := s.answers.Line(s.signals.stopping)
		s.printf("\n")
		if err != nil {
			s.complain(problem("Approval needed", "The input has ended without an answer. Add -auto-approve to go on without a question."))
			return failed
		}
		if answer != "yes" {
			s.printf("Cancelled replacing providers.\n")
			return nil
		}
	}
	if err := s.write(ctx, file, changes); err != nil {
		return err
	}
	s.printf("\nSuccessfully replaced provider for %d resources.\n", len(names))
	return nil
}

// providerChanges gives every object of one provider to the other, and names
// their resources.
func providerChanges(st *state.State, from, to string) ([]state.Change, []string) {
	var changes []state.Change
	var names []string
	for _, r := range st.Resources() {
		some := false
		for _, key := range st.Keys(r) {
			a := r.Instance(key)
			hand := func(deposed string, o *state.Object) {
				source, _, ok := eval.ParseProviderAddr(o.Provider)
				if !ok || source != from {
					return
				}
				some = true
				changes = append(changes, state.Change{Address: a, Deposed: deposed, Object: o.WithMeta(func(m *state.Meta) {
					m.Provider = strings.Replace(m.Provider, `provider["`+from+`"]`, `provider["`+to+`"]`, 1)
				})})
			}
			if o := st.Current(a); o != nil {
				hand("", o)
			}
			for deposed, o := range st.Deposed(a) {
				hand(deposed, o)
			}
		}
		if some {
			names = append(names, r.String())
		}
	}
	return changes, names
}
