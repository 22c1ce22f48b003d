package plan

import (
	"context"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
)

// maxAttempts bounds how often a plan is repeated because its reads made more
// objects change; after that everything is read.
const maxAttempts = 5

// makeChanged makes a plan from the state, reads the objects that this plan
// changes and their dependencies, and plans again, until a plan touches only
// read objects. Of those objects it says what a plan says that reads
// everything; the others are taken as the state has them.
func makeChanged(ctx context.Context, r Request, g *generation) (*Plan, hcl.Diagnostics) {
	reads := newReads()
	if g.found == nil {
		g.found = map[address.Instance]object{}
	}
	for n := 1; ; n++ {
		p, result, diags := makeOnce(ctx, r, g, reads)
		if reads.all || p.stopped() || ctx.Err() != nil {
			return result, diags
		}
		if diags.HasErrors() { // maybe only because the state is out of date
			reads.all = true
			continue
		}
		more := false
		for key := range p.affectedObjects(result) {
			if !reads.only[key] {
				reads.only[key], more = true, true
			}
		}
		if !more {
			return result, diags
		}
		reads.all = n == maxAttempts
	}
}

// affectedObjects are the stored objects that a plan changes or defers, and all that
// those and the changed outputs depend on, directly or not.
func (p *planner) affectedObjects(result *Plan) map[objectKey]bool {
	found := map[objectKey]bool{}
	sources := map[address.Resource]*eval.Node{} // what instances of a resource read
	for addr, it := range p.items {
		sources[addr.Resource] = it.inst.Node()
	}
	needed := map[address.Resource]bool{}
	var queue []address.Resource
	need := func(n *eval.Node) {
		for _, r := range n.Resources() {
			if !needed[r] {
				needed[r] = true
				queue = append(queue, r)
			}
		}
	}
	for _, c := range append(result.deferredChanges(), result.Changes...) {
		if c.Action == NoOp {
			continue
		}
		found[objectKey{c.Addr, c.Deposed}] = true
		if it := p.items[c.Addr]; it != nil && c.Deposed == "" {
			need(it.inst.Node())
		}
		if owner := p.owners[c.Provider]; owner != nil {
			need(owner.Node)
		}
	}
	for _, o := range result.Outputs {
		if o.Action != NoOp && p.ev.Root().Decl.Outputs[o.Name] != nil {
			need(p.ev.Root().OutputNode(o.Name))
		}
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if n := sources[next]; n != nil {
			need(n)
		}
	}
	for _, addr := range p.prior.Instances() {
		if needed[addr.Resource] {
			found[objectKey{addr: addr}] = true
		}
	}
	return found
}
