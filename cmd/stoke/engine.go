package main

import (
	"context"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
)

// Everything that the command line asks of the engine is in this file.

// request is what the engine is told about this working directory.
func (o *operation) request() plan.Request {
	n, limits := o.atOnce()
	r := plan.Request{
		Files: o.s.files, Catalogue: o.catalogue,
		Mode: o.mode, Replace: o.flags.replace,
		Parallelism: n, Limits: limits, Workspace: o.state.workspace(), Dir: ".",
		Stopping: o.s.signals.stopping,
	}
	o.flags.shape(&r)
	if o.config != nil {
		r.Root, r.Variables = o.config.root, o.config.variables
	}
	return r
}

// atOnce says how much is done at the same time, by what the configuration uses.
func (o *operation) atOnce() (int, plan.Limits) {
	var used []string
	if o.config != nil {
		used, _ = providerNeeds(o.config.root, o.catalogue) // what is not there is told elsewhere
	}
	return o.flags.parallelism.limitsFor(used, o.catalogue)
}

// settle finds out what became of operations that were announced and never
// reported.
func (o *operation) settle(ctx context.Context, intents []state.Intent) error {
	return o.journalled(ctx, func(j *state.Journal) (hcl.Diagnostics, bool) {
		r := o.request()
		r.Listen = o.s.display().begin()
		defer o.s.display().end()
		return plan.Settle(ctx, r, j, intents), true
	})
}

// make makes a plan of the state as it is.
func (o *operation) make(ctx context.Context) (*plan.Plan, hcl.Diagnostics) {
	r := o.request()
	r.State = o.state.State()
	r.Listen = o.s.display().begin()
	defer o.s.display().end()
	r.GenerateTo = o.flags.generate
	pl, diags := plan.Make(ctx, r)
	if err := o.writeGenerated(pl); err != nil {
		diags = append(diags, problem("Generated configuration not written", "%s.", err))
	}
	return pl, diags
}

// apply carries a plan out.
func (o *operation) apply(ctx context.Context, pl *plan.Plan) error {
	var report *run.Report
	defer ignoreSIGPIPE()()
	return o.journalled(ctx, func(j *state.Journal) (hcl.Diagnostics, bool) {
		listen := o.s.display().begin()
		n, limits := o.atOnce()
		var diags hcl.Diagnostics
		report, diags = run.Apply(ctx, run.Request{
			Plan: pl, Root: o.config.root, Ephemeral: o.config.variables, Journal: j, Catalogue: o.catalogue, Parallelism: n, Limits: limits,
			Listen: o.tellLock(listen), Stopping: o.s.signals.stopping,
		})
		o.s.display().end()
		o.s.complain(diags...)
		interrupted := o.s.signals.interrupted()
		good := report.Complete() && !diags.HasErrors() && !interrupted
		o.rounds.total.Add(report)
		if good && o.rounds.more {
			o.s.display().round(o.rounds.n, report, true)
		} else {
			o.s.display().applied(&o.rounds.total, o.word(pl), interrupted)
		}
		return nil, good
	})
}

// journalled opens the journal, does the work and closes the journal whatever
// happens. It fails when the work is not good or has errors.
func (o *operation) journalled(ctx context.Context, work func(*state.Journal) (diags hcl.Diagnostics, good bool)) error {
	j, err := o.state.Begin(ctx)
	if err != nil {
		o.s.complain(unwritten(err))
		return failed
	}
	diags, good := work(j)
	o.s.complain(diags...)
	if err := j.Close(context.WithoutCancel(ctx)); err != nil {
		o.s.rescue(j, err)
		return failed
	}
	if !good || diags.HasErrors() {
		return failed
	}
	return nil
}

// validate checks a configuration.
func validate(ctx context.Context, s *session, c *configuration) hcl.Diagnostics {
	workspace, err := s.workspaceName()
	if err != nil {
		workspace = backend.DefaultWorkspace
	}
	return plan.Validate(ctx, plan.Request{Root: c.root, Files: s.files, Catalogue: s.built, Workspace: workspace, Dir: ".", Stopping: s.signals.stopping})
}
