package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
)

// Move is a change of an object's address in the state.
type Move struct {
	From, To address.Instance
}

// relocate applies the moved blocks, and what count implies, to the state
// that the plan starts from. It costs as much as the state has resources and
// the configuration has blocks.
func (p *planner) relocate() hcl.Diagnostics {
	r := newRelocation(p.req.Root, p.prior)
	if r.diags.HasErrors() {
		return r.diags
	}
	r.follow()
	if r.diags.HasErrors() {
		return r.diags
	}
	r.imply()
	if diags := p.coversMoves(r.moves); diags.HasErrors() {
		return diags
	}
	p.moves, p.statements = r.moves, r.statements
	if len(r.moves) > 0 {
		p.from = make(map[address.Instance]address.Instance, len(r.moves))
		for _, m := range r.moves {
			p.from[m.To] = m.From
		}
		p.prior = p.prior.WithChanges(Relocated(p.prior, r.moves), nil)
	}
	return r.warnings()
}

// coversMoves reports moves of objects that -target leaves out: they would
// appear under two addresses.
func (p *planner) coversMoves(moves []Move) hcl.Diagnostics {
	var missing []string
	for _, m := range moves {
		if !p.contains(m.To) {
			missing = append(missing, fmt.Sprintf("  -target='%s'", m.To))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Moved objects excluded by targeting",
		Detail: fmt.Sprintf("Objects in the state have moved to new addresses in the configuration, and the plan has to include them. Plan without -target, or add:\n\n%s", someOf(missing, "\n")),
	}}
}

// someOf joins the first of many lines.
func someOf(lines []string, sep string) string {
	const most = 20
	if len(lines) > most {
		lines = append(slices.Clone(lines[:most]), fmt.Sprintf("… and %d more", len(lines)-most))
	}
	return strings.Join(lines, sep)
}

// relocation finds the present addresses of the state's objects.
type relocation struct {
	state      *state.State
	root       *modules.Module
	statements []*statement
	byFrom     map[string][]*statement // by address without keys; whole ones last
	named      map[string]bool         // addresses without keys that blocks lead from or to
	moves      []Move
	blocked    []Move
	taken      map[address.Instance]bool
	touched    map[address.Instance]bool // has moved, or should have
	diags      hcl.Diagnostics
}

func newRelocation(root *modules.Module, st *state.State) *relocation {
	r := &relocation{
		state: st, root: root, byFrom: map[string][]*statement{}, named: map[string]bool{},
		taken: map[address.Instance]bool{}, touched: map[address.Instance]bool{},
	}
	if root == nil {
		return r
	}
	r.collect(root)
	for _, list := range r.byFrom {
		slices.SortStableFunc(list, func(a, b *statement) int {
			if a.whole == b.whole {
				return 0
			}
			if a.whole {
				return 1
			}
			return -1
		})
	}
	r.diags = append(ambiguous(r.statements), r.cycles()...)
	return r
}

func (r *relocation) collect(m *modules.Module) {
	for _, block := range m.Moved {
		s := newStatement(m.Path, block)
		r.statements = append(r.statements, s)
		r.byFrom[s.from.keyless()] = append(r.byFrom[s.from.keyless()], s)
		r.named[s.from.keyless()], r.named[s.to.keyless()] = true, true
	}
	names := make([]string, 0, len(m.Calls))
	for name := range m.Calls {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if child := m.Calls[name].Module; child != nil {
			r.collect(child)
		}
	}
}

// follow moves every object as far as the blocks lead.
func (r *relocation) follow() {
	if len(r.statements) == 0 {
		return
	}
	for _, res := range r.state.Resources() {
		if res.Mode == address.Data || !r.concerns(res) {
			continue
		}
		for _, key := range r.state.Keys(res) {
			r.followOne(res.Instance(key))
		}
	}
}

// concerns reports whether a block may be about some instance of a resource.
func (r *relocation) concerns(res address.Resource) bool {
	steps := res.Module.Steps()
	for _, name := range lookups(steps, res) {
		if len(r.byFrom[name]) > 0 {
			return true
		}
	}
	return false
}

func (r *relocation) followOne(from address.Instance) {
	at := placeOf(from)
	for range len(r.statements) + 1 {
		s := r.next(at)
		if s == nil {
			break
		}
		next := s.apply(at)
		to := next.instance()
		if !isVacant(r.state, to) {
			r.blocked = append(r.blocked, Move{from, to})
			break
		}
		if to.Type != from.Type {
			r.diags = append(r.diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Resource type cannot change by moving", Subject: s.block.Range.Ptr(),
				Detail: fmt.Sprintf("%s cannot become %s: the provider of %s does not take over objects of other types. Remove the block, and import the object under its new address.", from, to, to.Type),
			})
			return
		}
		at = next
	}
	r.settle(from, at.instance())
}

