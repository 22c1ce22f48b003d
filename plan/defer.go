package plan

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Deferral is a change that this plan cannot decide: a later round, planned
// after this plan was applied, will.
type Deferral struct {
	// Change is the part of the change that is known already. Its address may have
	// the key [*], here or in its modules; without a key, Action is Create, Update
	// or Read as far as is known. Before is the stored object, not the observed
	// one.
	Change *Change
	Reason DeferReason
	// For InstanceCountUnknown, Subject and Argument name the count or for_each
	// that is not known: of the resource itself or of a module call.
	Subject, Argument string
	// Because lists what has to come first: addresses without keys.
	Because []string
}

// DeferReason is the reason of a deferral, in the words of Terraform's plan
// JSON.
type DeferReason string

const (
	InstanceCountUnknown  DeferReason = "instance_count_unknown"
	ResourceConfigUnknown DeferReason = "resource_config_unknown"
	ProviderConfigUnknown DeferReason = "provider_config_unknown"
	AbsentPrerequisite    DeferReason = "absent_prereq"
	DeferredPrerequisite  DeferReason = "deferred_prereq"
)

// deferred collects what planning defers.
type deferred struct {
	change *Change
	reason DeferReason
	inst   *eval.Instance // nil for an orphan
	owner  *eval.Provider // nil where it does not matter
	users  []string       // of orphans: their remaining users
}

// deferral returns the reason why an instance cannot be planned now, "" if it
// can. The caller has evaluated the configuration.
func (p *planner) deferral(t *eval.Task, inst *eval.Instance, owner *eval.Provider) DeferReason {
	switch {
	case inst.Resource.Undecided() != nil:
		return InstanceCountUnknown
	case owner.Unknown && p.req.Mode != Destroy:
		return ProviderConfigUnknown
	case t.Deferred():
		return DeferredPrerequisite
	}
	return ""
}

// postpone leaves an instance to a later round and returns its known values.
// Whatever reads it is deferred too.
func (d *draft) postpone(reason DeferReason) (cty.Value, bool) {
	d.t.Defer()
	block := d.ty.Schema.Block
	c := &Change{
		Addr: d.inst.Addr, Provider: d.owner.Addr, Action: Create, Schema: d.ty.Schema,
		Before: cty.NullVal(d.ty.Implied), After: contract.ProposedUnknown(block, d.config),
		CreateBeforeDestroy: d.lifecycle.CreateBeforeDestroy,
	}
	if d.inst.Addr.Mode == address.Data {
		c.Action = Read
	} else if stored := d.p.prior.Current(d.inst.Addr); stored != nil {
		c.Action = Update
		if v, err := stored.Value(d.ty.Implied); err == nil {
			c.Before, c.BeforeSensitive = v, sensitiveIn(stored.Sensitive, d.ty, v)
			c.After = contract.Proposed(block, v, IgnoreChanges(d.config, v, d.lifecycle, block))
		}
	}
	d.change = c
	d.sensitive()
	if d.p.req.Mode != RefreshOnly {
		d.p.mu.Lock()
		d.p.deferred = append(d.p.deferred, deferred{change: c, reason: reason, inst: d.inst, owner: d.owner})
		d.p.mu.Unlock()
	}
	return lang.Marked{Sensitive: c.AfterSensitive}.Apply(c.After), true
}

