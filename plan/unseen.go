package plan

import (
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan/eval"
)

// seen is what a plan has evaluated of the configuration: the declarations that
// have instances. What is wrong in the others (their count is 0, or not known
// yet) shows only to validation.
type seen struct {
	mu        sync.Mutex
	modules   map[*modules.Module]bool
	resources map[*modules.Resource]bool
}

// add notes a module instance, and those of its resources that have instances.
func (s *seen) add(m *eval.Module, has func(*eval.Resource) bool) {
	if m.Undecided() {
		return
	}
	var found []*modules.Resource
	for _, r := range m.Resources() {
		if r.Decl.Check != "" || has(r) {
			found = append(found, r.Decl)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modules[m.Decl] = true
	for _, decl := range found {
		s.resources[decl] = true
	}
}

// all reports whether nothing is left in a module and those that it calls.
func (s *seen) all(m *modules.Module) bool {
	if !s.modules[m] {
		return false
	}
	for _, r := range m.Resources {
		if !s.resources[r] {
			return false
		}
	}
	for _, call := range m.Calls {
		if call.Module != nil && !s.all(call.Module) {
			return false
		}
	}
	return true
}

// validateUnseen validates the declarations of which the plan has no instances, as
// Terraform does with all of them before it plans. What was told already is not
// told again, and a cycle that leads through what has no instances is none.
func (p *planner) validateUnseen(told hcl.Diagnostics) hcl.Diagnostics {
	if p.partial() || p.req.Mode == Destroy || p.stopped() {
		return nil
	}
	s := &seen{modules: map[*modules.Module]bool{}, resources: map[*modules.Resource]bool{}}
	p.ev.Do(func(t *eval.Task) {
		p.ev.Root().Walk(t, func(t *eval.Task, m *eval.Module) {
			s.add(m, func(r *eval.Resource) bool {
				instances, ok := r.Instances(t)
				return !ok || len(instances) > 0 && !instances[0].Addr.Key.IsAny()
			})
		})
	})
	if s.all(p.req.Root) {
		return nil
	}
	ev := validating(p.ctx, &p.req)
	defer ev.Close()
	ev.Do(func(t *eval.Task) {
		ev.Root().Walk(t, func(t *eval.Task, m *eval.Module) {
			if !s.modules[m.Decl] {
				validateValues(t, m)
			}
			resources := m.Resources()
			t.Each(len(resources), func(t *eval.Task, i int) {
				if !s.resources[resources[i].Decl] {
					resources[i].Value(t)
				}
			})
		})
	})
	at := map[hcl.Range]bool{}
	for _, d := range told {
		if d.Severity == hcl.DiagError && d.Subject != nil {
			at[*d.Subject] = true
		}
	}
	return slices.DeleteFunc(ev.Diagnostics(), func(d *hcl.Diagnostic) bool {
		return d.Severity != hcl.DiagError || d.Summary == eval.Cycle || d.Subject != nil && at[*d.Subject]
	})
}