func (r *relocation) settle(from, to address.Instance) {
	r.touched[from] = true
	if to == from {
		return
	}
	if r.taken[to] {
		r.blocked = append(r.blocked, Move{from, to})
		return
	}
	r.taken[to] = true
	r.moves = append(r.moves, Move{from, to})
}

// isVacant reports whether the state has nothing at an address.
func isVacant(st *state.State, a address.Instance) bool {
	return st.Current(a) == nil && len(st.Deposed(a)) == 0
}

// next is the most particular block about an address.
func (r *relocation) next(at place) *statement {
	for _, name := range lookups(at.steps, at.resource) {
		for _, s := range r.byFrom[name] {
			if s.matches(at) {
				return s
			}
		}
	}
	return nil
}

// imply moves the only instance of a resource that has got a count to [0], and
// the other way round. Where blocks say how a resource has moved, nothing is
// implied.
func (r *relocation) imply() {
	if r.root == nil {
		return
	}
	decls := map[address.Module]*modules.Module{}
	for _, res := range r.state.Resources() {
		m, ok := decls[res.Module]
		if !ok {
			m = moduleOf(r.root, res.Module)
			decls[res.Module] = m
		}
		if m == nil || res.Mode == address.Data {
			continue
		}
		decl := m.Resources[modules.ResourceName{Mode: res.Mode, Type: res.Type, Name: res.Name}]
		if decl == nil || decl.ForEach != nil || r.named[Keyless(res)] {
			continue
		}
		from, to := res.Instance(address.IntKey(0)), res.Instance(address.Key{})
		if decl.Count != nil {
			from, to = to, from
		}
		if isVacant(r.state, from) || !isVacant(r.state, to) || r.touched[from] || r.taken[to] {
			continue
		}
		r.settle(from, to)
	}
}

func moduleOf(root *modules.Module, addr address.Module) *modules.Module {
	m := root
	for _, step := range addr.Steps() {
		call := m.Calls[step.Name]
		if call == nil || call.Module == nil {
			return nil
		}
		m = call.Module
	}
	return m
}

// warnings reports objects that could not move.
func (r *relocation) warnings() hcl.Diagnostics {
	if len(r.blocked) == 0 {
		return nil
	}
	lines := make([]string, len(r.blocked))
	for i, m := range r.blocked {
		lines[i] = fmt.Sprintf("  - %s could not move to %s", m.From, m.To)
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagWarning, Summary: "Objects could not move",
		Detail: fmt.Sprintf("The configuration moves these objects, but the new addresses already have "+
			"others:\n%s\n\nThe plan uses their present addresses, which may mean to destroy them. If that is not wanted, put them right with \"stoke state mv\" and plan again.", someOf(lines, "\n")),
	}}
}

// reportStayed reports blocks whose old address the configuration still declares.
func (p *planner) reportStayed(t *eval.Task) {
	if len(p.statements) == 0 {
		return
	}
	var instances map[string][]*eval.Module // by path without keys
	for _, s := range p.statements {
		at := s.from.declaredAt(p.req.Root)
		if at == nil {
			continue
		}
		if !s.whole {
			if instances == nil {
				instances = p.moduleInstances(t)
			}
			if !slices.ContainsFunc(instances[s.from.pathName()], func(m *eval.Module) bool {
				return p.wants(t,
					s.from.targetIn(m.Addr))
			}) {
				continue
			}
		}
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Moved object still declared", Subject: s.block.Range.Ptr(),
			Detail: fmt.Sprintf("The block says that %s has moved to %s, but it is still declared at %s. Declare it as %s there.", s.block.From, s.block.To, *at, s.block.To),
		})
	}
}

// wants reports whether the configuration has a module or resource instance.
func (p *planner) wants(t *eval.Task, at address.Target) bool {
	if at.Resource != nil {
		return p.ev.Instance(t, at.Resource.Instance(at.Key)) != nil
	}
	return p.ev.HasModule(t, address.Module(at.String()))
}

func (p *planner) moduleInstances(t *eval.Task) map[string][]*eval.Module {
	found := map[string][]*eval.Module{}
	p.ev.Root().Walk(t, func(_ *eval.Task, m *eval.Module) {
		p.mu.Lock()
		defer p.mu.Unlock()
		found[strings.Join(m.Decl.Path, ".")] = append(found[strings.Join(m.Decl.Path, ".")], m)
	})
	return found
}

// onlyMoved returns the changes of only the address, for plans that only read.
func (p *planner) onlyMoved() []*Change {
	drifted := make(map[address.Instance]bool, len(p.drift))
	for _, c := range p.drift {
		drifted[c.Addr] = true
	}
	var out []*Change
	for _, m := range p.moves {
		if it := p.items[m.To]; it != nil && !drifted[m.To] && it.change.Action == NoOp {
			out = append(out, it.change)
		}
	}
	return out
}
