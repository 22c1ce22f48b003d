package run

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
)

// relocate gives objects that have moved their new addresses, in one record:
// whatever happens, each of them is at one address.
func (x *runner) relocate() bool {
	now := x.req.Journal.State()
	for _, m := range x.plan.Moves {
		if now.Current(m.To) != nil || len(now.Deposed(m.To)) > 0 {
			x.ev.Do(func(t *eval.Task) {
				t.Report(&hcl.Diagnostic{
					Severity: hcl.DiagError, Summary: "State has changed since the plan",
					Detail: fmt.Sprintf("%s was to move to %s, where another object is now. Make a new plan.", m.From, m.To),
				})
			})
			x.mu.Lock()
			x.failed = true
			x.mu.Unlock()
			return false
		}
	}
	return x.record(state.Result{Changes: plan.Relocated(now, x.plan.Moves), Durable: true})
}

// forget takes forgotten objects out of the state, all in one record, which
// also completes the dependencies of users of departing objects.
func (x *runner) forget() {
	departs := x.departures()
	if len(departs) == 0 {
		return
	}
	changes := plan.DepartureChanges(x.req.Journal.State(), func(a address.Instance, deposed string) plan.Departure { return departs[object{a, deposed}] })
	for _, c := range x.plan.Changes {
		if c.Action == plan.Forget {
			changes = append(changes, state.Change{Address: c.Addr, Deposed: c.Deposed})
		}
	}
	if len(changes) > 0 {
		x.record(state.Result{Changes: changes, Durable: true})
	}
}

// departures returns the objects that leave the state, and when: objects that
// are forgotten or no longer exist leave at once, before all deletions.
func (x *runner) departures() map[object]plan.Departure {
	departs := map[object]plan.Departure{}
	for _, c := range x.plan.Refreshed {
		if c.After.IsNull() && !c.Outdated {
			departs[object{c.Addr, c.Deposed}] = plan.Leaves
		}
	}
	for _, c := range x.plan.Changes {
		switch c.Action {
		case plan.Delete:
			departs[object{c.Addr, c.Deposed}] = plan.Destroyed
		case plan.Forget:
			departs[object{c.Addr, c.Deposed}] = plan.Leaves
		case plan.Create: // a recreated object keeps its name
			delete(departs, object{c.Addr, c.Deposed})
		}
	}
	return departs
}

// object is where one is in the state; deposed is "" of the current one.
type object struct {
	addr    address.Instance
	deposed string
}

// imported reports an object that stoke manages from now on.
func (x *runner) imported(c *plan.Change) {
	if c.Importing == "" {
		return
	}
	x.report.Imported++
	x.emit(plan.Event{Kind: plan.Importing, Addr: c.Addr, Text: "Import complete", ID: cty.StringVal(c.Importing)})
}
