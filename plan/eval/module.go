package eval

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// Module is one instance of a module: its declarations with the cells that
// hold their values.
type Module struct {
	Decl *modules.Module
	Addr address.Module

	ev        *Evaluator
	parent    *Module
	call      *modules.Call
	rep       repetition
	variables map[string]*cell[cty.Value]
	locals    map[string]*cell[cty.Value]
	outputs   map[string]*cell[cty.Value]
	calls     map[string]*Call
	resources map[modules.ResourceName]*Resource
	ordered   []*Resource    // as they stand in the files
	awaits    cell[struct{}] // depends_on of the call
}

func newModule(ev *Evaluator, decl *modules.Module, addr address.Module, parent *Module, call *modules.Call, rep repetition) *Module {
	m := unlisted(ev, decl, addr, parent, call, rep)
	ev.shared.Lock()
	ev.shared.modules[addr] = m
	ev.shared.Unlock()
	return m
}

// unlisted makes an instance that is not found by its address.
func unlisted(ev *Evaluator, decl *modules.Module, addr address.Module, parent *Module, call *modules.Call, rep repetition) *Module {
	m := &Module{
		Decl: decl, Addr: addr, ev: ev, parent: parent, call: call, rep: rep,
		variables: make(map[string]*cell[cty.Value], len(decl.Variables)),
		locals:    make(map[string]*cell[cty.Value], len(decl.Locals)),
		outputs:   make(map[string]*cell[cty.Value], len(decl.Outputs)),
		calls:     make(map[string]*Call, len(decl.Calls)),
		resources: make(map[modules.ResourceName]*Resource, len(decl.Resources)),
	}
	for name, v := range decl.Variables {
		m.variables[name] = namedValueCell(m, "var."+name, &v.Range)
	}
	for name, l := range decl.Locals {
		m.locals[name] = namedValueCell(m, "local."+name, &l.Range)
	}
	for name, o := range decl.Outputs {
		m.outputs[name] = namedValueCell(m, "output."+name, &o.Range)
	}
	for name, c := range decl.Calls {
		m.calls[name] = &Call{Decl: c, module: m}
		m.calls[name].keys.name = func() string { return m.qualify("module." + name) }
		m.calls[name].keys.rng = &c.Range
	}
	m.ordered = make([]*Resource, 0, len(decl.Resources))
	for name, r := range decl.Resources {
		res := newResource(m, r)
		m.resources[name] = res
		m.ordered = append(m.ordered, res)
	}
	slices.SortFunc(m.ordered, func(a, b *Resource) int {
		if c := strings.Compare(a.Decl.Range.Filename, b.Decl.Range.Filename); c != 0 {
			return c
		}
		return a.Decl.Range.Start.Byte - b.Decl.Range.Start.Byte
	})
	return m
}

func namedValueCell(m *Module, what string, rng *hcl.Range) *cell[cty.Value] {
	c := &cell[cty.Value]{}
	c.name = func() string { return m.qualify(what) }
	c.rng = rng
	return c
}

func (m *Module) qualify(what string) string {
	if m.Addr == "" {
		return what
	}
	return string(m.Addr) + "." + what
}

// Resources are the module's own resources and data sources, in the order of
// the files.
func (m *Module) Resources() []*Resource { return m.ordered }

// Resource returns the module's resource of a name, or nil.
func (m *Module) Resource(s lang.Resource) *Resource {
	return m.resources[modules.ResourceName{Mode: s.Mode, Type: s.Type, Name: s.Name}]
}

// Instance returns the configured instance at an address, nil if it does not
// exist.
func (ev *Evaluator) Instance(t *Task, addr address.Instance) *Instance {
	m := ev.moduleAt(t, addr.Module)
	if m == nil {
		return nil
	}
	r := m.resources[modules.ResourceName{Mode: addr.Mode, Type: addr.Type, Name: addr.Name}]
	if r == nil {
		return nil
	}
	return r.Instance(t, addr.Key)
}

func (ev *Evaluator) moduleAt(t *Task, addr address.Module) *Module {
	if m := ev.knownModule(addr); m != nil {
		return m
	}
	m := ev.root
	for _, step := range addr.Steps() {
		call := m.calls[step.Name]
		if call == nil {
			return nil
		}
		call.Instances(t)
		if m = ev.knownModule(m.Addr.Child(step.Name, step.Key)); m == nil {
			return nil
		}
	}
	return m
}

func (ev *Evaluator) knownModule(addr address.Module) *Module {
	ev.shared.Lock()
	defer ev.shared.Unlock()
	return ev.shared.modules[addr]
}

// Declaration returns the declaration of a resource wherever it is in the tree
// of modules, whatever the instance keys on the way; nil if there is none.
func (ev *Evaluator) Declaration(r address.Resource) *modules.Resource {
	decl := ev.moduleDeclaration(r.Module)
	if decl == nil {
		return nil
	}
	return decl.Resources[modules.ResourceName{Mode: r.Mode, Type: r.Type, Name: r.Name}]
}

// DeclaredModule reports whether the configuration has the module, whatever
// the keys on the way to it.
func (ev *Evaluator) DeclaredModule(path address.Module) bool {
	return ev.moduleDeclaration(path) != nil
}

func (ev *Evaluator) moduleDeclaration(path address.Module) *modules.Module {
	decl := ev.opts.Root
	for _, step := range path.Steps() {
		call := decl.Calls[step.Name]
		if call == nil || call.Module == nil {
			return nil
		}
		decl = call.Module
	}
	return decl
}

