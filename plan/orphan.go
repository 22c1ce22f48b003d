package plan

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// removedObject is a stored object that the plan removes.
type removedObject struct {
	addr    address.Instance
	deposed string
	object  *state.Object
	reason  Reason
	spared  bool // it is forgotten, not destroyed
}

// orphans plans the end of stored objects that are no longer wanted, and of all
// deposed objects.
func (p *planner) orphans(t *eval.Task) {
	if p.ev.Failed() && p.req.Mode == RefreshOnly {
		return
	}
	stored := p.prior.Instances()
	removed := p.collectRemovals(t)
	if len(stored) == 0 {
		return
	}
	wanted := p.wantedInstances(t)
	p.want = wanted
	spared := p.spare()
	var list []removedObject
	for _, addr := range stored {
		if !p.contains(addr) || spared[addr] {
			continue
		}
		for key, o := range p.prior.Deposed(addr) {
			list = append(list, removedObject{addr, key, o, NoReason, removed.spares(addr.Resource)})
		}
		o := p.prior.Current(addr)
		if o == nil {
			continue
		}
		reason, gone := wanted.missing(addr)
		if gone || p.req.Mode == RefreshOnly && addr.Mode == address.Managed && !wanted.instances[addr] {
			if _, moved := p.from[addr]; moved && (reason == DeleteNoResourceConfig || reason == DeleteNoModule) {
				reason = DeleteNoMoveTarget
			}
			list = append(list, removedObject{addr, "", o, reason, removed.spares(addr.Resource)})
		}
	}
	p.remove(t, list)
}

// destroy plans the end of everything that is stored.
func (p *planner) destroy(t *eval.Task) {
	dependents, spared := p.dependents(), p.spare()
	var list []removedObject
	for _, addr := range p.prior.Instances() {
		if spared[addr] || !p.contains(addr) && !dependents[Keyless(addr.Resource)] {
			continue
		}
		for key, o := range p.prior.Deposed(addr) {
			list = append(list, removedObject{addr, key, o, NoReason, false})
		}
		if o := p.prior.Current(addr); o != nil {
			list = append(list, removedObject{addr, "", o, NoReason, false})
		}
	}
	p.remove(t, list)
}

// dependents returns the resources that depend on targeted ones, however
// indirectly: they cannot stay when those go.
func (p *planner) dependents() map[string]bool {
	if len(p.targets) == 0 {
		return nil
	}
	users := map[string][]string{} // resource → its users
	var queue []string
	for _, addr := range p.prior.Instances() {
		name := Keyless(addr.Resource)
		if o := p.prior.Current(addr); o != nil {
			for _, dep := range o.Dependencies {
				users[dep] = append(users[dep], name)
			}
		}
		if p.contains(addr) {
			queue = append(queue, name)
		}
	}
	found := map[string]bool{}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, user := range users[next] {
			if !found[user] {
				found[user] = true
				queue = append(queue, user)
			}
		}
	}
	return found
}

// remove plans deletions, several at a time.
func (p *planner) remove(t *eval.Task, list []removedObject) {
	t.ForEach(len(list), func(t *eval.Task, i int) {
		d := list[i]
		if p.stopped() || p.ctx.Err() != nil {
			return
		}
		if d.addr.Mode == address.Data {
			p.forget(d)
			return
		}
		if d.spared {
			p.letGo(t, d)
			return
		}
		p.removeOne(t, d)
	})
}

// forget drops a data source's stored result, which needs no operation.
func (p *planner) forget(d removedObject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshed = append(p.refreshed, &Change{
		Addr: d.addr, Deposed: d.deposed, Provider: d.object.Provider, Action: Delete, Reason: d.reason,
		Before: cty.NullVal(cty.DynamicPseudoType), After: cty.NullVal(cty.DynamicPseudoType),
	})
}

