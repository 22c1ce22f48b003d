package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan/eval"
)

// ordering builds the operations of a plan.
type ordering struct {
	p      *planner
	result *Plan
	ops    []Op
	del    map[*Change]int32
	nodes  map[*eval.Node]int32 // what has to be done before a node's value is there; -1: nothing

	puts map[string]int32 // by resource without keys: all of its puts are done
	dels map[string]int32 // all of its deletions are done

	users                      *users
	goneBefore, detachedBefore map[string]int32 // what was found to be gone and detached
	rather                     []preference
}

// order makes the operations and says what waits for what.
func (p *planner) order(result *Plan) hcl.Diagnostics {
	o := &ordering{
		p: p, result: result, del: map[*Change]int32{},
		nodes: map[*eval.Node]int32{}, puts: map[string]int32{}, dels: map[string]int32{},
		goneBefore: map[string]int32{}, detachedBefore: map[string]int32{},
	}
	o.create()
	o.afterReads()
	o.afterUsers()
	o.checksLast()
	ops, stuck := sorted(o.ops, o.rather)
	if stuck != nil {
		var names []string
		for _, i := range stuck {
			if c := o.ops[i].Change; c >= 0 {
				names = append(names, result.Changes[c].Addr.String())
			}
		}
		slices.Sort(names)
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Cycle between operations",
			Detail: fmt.Sprintf("These changes wait for each other: %s. Apply a part of them first with -target.", strings.Join(slices.Compact(names), ", ")),
		}}
	}
	result.Ops = ops
	return nil
}

func (o *ordering) add(kind OpKind, change int) int32 {
	o.ops = append(o.ops, Op{Kind: kind, Change: int32(change)})
	return int32(len(o.ops) - 1)
}

// create makes the operations, and the barriers for all puts and all deletions
// of a resource.
func (o *ordering) create() {
	barrier := func(into map[string]int32, name string, op int32) {
		b, ok := into[name]
		if !ok {
			b = o.add(Barrier, -1)
			into[name] = b
		}
		o.ops[b].After = append(o.ops[b].After, op)
	}
	for i, c := range o.result.Changes {
		name := Keyless(c.Addr.Resource)
		if c.Action == Delete || c.Action.Replaces() {
			o.del[c] = o.add(Remove, i)
			barrier(o.dels, name, o.del[c])
		}
		it := o.p.items[c.Addr]
		kind := Put
		switch {
		case c.Deposed != "" || c.Action == Delete || c.Action == Forget:
			continue
		case c.Action == Read:
			kind = ReadData
		case c.Action == NoOp && it != nil && it.verify:
			kind = Verify
		case c.Action == NoOp:
			continue
		}
		op := o.add(kind, i)
		it.put = op + 1
		barrier(o.puts, name, op)
		switch c.Action {
		case DeleteThenCreate:
			o.ops[op].After = append(o.ops[op].After, o.del[c])
		case CreateThenDelete:
			o.ops[o.del[c]].After = append(o.ops[o.del[c]].After, op)
		}
	}
}

// afterReads makes every put wait for what its configuration reads.
func (o *ordering) afterReads() {
	for _, c := range o.result.Changes {
		it := o.p.items[c.Addr]
		if it == nil || it.put == 0 || c.Deposed != "" {
			continue
		}
		op := it.put - 1
		for _, dep := range it.inst.Node().Deps() {
			if before := o.ready(dep); before >= 0 && before != op {
				o.ops[op].After = append(o.ops[op].After, before)
			}
		}
	}
}

// ready returns the operation that makes a node's value available, or -1.
func (o *ordering) ready(n *eval.Node) int32 {
	if op, ok := o.nodes[n]; ok {
		return op
	}
	o.nodes[n] = -1 // of no consequence: evaluation has ruled cycles out
	if n.Instance != nil {
		if it := o.p.items[n.Instance.Addr]; it != nil && it.put > 0 {
			o.nodes[n] = it.put - 1
			return it.put - 1
		}
	}
	var before []int32
	for _, dep := range n.Deps() {
		if op := o.ready(dep); op >= 0 && !slices.Contains(before[max(0, len(before)-8):], op) {
			before = append(before, op)
		}
	}
	o.nodes[n] = o.join(before)
	return o.nodes[n]
}
