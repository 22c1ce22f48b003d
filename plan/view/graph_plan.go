package view

import (
	"fmt"
	"slices"

	"github.com/stokehq/stoke/plan"
)

// fewEdges is up to how many edges a barrier is replaced by.
const fewEdges = 64

// PlanGraph draws what a plan does and what each operation waits for. Where
// many operations wait for many, a point is put between them, so that there are
// never many more edges than operations.
func PlanGraph(pl *plan.Plan) *Graph {
	g := &Graph{}
	users := barrierUsers(pl.Ops)
	names := make([]string, len(pl.Ops)) // of the nodes; "" for barriers left out
	waits := make([][]int32, len(pl.Ops))
	for i, op := range pl.Ops {
		for _, before := range op.After {
			if names[before] == "" {
				waits[i] = append(waits[i], waits[before]...)
			} else {
				waits[i] = append(waits[i], before)
			}
		}
		slices.Sort(waits[i])
		waits[i] = slices.Compact(waits[i])
		switch {
		case op.Kind != plan.Barrier:
			c := pl.Changes[op.Change]
			what, object := operationWord(op.Kind, c.Action), c.Addr.String()
			if c.Deposed != "" {
				object += " (deposed " + c.Deposed + ")"
			}
			names[i] = object + " (" + what + ")"
			g.Node(names[i], object+"\n"+what, "", "")
		case len(waits[i])*users[i] > fewEdges && len(waits[i]) > 1 && users[i] > 1:
			names[i] = fmt.Sprintf("point %d", i)
			g.Node(names[i], "", "", "point")
		case users[i] == 0:
			waits[i] = nil
		}
	}
	for i, before := range waits {
		for _, b := range before {
			if names[i] != "" {
				g.Edge(names[i], names[b])
			}
		}
	}
	return g
}

// barrierUsers counts, of each operation, how many others wait for it that
// lead to something that is done.
func barrierUsers(ops []plan.Op) []int {
	users := make([]int, len(ops))
	for i := len(ops) - 1; i >= 0; i-- { // dependents have larger indices
		if ops[i].Kind == plan.Barrier && users[i] == 0 {
			continue
		}
		for _, before := range ops[i].After {
			users[before]++
		}
	}
	return users
}

func operationWord(kind plan.OpKind, action plan.Action) string {
	switch kind {
	case plan.Remove:
		return "destroy"
	case plan.ReadData:
		return "read"
	case plan.Verify:
		return "check"
	}
	if action == plan.Update {
		return "update"
	}
	return "create"
}