// Calls are the module's calls in name order.
func (m *Module) Calls() []*Call {
	calls := make([]*Call, 0, len(m.calls))
	for _, c := range m.calls {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b *Call) int { return strings.Compare(a.Decl.Name, b.Decl.Name) })
	return calls
}

// Walk calls f for all instances of the module and of called modules, as far as
// their number is known.
func (m *Module) Walk(t *Task, f func(t *Task, m *Module)) {
	m.WalkInto(t, func(address.Module) bool { return true }, f)
}

// WalkInto is Walk that leaves out modules which into turns down. into is
// called for a call first, with any key, before its count or for_each is
// evaluated.
func (m *Module) WalkInto(t *Task, into func(address.Module) bool, f func(t *Task, m *Module)) {
	f(t, m)
	calls := m.Calls()
	t.ForEach(len(calls), func(t *Task, i int) {
		if !into(m.Addr.Child(calls[i].Decl.Name, address.AnyKey())) {
			return
		}
		instances, ok := calls[i].Instances(t)
		if !ok {
			return
		}
		t.ForEach(len(instances), func(t *Task, j int) {
			if into(instances[j].Addr) {
				instances[j].WalkInto(t, into, f)
			}
		})
	})
}

// Call is a module call in one instance of the caller.
type Call struct {
	Decl   *modules.Call
	module *Module
	keys   cell[[]*Module]
	form   cell[repetitionForm]
}

// Instances returns the instances of the called module, in key order.
func (c *Call) Instances(t *Task) ([]*Module, bool) {
	return c.keys.get(t, func(t *Task) ([]*Module, bool) {
		form, reps, ok := t.instances(c.module, c.Decl.Count, c.Decl.ForEach, "module")
		if !ok {
			return nil, false
		}
		c.form.value = form
		instances := make([]*Module, len(reps))
		for i, rep := range reps {
			addr := c.module.Addr.Child(c.Decl.Name, rep.key)
			instances[i] = newModule(t.ev, c.Decl.Module, addr, c.module, c.Decl, rep)
		}
		if len(instances) == 0 {
			c.keys.node.empty = c.module.Addr.Child(c.Decl.Name, address.Key{})
		}
		return instances, true
	})
}

// value returns the value of module.NAME. only, when not nil, names the needed
// outputs of a call without count and for_each.
func (c *Call) value(t *Task, only map[string]bool) (cty.Value, bool) {
	instances, ok := c.Instances(t)
	if !ok {
		return cty.DynamicVal, false
	}
	form := c.form.value
	if form == undecided {
		// Touch everything, so that mistakes inside are found.
		for _, m := range instances {
			m.object(t, nil)
		}
		if t.ev.opts.Validating {
			return c.shape(), true
		}
		return open(instances[0].rep), true
	}
	if form != once {
		only = nil
	}
	values := make([]cty.Value, len(instances))
	all := true
	t.ForEach(len(instances), func(t *Task, i int) {
		v, ok := instances[i].object(t, only)
		values[i] = v
		if !ok {
			t.ev.mu.Lock()
			all = false
			t.ev.mu.Unlock()
		}
	})
	if !all {
		return cty.DynamicVal, false
	}
	return form.collect(values, func(i int) address.Key { return instances[i].rep.key }), true
}

// shape is the call's value while validating: any number of modules with these outputs.
func (c *Call) shape() cty.Value {
	outputs := make(map[string]cty.Type, len(c.Decl.Module.Outputs))
	for name := range c.Decl.Module.Outputs {
		outputs[name] = cty.DynamicPseudoType
	}
	if c.Decl.Count != nil {
		return cty.UnknownVal(cty.List(cty.Object(outputs)))
	}
	return cty.UnknownVal(cty.Map(cty.Object(outputs)))
}

func (m *Module) object(t *Task, only map[string]bool) (cty.Value, bool) {
	attrs := make(map[string]cty.Value, len(m.outputs))
	ok := true
	for name := range m.outputs {
		if only != nil && !only[name] {
			continue
		}
		v, fine := m.Output(t, name)
		ok = ok && fine
		if t.ev.opts.Validating {
			_, marks := v.Unmark()
			v = cty.DynamicVal.WithMarks(marks) // as with variables, one value proves nothing
		}
		attrs[name] = v
	}
	return cty.ObjectVal(attrs), ok
}

// await makes what the call's depends_on names, and what its count or for_each
// read, dependencies of the cell that the task computes.
func (m *Module) await(t *Task) bool {
	if m.call == nil {
		return true
	}
	_, ok := m.awaits.get(t, func(t *Task) (struct{}, bool) {
		ok := m.parent.await(t)
		m.parent.calls[m.call.Name].Instances(t) // what the call's count read, everything in it needs
		return struct{}{}, t.touch(m.parent, m.call.DependsOn) && ok
	})
	return ok
}

// ProviderBlocks lists the provider blocks that the module declares.
func (m *Module) ProviderBlocks() []modules.ProviderRef {
	refs := make([]modules.ProviderRef, 0, len(m.Decl.Providers))
	for _, p := range m.Decl.Providers {
		refs = append(refs, modules.ProviderRef{Name: p.Name, Alias: p.Alias, Range: p.Range})
	}
	return refs
}
