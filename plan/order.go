package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
)

// Keyless is a resource's address with the instance keys of its modules taken
// out, as the state names dependencies.
func Keyless(r address.Resource) string {
	if strings.IndexByte(string(r.Module), '[') < 0 {
		return r.String()
	}
	var m address.Module
	for _, step := range r.Module.Steps() {
		m = m.Child(step.Name, address.Key{})
	}
	r.Module = m
	return r.String()
}

// replaceOrder decides for every replacement which object comes first. One
// that is created before the old one is destroyed forces the same on all that
// it depends on: they cannot go while it is still there. Its siblings may say
// something else.
func (p *planner) replaceOrder(result *Plan) {
	forced := map[address.Resource]bool{}
	edges := map[address.Resource][]address.Resource{}
	asked := map[address.Resource]bool{}
	var queue []address.Resource
	for addr, it := range p.items {
		if addr.Mode == address.Data {
			continue
		}
		if _, known := edges[addr.Resource]; !known {
			edges[addr.Resource] = it.inst.Node().Resources()
		}
		if it.change.CreateBeforeDestroy && !asked[addr.Resource] {
			asked[addr.Resource] = true
			queue = append(queue, addr.Resource)
		}
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, dep := range edges[next] {
			if !forced[dep] && dep.Mode == address.Managed {
				forced[dep] = true
				queue = append(queue, dep)
			}
		}
	}
	names := map[*eval.Node][]string{}
	for _, c := range result.Changes {
		it := p.items[c.Addr]
		if it == nil || c.Deposed != "" {
			continue
		}
		c.Dependencies = keylessAll(it.inst, names)
		if forced[c.Addr.Resource] && c.Addr.Mode == address.Managed {
			c.CreateBeforeDestroy = true
		}
		if c.CreateBeforeDestroy && c.Action == DeleteThenCreate {
			c.Action = CreateThenDelete
		}
	}
}

// keylessAll lists what an instance depends on. Instances with the same reads
// share one list.
func keylessAll(inst *eval.Instance, memo map[*eval.Node][]string) []string {
	node := inst.Resource.Node()
	if names, ok := memo[node]; ok {
		return names
	}
	var names []string
	for _, r := range inst.Node().Resources() {
		if r != inst.Addr.Resource {
			names = append(names, Keyless(r))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	memo[node] = names
	return names
}

// ordering builds the operations of a plan.
type ordering struct {
	p      *planner
	result *Plan
	ops    []Op
	del    map[*Change]int32
	nodes  map[*eval.Node]int32 // what has to be done before a node's value is there; -1: nothing

	puts map[string]int32 // by resource without keys: all of its puts are done
	dels map[string]int32 // all of its deletions are done
}

// order makes the operations and says what waits for what.
func (p *planner) order(result *Plan) hcl.Diagnostics {
	o := &ordering{
		p: p, result: result, del: map[*Change]int32{},
		nodes: map[*eval.Node]int32{}, puts: map[string]int32{}, dels: map[string]int32{},
	}
	o.create()
	o.afterReads()
	o.afterUsers()
	o.checksLast()
	ops, stuck := sorted(o.ops)
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

// create makes one operation for whatever is to be done, and the barriers
// that stand for all puts and all deletions of a resource.
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

// ready is the operation after which a node's value is there, or -1.
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
	op := int32(-1)
	switch {
	case len(before) == 1:
		op = before[0]
	case len(before) > 1:
		op = o.add(Barrier, -1)
		o.ops[op].After = before
	}
	o.nodes[n] = op
	return op
}

// afterUsers makes every deletion wait until nobody uses the object any more.
func (o *ordering) afterUsers() {
	users := o.users()
	waits := map[string][2]int32{} // resource → barrier before a plain deletion, before one that makes room
	for _, c := range o.result.Changes {
		op, ok := o.del[c]
		if !ok {
			continue
		}
		name := Keyless(c.Addr.Resource)
		w, ok := waits[name]
		if !ok {
			w = [2]int32{-1, -1}
			if len(users[name]) > 0 {
				gone := o.add(Barrier, -1)
				done := o.add(Barrier, -1)
				o.ops[done].After = append(o.ops[done].After, gone)
				for _, user := range users[name] {
					if b, ok := o.dels[user]; ok {
						o.ops[gone].After = append(o.ops[gone].After, b)
					}
					if b, ok := o.puts[user]; ok {
						o.ops[done].After = append(o.ops[done].After, b)
					}
				}
				w = [2]int32{done, gone}
			}
			waits[name] = w
		}
		before := w[0]
		if c.Action == DeleteThenCreate {
			before = w[1] // users are brought up to date only once the new one is there
		}
		if before >= 0 {
			o.ops[op].After = append(o.ops[op].After, before)
		}
	}
}

// users maps each resource to those that depend on it, by what the state says
// and by what their provider's configuration reads.
func (o *ordering) users() map[string][]string {
	users := map[string][]string{}
	seen := map[[2]string]bool{}
	note := func(dep, user string) {
		if dep != user && !seen[[2]string{dep, user}] {
			seen[[2]string{dep, user}] = true
			users[dep] = append(users[dep], user)
		}
	}
	for _, addr := range o.p.prior.Instances() {
		user := Keyless(addr.Resource)
		objects := o.p.prior.Deposed(addr)
		if cur := o.p.prior.Current(addr); cur != nil {
			for _, dep := range cur.Dependencies {
				note(dep, user)
			}
			if owner := o.p.owners[cur.Provider]; owner != nil {
				for _, r := range owner.Node.Resources() {
					note(Keyless(r), user)
				}
			}
		}
		for _, d := range objects {
			for _, dep := range d.Dependencies {
				note(dep, user)
			}
		}
	}
	return users
}

// sorted puts operations into an order in which each comes after what it waits
// for, keeping the given order where that leaves a choice. What cannot be
// ordered is returned as stuck.
func sorted(ops []Op) (result []Op, stuck []int32) {
	waiting := make([]int32, len(ops))
	heads := make([][]int32, len(ops))
	for i, op := range ops {
		waiting[i] = int32(len(op.After))
		for _, before := range op.After {
			heads[before] = append(heads[before], int32(i))
		}
	}
	queue := make([]int32, 0, len(ops))
	for i := range ops {
		if waiting[i] == 0 {
			queue = append(queue, int32(i))
		}
	}
	place := make([]int32, len(ops))
	for n := 0; n < len(queue); n++ {
		place[queue[n]] = int32(n)
		for _, next := range heads[queue[n]] {
			if waiting[next]--; waiting[next] == 0 {
				queue = append(queue, next)
			}
		}
	}
	if len(queue) < len(ops) {
		for i := range ops {
			if waiting[i] > 0 {
				stuck = append(stuck, int32(i))
			}
		}
		return nil, stuck
	}
	result = make([]Op, len(ops))
	for n, i := range queue {
		op := ops[i]
		after := make([]int32, len(op.After))
		for k, before := range op.After {
			after[k] = place[before]
		}
		op.After = after
		result[n] = op
	}
	return result, nil
}
