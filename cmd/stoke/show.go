package main

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/hashicorp/hcl/v2"
	tfaddr "github.com/hashicorp/terraform-registry-address"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
)

func showCommand(s *session) *cobra.Command {
	var asJSON, asMarkdown bool
	cmd := &cobra.Command{
		Use:   "show [options] [FILE]",
		Short: "Show the current state or a saved plan",
		Long: `Shows a saved plan or a state file, or the current state when no file is given.

With -json the output has Terraform's published format and holds sensitive values
in the clear. With -markdown it is a summary for the reviewers of a pull request:
the changes and their risks first, then each change in a fold. It fits into a
comment and holds no sensitive values.`,
		Args: atMost(1, ""),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print Terraform's JSON of the state or plan.")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "Print a summary for a comment on a pull request.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if asJSON && asMarkdown {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-json and -markdown exclude each other")}
		}
		show := shower{s.showStateText, s.showPlanText}
		switch {
		case asJSON:
			show = shower{s.showStateJSON, s.showPlanJSON}
		case asMarkdown:
			show = shower{s.showStateMarkdown, s.showPlanMarkdown}
		}
		if len(args) == 1 {
			return s.showFile(cmd.Context(), args[0], show)
		}
		file, err := s.currentState(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer file.close()
		return show.state(cmd.Context(), file.StateForDisplay())
	}
	return cmd
}

// showFile shows a state, which is a JSON object, or else a plan.
func (s *session) showFile(ctx context.Context, name string, show shower) error {
	start, err := beginning(name)
	if err != nil {
		s.complain(problem("File cannot be read", "%s.", err))
		return failed
	}
	if bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte("{")) {
		file, err := s.openState(ctx, name)
		if err != nil {
			return err
		}
		defer file.close()
		return show.state(ctx, file.StateForDisplay())
	}
	pl, err := s.readPlan(ctx, name)
	if err != nil {
		s.complain(problem("File not understood", "%s is neither a state nor a saved plan: %s.", name, err))
		return failed
	}
	if pl.Locked != nil {
		s.stderr().Diagnostics(hcl.Diagnostics{diagnostic(hcl.DiagWarning, "Sensitive values are sealed",
			"The key that the plan was sealed with is not here: sensitive values are left out. Set it in %s or %s.", planKeyVariable, planKeyCommand)}, s.source(), s.compact)
	}
	// Objects without a schema, because their provider is not available, are shown
	// too.
	_ = pl.Bind(ctx, s.built)
	return show.plan(ctx, pl)
}

func beginning(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	start := make([]byte, 64)
	n, err := f.Read(start)
	if n == 0 && err != nil {
		return nil, err
	}
	return start[:n], nil
}

// shower is one way of showing states and plans.
type shower struct {
	state func(context.Context, *state.State) error
	plan  func(context.Context, *plan.Plan) error
}

func (s *session) showStateText(ctx context.Context, st *state.State) error {
	s.stdout().State(st, schemas(ctx, s.built))
	return nil
}

func (s *session) showPlanText(_ context.Context, pl *plan.Plan) error {
	s.display().plan(pl)
	return nil
}

func (s *session) showStateJSON(ctx context.Context, st *state.State) error {
	if err := view.StateJSON(s.results, st, schemas(ctx, s.built)); err != nil {
		return err
	}
	s.printf("\n")
	return nil
}

func (s *session) showPlanJSON(ctx context.Context, pl *plan.Plan) error {
	if err := view.PlanJSON(s.results, pl, s.planConfiguration(ctx, pl)); err != nil {
		return err
	}
	s.printf("\n")
	return nil
}

func (s *session) showStateMarkdown(ctx context.Context, st *state.State) error {
	return view.StateMarkdown(s.results, st, schemas(ctx, s.built))
}

func (s *session) showPlanMarkdown(_ context.Context, pl *plan.Plan) error {
	return view.Markdown(s.results, pl)
}

// planConfiguration is the configuration that a saved plan carries. Files that
// can no longer be parsed are left out.
func (s *session) planConfiguration(ctx context.Context, pl *plan.Plan) view.Configuration {
	built := s.built
	root, _, _ := modules.Load(modules.InMemory(pl.Files), pl.Dir)
	known := make(map[string]*providers.Schema)
	return view.Configuration{
		Root: root,
		Source: func(m *modules.Module, name string) string {
			if r := m.Settings.RequiredProviders[name]; r.Source != "" {
				if p, err := tfaddr.ParseProviderSource(r.Source); err == nil {
					return p.String()
				}
			}
			return impliedSource(name, built)
		},
		Schema: func(source string) *providers.Schema {
			if _, asked := known[source]; !asked {
				known[source] = schemaOf(ctx, built, source)
			}
			return known[source]
		},
	}
}

// currentState opens the state of the working directory for reading: the file
// given, or the one that the configuration names.
func (s *session) currentState(ctx context.Context, path string) (*stateFile, error) {
	return s.openState(ctx, path)
}