func (p *planner) removeOne(t *eval.Task, d removedObject) {
	owner, ok := p.ev.ProviderAt(t, d.object.Provider, d.addr.String())
	if !ok {
		return
	}
	p.mu.Lock()
	p.owners[d.object.Provider] = owner
	p.mu.Unlock()
	rs := owner.Schema.Resources[d.addr.Type]
	if rs == nil {
		t.Report(noSuchType(d.addr, owner.Source))
		return
	}
	ty := owner.Type(rs)
	if owner.Unknown && p.req.Mode == Normal {
		p.postponeRemoval(d, owner, ty)
		return
	}
	o, ok := p.read(p.ctx, t, d.addr, d.deposed, d.object, owner, ty)
	if !ok || o.value.IsNull() {
		return
	}
	if o.deferred != "" {
		p.postponeRemoval(d, owner, ty)
		return
	}
	if p.req.Mode == RefreshOnly {
		return
	}
	if p.protected(t, d) {
		return
	}
	c := &Change{
		Addr: d.addr, Deposed: d.deposed, Previous: p.from[d.addr], Provider: d.object.Provider, Action: Delete, Reason: d.reason,
		Before: o.value, After: cty.NullVal(ty.Implied), BeforeSensitive: o.sensitive,
		PriorPrivate: o.private, Private: o.private, Dependencies: d.object.Dependencies, PriorDependencies: d.object.Dependencies,
		Config: cty.NullVal(ty.Implied), CreateBeforeDestroy: d.object.CreateBeforeDestroy, Schema: rs,
	}
	if owner.Schema.PlanDestroy {
		over := p.slow(d.addr)
		resp := owner.Server.Plan(p.call(p.ctx, d.addr), providers.PlanRequest{
			Type: d.addr.Type, Prior: o.value, Proposed: cty.NullVal(ty.Implied), Config: cty.NullVal(ty.Implied),
			Private: o.private, Meta: NoMeta(owner.Schema),
		}, o.sensitive)
		over()
		t.Report(eval.FromProvider(resp.Diagnostics, nil, hcl.Range{}, d.addr.String())...)
		if resp.Diagnostics.HasErrors() {
			return
		}
		if errs := contract.CheckConforms(ty.Implied, resp.Planned); len(errs) > 0 || !resp.Planned.IsNull() {
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Provider produced invalid plan",
				Detail: fmt.Sprintf("The provider %s planned something other than the end of %s.", owner.Source, d.addr),
			})
			return
		}
		c.Private = resp.Private
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extra = append(p.extra, c)
}

// protected reports, with a diagnostic, whether the configuration forbids the
// object's end, or whether that is not known.
func (p *planner) protected(t *eval.Task, d removedObject) bool {
	if d.deposed != "" {
		return false
	}
	forbidden, at, ok := p.ev.Protected(t, d.addr)
	if forbidden {
		t.Report(preventDestroy(d.addr, at))
	}
	return forbidden || !ok
}

// wantedSet is what the configuration wants, as far as it was evaluated.
type wantedSet struct {
	modules   map[address.Module]bool
	declared  func(address.Module) bool // whatever its keys
	resources map[address.Resource]*eval.Resource
	instances map[address.Instance]bool
	undecided map[address.Resource]bool // their instances are not known
	calls     map[address.Module]bool   // module calls with unknown instances
}

func (p *planner) wantedInstances(t *eval.Task) *wantedSet {
	w := &wantedSet{
		modules: map[address.Module]bool{}, declared: p.ev.DeclaredModule, resources: map[address.Resource]*eval.Resource{},
		instances: map[address.Instance]bool{}, undecided: map[address.Resource]bool{},
		calls: map[address.Module]bool{},
	}
	p.ev.Root().WalkInto(t, p.reaches, func(t *eval.Task, m *eval.Module) {
		p.mu.Lock()
		w.modules[m.Addr] = true
		if call, open := m.Open(); open {
			w.calls[call] = true
		}
		p.mu.Unlock()
		for _, r := range m.Resources() {
			if !p.mayContain(r.Addr) {
				continue
			}
			instances, ok := r.Instances(t)
			p.mu.Lock()
			w.resources[r.Addr] = r
			w.undecided[r.Addr] = !ok || len(instances) == 1 && instances[0].Addr.Key.IsAny()
			for _, inst := range instances {
				w.instances[inst.Addr] = true
			}
			p.mu.Unlock()
		}
	})
	return w
}

// open reports whether the number of instances is unknown, of the resource or
// of a module around it.
func (w *wantedSet) open(addr address.Instance) bool {
	if w.undecided[addr.Resource] {
		return true
	}
	if len(w.calls) == 0 {
		return false
	}
	var m address.Module
	for _, step := range addr.Module.Steps() {
		if w.calls[m.Child(step.Name, address.Key{})] {
			return true
		}
		m = m.Child(step.Name, step.Key)
	}
	return false
}

// missing reports whether a stored instance is no longer in the configuration,
// with the reason.
func (w *wantedSet) missing(addr address.Instance) (Reason, bool) {
	if w.instances[addr] || w.open(addr) {
		return NoReason, false
	}
	r := w.resources[addr.Resource]
	if r == nil {
		if !w.modules[addr.Module] && w.declared(addr.Module) {
			return DeleteNoModule, true
		}
		return DeleteNoResourceConfig, true
	}
	_, number := addr.Key.Int()
	_, text := addr.Key.Str()
	switch repeated := r.Repeated(); {
	case repeated == "count" && number:
		return DeleteCountIndex, true
	case repeated == "for_each" && text:
		return DeleteEachKey, true
	}
	return DeleteWrongRepetition, true
}
