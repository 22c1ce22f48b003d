package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/local"
	"github.com/stokehq/stoke/providers"
)

// operation is one plan, apply or destroy, from reading the configuration to
// giving the lock back.
type operation struct {
	s         *session
	flags     *planFlags
	mode      plan.Mode
	catalogue providers.Catalogue
	config    *configuration
	state     *stateFile
	rounds    rounds
	saved     bool // the plan comes from a file
}

func newOperation(s *session, f *planFlags) *operation {
	o := &operation{s: s, flags: f, catalogue: s.built}
	switch {
	case f.destroy:
		o.mode = plan.Destroy
	case f.refreshOnly:
		o.mode = plan.RefreshOnly
	}
	if f.json {
		s.speakJSON()
	}
	return o
}

// open reads the configuration, locks and reads the state, and settles what
// an earlier run has left open. After an error there is nothing to close.
func (o *operation) open(ctx context.Context, name string) error {
	config, err := o.s.configure(o.flags)
	if err != nil {
		return err
	}
	o.config = config
	if err := o.openState(ctx, name); err != nil {
		return err
	}
	// Without the lock the run that announced these operations may be alive,
	// and a plan must not write into its journal.
	if open := len(o.state.Open()); open > 0 && name == "Plan" && !o.flags.lock.lock {
		o.s.complain(diagnostic(hcl.DiagWarning, "Operations are under way",
			"The state tells of %d operation(s) that have not ended: another run is at work, or was cut short. This plan, made without the lock, leaves them out.", open))
		return nil
	}
	if err := o.settleOpen(ctx); err != nil {
		o.close()
		return err
	}
	return nil
}

// openState locks and reads the state that the configuration and the options
// name.
func (o *operation) openState(ctx context.Context, name string) error {
	at, err := o.s.place(ctx, o.config.root, local.Flags{State: o.flags.state, Out: o.flags.stateOut, Backup: o.flags.backup})
	if err != nil {
		return err
	}
	o.state, err = o.s.lockPlace(ctx, at, o.flags.lock, name)
	return err
}

func (o *operation) settleOpen(ctx context.Context) error {
	intents := o.state.Open()
	if len(intents) == 0 {
		if o.state.Unfolded() && o.state.lock != nil {
			return o.journalled(ctx, func(*state.Journal) (hcl.Diagnostics, bool) { return nil, true })
		}
		return nil
	}
	o.s.complain(diagnostic(hcl.DiagWarning, "An earlier run was cut short",
		"It had announced %d operation(s) without saying how they ended. Stoke finds that out first, by reading.", len(intents)))
	return o.settle(ctx, intents)
}

func (o *operation) close() { o.state.close() }

// planned makes a plan and shows it with its warnings and errors.
func (o *operation) planned(ctx context.Context) (*plan.Plan, error) {
	pl, diags := o.make(ctx)
	if diags.HasErrors() {
		o.s.complain(diags...)
		return nil, failed
	}
	o.s.display().plan(pl)
	diags = append(diags, o.flags.warnings()...)
	o.s.complain(diags...)
	pl.Warnings = plan.Warnings(diags)
	return pl, nil
}

// approve asks whether the plan may be carried out.
func (o *operation) approve(pl *plan.Plan) error {
	const how = "Add -auto-approve to go on without a question, or save a plan with \"stoke plan -out=FILE\", look at it, and run \"stoke apply FILE\"."
	if !o.s.mayAsk(o.flags.input) {
		o.s.complain(problem("Approval needed", "This plan needs approval, and questions are turned off (-input=false "+
			"or TF_INPUT). %s", how))
		return failed
	}
	question, explanation := "Do you want to perform these actions?", "Stoke will perform the actions described above."
	cancelled := "Apply cancelled."
	switch pl.Mode {
	case plan.Destroy:
		question, explanation = "Do you really want to destroy all resources?", "Stoke will destroy everything that is listed above. There is no undo."
		cancelled = "Destroy cancelled."
	case plan.RefreshOnly:
		question, explanation = "Would you like to update the state with the observed values?", "Stoke will store the differences shown above and touch no object."
	}
	o.s.printf("\n%s\n  %s\n  Only 'yes' will be accepted to approve.\n\n  Enter a value: ", question, explanation)
	answer, err := o.s.answers.Line(o.s.signals.stopping)
	o.s.printf("\n")
	switch {
	case err == terminal.ErrNoAnswer:
		o.s.complain(problem("Approval needed", "The input has ended without an answer. %s", how))
		return failed
	case err != nil || answer != "yes":
		o.s.printf("%s\n", cancelled)
		return failed
	}
	return nil
}

// tellLock passes events on, and keeps the lock's message for others up to
// date with what the run is waiting for, every few seconds at most.
func (o *operation) tellLock(next plan.Listener) plan.Listener {
	const every = 5 * time.Second
	lock := o.state.lock
	if lock == nil {
		return next
	}
	var last time.Time
	return plan.OneAtATime(func(e plan.Event) {
		if (e.Kind == plan.ApplyStart || e.Kind == plan.ApplyProgress) && time.Since(last) >= every {
			last = time.Now()
			text := fmt.Sprintf("works on %s", e.Addr)
			if e.Progress.Step != "" {
				text += ", " + e.Progress.Step
			}
			// A message that cannot be written must not hold the run up.
			_ = lock.SetInfo(text + "; Ctrl-C there lets training runs go on, and the next apply attaches to them")
		}
		next(e)
	})
}
