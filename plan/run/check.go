package run

import (
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
)

// checks decides the check blocks on what the apply has left, and records what
// became of all conditions. Of a plan without operations nothing is decided a
// second time.
func (x *runner) checks() {
	if x.plan.Mode == plan.Normal && len(x.plan.Ops) > 0 && len(x.plan.Targets) == 0 && !x.stopped() {
		x.ev.Do(func(t *eval.Task) { x.ev.Checks(t) })
	}
	results := x.plan.Checks
	if len(x.plan.Ops) > 0 && results != nil {
		results = x.ev.CheckResults(results, true)
	}
	before := x.req.Journal.State().CheckResults()
	if results == nil || len(results)+len(before) == 0 || state.EqualChecks(results, before) {
		return
	}
	x.record(state.Result{Checks: results})
}
