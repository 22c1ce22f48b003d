package main

import (
	"github.com/spf13/cobra"
)

func planCommand(s *session) *cobra.Command {
	f := &planFlags{}
	var out string
	var detailed bool
	cmd := &cobra.Command{
		Use:   "plan [options]",
		Short: "Show what apply would change",
		Long: `Compares the configuration with the real objects and shows what "stoke apply"
would do about the differences. Nothing is changed.

With -out the plan is saved, and "stoke apply FILE" does exactly what it shows.`,
		Args: atMost(0, "; to plan in another folder, use the global option -chdir"),
	}
	f.addPlan(cmd.Flags(), true)
	f.addGenerate(cmd)
	f.addRun(s, cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "Save the plan to `FILE`.")
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "Exit with 0 when there is nothing to change, 1 after an error, 2 when there are changes.")
	addFlagGroup(cmd.Flags(), otherOptions, "out", "detailed-exitcode")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd, s.built); err != nil {
			return err
		}
		if err := s.checkGenerate(cmd, f); err != nil {
			return err
		}
		o := newOperation(s, f)
		if err := o.open(cmd.Context(), "Plan"); err != nil {
			return err
		}
		defer o.close()
		pl, err := o.planned(cmd.Context())
		if err != nil {
			return err
		}
		if out != "" {
			pl.Pin(o.state.State())
			if err := s.writePlan(cmd.Context(), out, pl); err != nil {
				s.complain(problem("Plan not saved", "%s cannot be written: %s.", out, err))
				return failed
			}
		}
		s.generated(f, pl)
		if (pl.Changed() || out != "") && !s.automated() && !f.json {
			s.stdout().PrintNextStep(out)
		}
		if detailed && (pl.Changed() || len(pl.Deferred) > 0) {
			return exitCode(2)
		}
		return nil
	}
	return cmd
}
