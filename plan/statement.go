package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
)

// statement is a moved block, as seen from the root module. It applies to every
// instance of the module that contains it.
type statement struct {
	block    *modules.Moved
	from, to pattern
	// whole says that all instances of a resource or module call move and keep
	// their keys: neither address has a key at its end.
	whole bool
}

// pattern is an address in any instance of the module at path.
type pattern struct {
	path   []string
	target address.Target
}

func newStatement(path []string, block *modules.Moved) *statement {
	s := &statement{block: block, from: pattern{path, block.From}, to: pattern{path, block.To}}
	s.whole = lastKey(block.From).IsZero() && lastKey(block.To).IsZero()
	return s
}

func lastKey(t address.Target) address.Key {
	if t.Resource != nil {
		return t.Key
	}
	return t.Steps[len(t.Steps)-1].Key
}

// keyless names what the pattern is about, instance keys left out.
func (p pattern) keyless() string {
	t := p.target.Keyless()
	if len(p.path) == 0 {
		return t.String()
	}
	return modulePath(p.path) + "." + t.String()
}

func (p pattern) String() string {
	if len(p.path) == 0 {
		return p.target.String()
	}
	return modulePath(p.path) + "." + p.target.String()
}

func (p pattern) pathName() string { return strings.Join(p.path, ".") }

func modulePath(names []string) string { return "module." + strings.Join(names, ".module.") }

// targetIn is the address in one instance of the module.
func (p pattern) targetIn(m address.Module) address.Target {
	out := address.Target{Steps: slices.Concat(m.Steps(), p.target.Steps), Key: p.target.Key}
	if p.target.Resource != nil {
		r := *p.target.Resource
		r.Module = moduleAt(out.Steps)
		out.Resource = &r
	}
	return out
}

// declaredAt says where the configuration declares it, whatever its instances;
// nil where it doesn't.
func (p pattern) declaredAt(root *modules.Module) *hcl.Range {
	m := root
	names := slices.Clone(p.path)
	for _, step := range p.target.Steps {
		names = append(names, step.Name)
	}
	r := p.target.Resource
	if r == nil {
		names = names[:len(names)-1]
	}
	for _, name := range names {
		call := m.Calls[name]
		if call == nil || call.Module == nil {
			return nil
		}
		m = call.Module
	}
	if r == nil {
		steps := p.target.Steps
		if call := m.Calls[steps[len(steps)-1].Name]; call != nil {
			return &call.Range
		}
		return nil
	}
	if decl := m.Resources[modules.ResourceName{Mode: r.Mode, Type: r.Type, Name: r.Name}]; decl != nil {
		return &decl.Range
	}
	return nil
}

// place is an address taken apart.
type place struct {
	steps    []address.Step
	resource address.Resource
	key      address.Key
}

func placeOf(a address.Instance) place {
	return place{a.Module.Steps(), a.Resource, a.Key}
}

func (p place) instance() address.Instance {
	r := p.resource
	r.Module = moduleAt(p.steps)
	return r.Instance(p.key)
}

func moduleAt(steps []address.Step) address.Module {
	var m address.Module
	for _, s := range steps {
		m = m.Child(s.Name, s.Key)
	}
	return m
}

// lookups returns the names without keys that index the blocks about an
// address, the most specific first: the resource, then the modules around it
// from the inside out.
func lookups(steps []address.Step, r address.Resource) []string {
	names := make([]string, 0, len(steps)+1)
	var m address.Module
	for _, s := range steps {
		m = m.Child(s.Name, address.Key{})
		names = append(names, string(m))
	}
	r.Module = m
	names = append(names, r.String())
	slices.Reverse(names)
	return names
}

// matches reports whether the block is about the address.
func (s *statement) matches(at place) bool {
	path, from := s.from.path, s.from.target
	if len(at.steps) < len(path)+len(from.Steps) {
		return false
	}
	for i, name := range path {
		if at.steps[i].Name != name {
			return false
		}
	}
	for i, step := range from.Steps {
		last := from.Resource == nil && i == len(from.Steps)-1
		is := at.steps[len(path)+i]
		if is.Name != step.Name || is.Key != step.Key && !(last && s.whole) {
			return false
		}
	}
	if from.Resource == nil {
		return true
	}
	r := from.Resource
	return len(at.steps) == len(path)+len(from.Steps) && at.resource.Mode == r.Mode && at.resource.Type == r.Type &&
		at.resource.Name == r.Name && (s.whole || at.key == from.Key)
}

// apply is where the address, which matches, leads.
func (s *statement) apply(at place) place {
	path, from, to := s.from.path, s.from.target, s.to.target
	rest := at.steps[len(path)+len(from.Steps):]
	next := place{steps: slices.Concat(at.steps[:len(path)], to.Steps, rest), resource: at.resource, key: at.key}
	if to.Resource == nil {
		if s.whole {
			next.steps[len(path)+len(to.Steps)-1].Key = at.steps[len(path)+len(from.Steps)-1].Key
		}
		return next
	}
	next.resource.Type, next.resource.Name = to.Resource.Type, to.Resource.Name
	if !s.whole {
		next.key = to.Key
	}
	return next
}

// ambiguous reports blocks of which two say where something went, or two
// where it came from.
func ambiguous(list []*statement) hcl.Diagnostics {
	var diags hcl.Diagnostics
	from, to := map[string]*statement{}, map[string]*statement{}
	clash := func(s, first *statement, what string) {
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Ambiguous moves", Subject: s.block.Range.Ptr(),
			Detail: fmt.Sprintf("This block says that %s has moved to %s, but the one at %s says that %s has moved to %s. %s. Remove one of the two.",
				s.from, s.to, first.block.Range, first.from, first.to, what),
		})
	}
	for _, s := range list {
		if first := from[s.from.String()]; first != nil {
			if first.to.String() != s.to.String() {
				clash(s, first, "An object can move to one address only")
			}
			continue
		}
		from[s.from.String()] = s
		if first := to[s.to.String()]; first != nil {
			clash(s, first, "Only one object can have moved to an address")
			continue
		}
		to[s.to.String()] = s
	}
	return diags
}

// cycles reports blocks that lead back to where they came from.
func (r *relocation) cycles() hcl.Diagnostics {
	const fresh, active, finished = 0, 1, 2
	marks := make(map[*statement]int, len(r.statements))
	for _, start := range r.statements {
		var line []*statement
		s := start
		for s != nil && marks[s] == fresh {
			marks[s] = active
			line = append(line, s)
			s = r.next(s.to.example())
		}
		if s != nil && marks[s] == active {
			var names []string
			for _, in := range line[slices.Index(line, s):] {
				names = append(names, fmt.Sprintf("  - %s: %s → %s", in.block.Range, in.from, in.to))
			}
			return hcl.Diagnostics{{
				Severity: hcl.DiagError, Summary: "Moves lead in a circle", Subject: s.block.Range.Ptr(),
				Detail: fmt.Sprintf("These blocks lead back to where they begin:\n%s\n\nRemove the block that no longer "+
					"applies.", someOf(names, "\n")),
			}}
		}
		for _, in := range line {
			marks[in] = finished
		}
	}
	return nil
}

// example is an address that the pattern stands for.
func (p pattern) example() place {
	var at place
	for _, name := range p.path {
		at.steps = append(at.steps, address.Step{Name: name})
	}
	at.steps = append(at.steps, p.target.Steps...)
	if p.target.Resource != nil {
		at.resource, at.key = *p.target.Resource, p.target.Key
	}
	return at
}
