package plan

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/eval"
)

// Exclusion leaves out what -exclude names, and what depends on it: instances
// whose configuration holds a value that came from an excluded one (it carries
// the mark lang.Excluded), whose count, for_each or provider does, or whose
// depends_on names it. They stay as they are, and so does what they use.

// excludes are the parsed addresses of a request.
func excludes(r Request) ([]address.Target, hcl.Diagnostics) {
	var out []address.Target
	var diags hcl.Diagnostics
	if len(r.Excludes) > 0 && len(r.Targets) > 0 {
		return nil, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Targets and exclusions together",
			Detail: "Say either what the plan covers (-target) or what it leaves out (-exclude).",
		}}
	}
	for _, text := range r.Excludes {
		target, err := address.ParseTarget(text)
		if err != nil {
			diags = append(diags, invalidAddress("-exclude", text, err))
			continue
		}
		out = append(out, target)
	}
	return out, diags
}

// partial reports whether the plan covers only a part of the configuration.
func (p *planner) partial() bool { return len(p.targets)+len(p.excludes) > 0 }

// exclusionNames reports whether an exclusion names the instance.
func (p *planner) exclusionNames(addr address.Instance) bool {
	return slices.ContainsFunc(p.excludes, func(t address.Target) bool { return t.Covers(addr) })
}

// excluded reports whether an instance is left out; its configuration was
// evaluated, and is marked where that rests on what is left out.
func (p *planner) excluded(inst *eval.Instance, config cty.Value, owner *eval.Provider) bool {
	if len(p.excludes) == 0 {
		return false
	}
	return owner.Excluded || lang.HasMark(config, lang.Excluded) || p.demandsExcluded(inst.Resource)
}

// demandsExcluded reports whether depends_on names something left out.
func (p *planner) demandsExcluded(r *eval.Resource) bool {
	node := r.Demanded()
	if node == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(node.Resources(), func(r address.Resource) bool { return p.left[r] })
}

// leave leaves an instance as it is, and returns what is stored of it, marked.
func (p *planner) leave(t *eval.Task, inst *eval.Instance) (cty.Value, bool) {
	v, ok := p.stored(t, inst)
	p.mu.Lock()
	p.left[inst.Addr.Resource] = true
	p.leaving[inst.Addr] = true
	p.mu.Unlock()
	return v.Mark(lang.Excluded), ok
}

// spare returns the stored instances that must not be destroyed, because they
// are excluded or needed by an excluded one.
func (p *planner) spare() map[address.Instance]bool {
	if len(p.excludes) == 0 {
		return nil
	}
	byName := map[string][]address.Instance{}
	users, needs := map[string][]string{}, map[string][]string{}
	spared := map[address.Instance]bool{}
	var queue []string
	for _, addr := range p.prior.Instances() {
		name := Keyless(addr.Resource)
		byName[name] = append(byName[name], addr)
		if o := p.prior.Current(addr); o != nil {
			needs[name] = append(needs[name], o.Dependencies...)
			for _, dep := range o.Dependencies {
				if p.want == nil || !p.want.instances[addr] { // for wanted objects the configuration has the dependencies
					users[dep] = append(users[dep], name)
				}
			}
		}
		if p.exclusionNames(addr) || p.leaving[addr] || p.undecided(addr) {
			spared[addr] = true
			queue = append(queue, name)
		}
	}
	starts := slices.Clone(queue)
	found := map[string]bool{}
	if p.req.Mode != Destroy { // what depends on something excluded is excluded too
		queue = reach(queue, users, found)
	}
	reach(append(starts, queue...), needs, found) // and all of them keep what they use
	for name := range found {
		for _, addr := range byName[name] {
			spared[addr] = true
		}
	}
	return spared
}

// reach follows edges from the given names, adds the reached names to found,
// and returns found.
func reach(from []string, edges map[string][]string, found map[string]bool) []string {
	var all []string
	queue := slices.Clone(from)
	seen := map[string]bool{}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		for _, to := range edges[next] {
			if !seen[to] {
				found[to] = true
				all = append(all, to)
				queue = append(queue, to)
			}
		}
	}
	return all
}
