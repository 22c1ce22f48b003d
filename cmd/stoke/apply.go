package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
)

func applyCommand(s *session) *cobra.Command {
	f := &planFlags{}
	var approved bool
	cmd := &cobra.Command{
		Use:   "apply [options] [PLAN]",
		Short: "Create or change what the configuration describes",
		Long: `Makes a plan, shows it, asks whether to go on, and carries it out: training runs
included, which are shown live until they end.

Where a count, a for_each or a provider's configuration depends on what is known
only after apply, what rests on it is left for another round: apply plans again,
shows and asks again, until nothing is left.

Given a file saved by "stoke plan -out", it carries out that plan without a
question. An apply that failed or was interrupted is resumed by running it again.`,
		Args: atMost(1, "; one saved plan can be applied"),
	}
	f.addPlan(cmd.Flags(), true)
	addApply(s, f, &approved, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if err := noPlanOptions(cmd); err != nil {
				return err
			}
			return applySaved(cmd.Context(), s, f, args[0])
		}
		if err := f.check(cmd, s.built); err != nil {
			return err
		}
		return planAndApply(cmd.Context(), s, f, approved)
	}
	return cmd
}

func addApply(s *session, f *planFlags, approved *bool, cmd *cobra.Command) {
	f.addRun(s, cmd.Flags())
	cmd.Flags().BoolVar(approved, "auto-approve", false, "Carry the plan out without asking.")
	cmd.Flags().StringVar(&f.backup, "backup", "", "Keep the state before this run in `FILE`; - keeps none. It is FILE.backup unless said otherwise.")
	addFlagGroup(cmd.Flags(), otherOptions, "auto-approve", "backup")
}

// noPlanOptions refuses options that a saved plan has already decided.
func noPlanOptions(cmd *cobra.Command) error {
	for _, name := range []string{"target", "exclude", "drift", "replace", "destroy", "refresh-only"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != f.DefValue { // what scripts repeat of the defaults does no harm
			return &usageError{path: cmd.CommandPath(), err: fmt.Errorf("-%s cannot be used with a saved plan, which "+
				"holds the values that were given when it was made", name)}
		}
	}
	return nil
}

func planAndApply(ctx context.Context, s *session, f *planFlags, approved bool) error {
	o := newOperation(s, f)
	name := "Apply"
	if o.mode == plan.Destroy {
		name = "Destroy"
	}
	if f.json && !approved {
		s.complain(problem("Approval needed", "With -json stoke asks no questions: add -auto-approve, or apply a "+
			"saved plan."))
		return failed
	}
	if err := o.open(ctx, name); err != nil {
		return err
	}
	defer o.close()
	return o.converge(ctx, approved)
}

func applySaved(ctx context.Context, s *session, f *planFlags, name string) error {
	o := newOperation(s, f)
	o.saved = true
	pl, err := o.openPlan(ctx, name)
	if err != nil {
		return err
	}
	defer o.close()
	if d, is := o.s.display().(*jsonDisplay); is {
		d.stream.WriteSavedPlan(pl) // what readers of the stream have not seen yet
	}
	if err := o.carryOut(ctx, pl); err != nil {
		return err
	}
	if len(pl.Deferred) > 0 {
		o.s.display().reportDeferrals(pl)
	}
	return nil
}

// word is the mode that an operation is spoken of in: whatever is in a saved
// plan, it is applied.
func (o *operation) word(pl *plan.Plan) plan.Mode {
	if o.saved {
		return plan.Normal
	}
	return pl.Mode
}

// carryOut applies the plan and, where no other round follows, shows the
// outputs as they are then. A plan that has nothing to do and no news
// leaves the state's files alone.
func (o *operation) carryOut(ctx context.Context, pl *plan.Plan) error {
	judged := !state.EqualChecks(pl.Checks, o.state.State().CheckResults())
	if pl.Changed() || len(pl.Ops) > 0 || len(pl.Moves) > 0 || judged || pl.Restates(o.state.State()) {
		if err := o.apply(ctx, pl); err != nil {
			return err
		}
	} else {
		o.s.display().applied(&o.rounds.total, o.word(pl), false)
	}
	if len(pl.Targets) > 0 {
		o.s.complain(diagnostic(hcl.DiagWarning, "Applied changes may be incomplete",
			"The plan covered a part of the configuration only, as -target asked for. Run \"stoke plan\" to see whether "+
				"more changes are needed."))
	}
	if o.word(pl) != plan.Destroy && !o.rounds.more {
		o.s.display().outputs(o.state.State().Outputs())
	}
	return nil
}
