package main

import (
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
)

// display is who reads along: people (textDisplay) or a pipeline that wants
// JSON (jsonDisplay).
type display interface {
	// begin starts a live view of what the engine does; end stops it.
	begin() plan.Listener
	end()
	diagnostics(diags hcl.Diagnostics)
	// printText prints a message that is no result, also while a view is live.
	printText(text string)
	plan(pl *plan.Plan)
	applied(r *run.Report, mode plan.Mode, interrupted bool)
	outputs(outputs map[string]state.Output)
	// round says how a round ended; left what a saved plan has left for later.
	round(n int, total *run.Report, more bool)
	reportDeferrals(pl *plan.Plan)
}

// textDisplay writes for people.
type textDisplay struct {
	s    *session
	mu   sync.Mutex
	live *view.Progress
	// apart: a diagnostic came last, and an empty line keeps off what follows.
	apart bool
}

func (d *textDisplay) begin() plan.Listener {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live = d.s.stdout().Progress(d.s.stage.live())
	if d.apart {
		d.live.SeparateFromAbove()
	}
	listen := d.live.Listen
	if d.s.concise {
		listen = exceptReads(listen)
	}
	return d.s.logs.listen(listen)
}

// exceptReads leaves out what is said about objects being read.
func exceptReads(next plan.Listener) plan.Listener {
	return func(e plan.Event) {
		switch e.Kind {
		case plan.RefreshStart, plan.RefreshDone, plan.ReadStart, plan.ReadDone:
		default:
			next(e)
		}
	}
}

func (d *textDisplay) end() {
	d.mu.Lock()
	live := d.live
	d.live = nil
	d.mu.Unlock()
	if live != nil {
		live.Stop()
	}
}

// diagnostics prints warnings with the results and errors apart from them, as
// pipelines expect.
func (d *textDisplay) diagnostics(diags hcl.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	if diags.HasErrors() {
		d.s.stderr().Diagnostics(diags, d.s.source(), d.s.compact)
		return
	}
	d.s.stdout().Diagnostics(diags, d.s.source(), d.s.compact)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.apart = true
}

// endDiagnostics: something else came after the last diagnostic.
func (d *textDisplay) endDiagnostics() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.apart = false
}

func (d *textDisplay) printText(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live != nil {
		d.live.PrintAbove(text)
		return
	}
	_, _ = d.s.stage.err.WriteString(text)
}

func (d *textDisplay) plan(pl *plan.Plan) { d.s.stdout().Plan(pl) }

func (d *textDisplay) applied(r *run.Report, mode plan.Mode, interrupted bool) {
	d.s.stdout().Applied(r, mode, interrupted)
}

func (d *textDisplay) outputs(outputs map[string]state.Output) {
	if len(outputs) > 0 {
		d.s.printf("\nOutputs:\n\n")
		d.s.stdout().Outputs(outputs)
	}
}

func (d *textDisplay) round(n int, r *run.Report, more bool) { d.s.stdout().Round(n, r, more) }
func (d *textDisplay) reportDeferrals(pl *plan.Plan)         { d.s.stdout().ReportDeferrals(pl) }
