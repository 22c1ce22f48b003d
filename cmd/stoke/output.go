package main

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
)

type outputFlags struct {
	json, raw bool
	state     string
}

func outputCommand(s *session) *cobra.Command {
	var f outputFlags
	cmd := &cobra.Command{
		Use:   "output [options] [NAME]",
		Short: "Show output values of the root module",
		Long: `Shows the output values that the last apply stored: all of them, or one by name.
Sensitive values are shown only by name or with -json.`,
		Args: atMost(1, ""),
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "Print JSON.")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "Print the bare text of one string, number or boolean.")
	cmd.Flags().StringVar(&f.state, "state", "", "Read `FILE` in place of terraform.tfstate.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fail := func(text string) error { return &usageError{path: cmd.CommandPath(), err: errors.New(text)} }
		switch {
		case f.json && f.raw:
			return fail("-json and -raw exclude each other")
		case f.raw && len(args) == 0:
			return fail("-raw needs the name of an output")
		}
		file, err := s.currentState(cmd.Context(), f.state)
		if err != nil {
			return err
		}
		defer file.close()
		if len(args) == 0 {
			return s.allOutputs(file.State().Outputs(), f)
		}
		return s.oneOutput(file.State().Outputs(), args[0], f)
	}
	return cmd
}

func (s *session) allOutputs(outputs map[string]state.Output, f outputFlags) error {
	if f.json {
		text, err := view.OutputsJSON(outputs)
		if err != nil {
			return err
		}
		s.printf("%s\n", text)
		return nil
	}
	if len(outputs) == 0 {
		return s.noOutputs()
	}
	s.stdout().Outputs(outputs)
	return nil
}

// noOutputs warns, with the results, that there is nothing to show. The command
// succeeds.
func (s *session) noOutputs() error {
	s.complain(diagnostic(hcl.DiagWarning, "No outputs found",
		"The state holds no outputs. Declare one with an output block in the configuration and run \"stoke apply\", which stores its value."))
	return nil
}

func (s *session) oneOutput(outputs map[string]state.Output, name string, f outputFlags) error {
	if len(outputs) == 0 && !f.json {
		return s.noOutputs()
	}
	o, ok := outputs[name]
	if !ok {
		names := make([]string, 0, len(outputs))
		for n := range outputs {
			names = append(names, n)
		}
		s.complain(problem(fmt.Sprintf("Output %q not found", name),
			"The state has no output of this name%s If it was added to the configuration just now, run \"stoke apply\" first, which stores its value.", sentence(suggest("", name, names))))
		return failed
	}
	switch {
	case f.json:
		text, err := view.OutputJSON(o.Value)
		if err != nil {
			return err
		}
		s.printf("%s\n", text)
	case f.raw:
		text, err := view.Raw(o.Value)
		if err != nil {
			s.complain(problem("Unsupported value for raw output", "Output %q cannot be printed bare: %s. -raw is for strings, numbers and booleans; use -json for it.", name, err))
			return failed
		}
		s.printf("%s", text)
	default:
		s.stdout().OutputValue(o.Value)
	}
	return nil
}

// sentence ends a text that may have ended in a question already.
func sentence(text string) string {
	if text == "" {
		return "."
	}
	return text
}
