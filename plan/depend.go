package plan

import (
	"slices"
	"strings"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
)

// Keyless is a resource's address with the instance keys of its modules taken
// out, as the state names dependencies.
func Keyless(r address.Resource) string {
	if strings.IndexByte(string(r.Module), '[') < 0 {
		return r.String()
	}
	r.Module = keylessModule(r.Module)
	return r.String()
}

func keylessModule(m address.Module) address.Module {
	var out address.Module
	for _, step := range m.Steps() {
		out = out.Child(step.Name, address.Key{})
	}
	return out
}

// dependencies has the dependencies of the configuration's resources, by names
// without instance keys.
//
// The state lists direct dependencies, and objects are destroyed in the reverse
// of that order: each after its users. Such a chain breaks at a name under
// which nothing is ever destroyed: a data source, a resource without instances.
// In the lists such a name is therefore followed by its own dependencies.
type dependencies struct {
	certain map[string][]string // what resources read that were evaluated
	guessed guesses             // what others refer to, and module calls without instances
	objects map[string]bool     // managed resources with objects, once the plan is applied
	lists   map[*eval.Node][]string
}

func (p *planner) dependencies(result *Plan) *dependencies {
	d := &dependencies{
		certain: make(map[string][]string, len(p.items)), guessed: guesses{},
		objects: make(map[string]bool, len(p.items)), lists: map[*eval.Node][]string{},
	}
	d.read(p)
	leaving := map[address.Instance]bool{}
	for _, list := range [][]*Change{result.Changes, result.Refreshed} {
		for _, c := range list {
			if c.Deposed == "" && (c.Action == Delete || c.Action == Forget) {
				leaving[c.Addr] = true
			}
		}
	}
	for _, addr := range p.prior.Instances() {
		if p.items[addr] == nil && addr.Mode == address.Managed && !leaving[addr] && p.prior.Current(addr) != nil {
			d.objects[Keyless(addr.Resource)] = true
		}
	}
	return d
}

// read collects what the resources of the configuration depend on. Resources
// without instances are not evaluated; their written references are used
// instead.
func (d *dependencies) read(p *planner) {
	written := newWritten(p.req.Root)
	var names []string
	for addr, it := range p.items {
		name := Keyless(addr.Resource)
		if _, done := d.certain[name]; done { // its instances read the same
			continue
		}
		if addr.Mode == address.Managed {
			d.objects[name] = true
		}
		node := it.inst.Node()
		list := make([]string, 0, len(node.Resources()))
		for _, r := range node.Resources() {
			if r != addr.Resource {
				list = append(list, Keyless(r))
			}
		}
		d.certain[name] = list
		names = append(names, list...)
		for _, m := range node.EmptyCalls() {
			d.guessed[name] = append(d.guessed[name], written.outputs(keylessModule(m))...)
		}
		names = append(names, d.guessed[name]...)
	}
	if p.want != nil {
		for addr := range p.want.resources {
			names = append(names, Keyless(addr))
		}
	}
	for i := 0; i < len(names); i++ { // names grows
		name := names[i]
		if _, evaluated := d.certain[name]; evaluated || d.guessed[name] != nil {
			continue
		}
		d.guessed[name] = append([]string{}, written.needs(name)...)
		names = append(names, d.guessed[name]...)
	}
	d.guessed.withoutRings(d.certain)
}

// direct lists what a resource of the configuration depends on.
func (d *dependencies) direct(name string) []string {
	return append(slices.Clip(d.certain[name]), d.guessed[name]...)
}

// list is what the state says an instance depends on, sorted. Instances with
// the same reads share one list.
func (d *dependencies) list(inst *eval.Instance) []string {
	node := inst.Resource.Node()
	if names, ok := d.lists[node]; ok {
		return names
	}
	names := completed(slices.Compact(slices.Sorted(slices.Values(d.direct(Keyless(inst.Addr.Resource))))), d.direct, func(name string) bool { return !d.objects[name] })
	if own, found := slices.BinarySearch(names, Keyless(inst.Addr.Resource)); found {
		names = slices.Delete(names, own, own+1)
	}
	d.lists[node] = slices.Clip(names)
	return d.lists[node]
}

// relate records the dependencies of each object, and decides for every
// replacement which object is made or removed first. An object that is created
// before the old one is destroyed forces the same on its dependencies: they
// cannot be removed while the old one exists. Its siblings may say something
// else.
func (p *planner) relate(result *Plan) {
	deps := p.dependencies(result)
	p.related = deps
	asked, forced := map[string]bool{}, map[string]bool{}
	var queue []string
	for addr, it := range p.items {
		if !it.change.CreateBeforeDestroy {
			continue
		}
		if name := Keyless(addr.Resource); !asked[name] {
			asked[name] = true
			queue = append(queue, deps.direct(name)...)
		}
	}
	if p.want != nil { // a resource without instances asks for it as well
		for addr, r := range p.want.resources {
			if name := Keyless(addr); r.Decl.Lifecycle.CreateBeforeDestroy && deps.certain[name] == nil {
				queue = append(queue, deps.direct(name)...)
			}
		}
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if !forced[next] {
			forced[next] = true
			queue = append(queue, deps.direct(next)...)
		}
	}
	for _, c := range result.Changes {
		it := p.items[c.Addr]
		if it == nil || c.Deposed != "" {
			continue
		}
		c.Dependencies = deps.list(it.inst)
		if len(forced) > 0 && c.Addr.Mode == address.Managed && forced[Keyless(c.Addr.Resource)] {
			c.CreateBeforeDestroy = true
		}
		if c.CreateBeforeDestroy && c.Action == DeleteThenCreate {
			c.Action = CreateThenDelete
		}
	}
	if p.req.Mode != Normal {
		return
	}
	for _, c := range result.Refreshed { // a changed object keeps its dependencies until it is changed
		if it := p.items[c.Addr]; it != nil && c.Deposed == "" && it.change.Action == NoOp {
			c.Dependencies, c.CreateBeforeDestroy = it.change.Dependencies, it.change.CreateBeforeDestroy
		}
	}
}