// postponeRemoval leaves the end of an object to a later round.
func (p *planner) postponeRemoval(d removedObject, owner *eval.Provider, ty *eval.Type) {
	c := &Change{
		Addr: d.addr, Deposed: d.deposed, Provider: d.object.Provider, Action: Delete, Reason: d.reason, Schema: ty.Schema,
		Before: cty.NullVal(ty.Implied), After: cty.NullVal(ty.Implied), Dependencies: d.object.Dependencies,
	}
	if v, err := d.object.Value(ty.Implied); err == nil {
		c.Before, c.BeforeSensitive = v, sensitiveIn(d.object.Sensitive, ty, v)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deferred = append(p.deferred, deferred{change: c, reason: ProviderConfigUnknown, owner: owner})
}

// holdBack defers the end of stored objects whose users are deferred: the users
// must drop their references first.
func (p *planner) holdBack() {
	if len(p.deferred) == 0 || len(p.extra) == 0 {
		return
	}
	waiting := map[address.Resource]bool{}
	for _, d := range p.deferred {
		waiting[d.change.Addr.Resource] = true
	}
	needed := p.neededBy(func(addr address.Instance) bool { return waiting[addr.Resource] || p.undecided(addr) })
	kept := p.extra[:0]
	for _, c := range p.extra {
		users := needed[Keyless(c.Addr.Resource)]
		if c.Deposed != "" || len(users) == 0 {
			kept = append(kept, c)
			continue
		}
		p.deferred = append(p.deferred, deferred{change: c, reason: DeferredPrerequisite, users: users})
	}
	p.extra = kept
}

// neededBy maps resources to the stored resources that need them, directly or
// not, and stay for now.
func (p *planner) neededBy(stays func(address.Instance) bool) map[string][]string {
	users := map[string][]string{}
	needs := map[string][]string{} // of orphans
	going := map[address.Instance]bool{}
	for _, c := range p.extra {
		going[c.Addr] = c.Deposed == ""
	}
	var queue []string
	note := func(o *state.Object, user string) {
		for _, dep := range o.Dependencies {
			if len(users[dep]) == 0 {
				queue = append(queue, dep)
			}
			if !slices.Contains(users[dep], user) && len(users[dep]) < maxNamed {
				users[dep] = append(users[dep], user)
			}
		}
	}
	for _, addr := range p.prior.Instances() {
		o := p.prior.Current(addr)
		switch {
		case o == nil:
		case going[addr]:
			needs[Keyless(addr.Resource)] = append(needs[Keyless(addr.Resource)], o.Dependencies...)
		case stays(addr):
			note(o, Keyless(addr.Resource))
		}
	}
	for len(queue) > 0 { // what is kept back keeps back what it needs in turn
		next := queue[0]
		queue = queue[1:]
		note(&state.Object{Meta: state.Meta{Dependencies: needs[next]}}, next)
		delete(needs, next)
	}
	return users
}

// maxNamed is how many things a deferral names as its cause.
const maxNamed = 20

// undecided reports whether a stored instance may or may not be wanted, because
// a count or for_each above it is not known.
func (p *planner) undecided(addr address.Instance) bool {
	return p.want != nil && p.want.open(addr)
}

// deferrals returns the deferrals of the plan in address order, each with its
// reason.
func (p *planner) deferrals() []*Deferral {
	p.holdBack()
	waiting := map[address.Resource]bool{}
	for _, d := range p.deferred {
		waiting[d.change.Addr.Resource] = true
	}
	names := map[*eval.Node][]string{}
	out := make([]*Deferral, 0, len(p.deferred))
	for _, d := range p.deferred {
		f := &Deferral{Change: d.change, Reason: d.reason, Because: d.users}
		unsettled := func(r address.Resource) bool { return p.changing[r] || waiting[r] }
		switch {
		case d.reason == InstanceCountUnknown:
			u := d.inst.Resource.Undecided()
			f.Subject, f.Argument = u.Subject, u.Argument
			f.Because = causes(names, u.Node, u.Node, unsettled)
		case d.reason == ProviderConfigUnknown && d.owner != nil:
			f.Because = causes(names, d.owner.Node, d.owner.Node, unsettled)
		case d.inst != nil:
			f.Because = causes(names, d.inst.Resource.Node(), d.inst.Node(), func(r address.Resource) bool { return waiting[r] && r != d.inst.Addr.Resource })
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *Deferral) int { return compareChanges(a.Change, b.Change) })
	return out
}

// causes names the wanted ones of the resources that a node reads. All nodes
// with the same key share one list.
func causes(memo map[*eval.Node][]string, key, n *eval.Node, wanted func(address.Resource) bool) []string {
	if names, ok := memo[key]; ok {
		return names
	}
	found := map[string]bool{}
	for _, r := range n.Resources() {
		if wanted(r) && len(found) < maxNamed {
			found[Keyless(r)] = true
		}
	}
	names := slices.Sorted(maps.Keys(found))
	memo[key] = names
	return names
}

// deferredByProvider returns the reason of a deferral by the provider.
func deferredByProvider(r providers.Deferred) DeferReason {
	switch r {
	case providers.NotDeferred:
		return ""
	case providers.DeferredConfigUnknown:
		return ResourceConfigUnknown
	case providers.DeferredProviderUnknown:
		return ProviderConfigUnknown
	}
	return AbsentPrerequisite
}
