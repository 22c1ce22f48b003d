package eval

import (
	"slices"
	"strings"
	"sync"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// checked names one object that has conditions: an instance, an output, a
// variable or a check block of one module instance.
type checked struct {
	kind           state.CheckKind
	config, object string // addresses, without and with instance keys
}

// tally collects what became of conditions.
type tally struct {
	mu   sync.Mutex
	seen map[checked]*state.CheckedObject
}

// note adds the outcome of one condition to the outcome of its object; a
// message says which condition is false.
func (ev *Evaluator) note(c checked, status state.CheckStatus, messages ...string) {
	if ev.opts.Validating {
		return
	}
	ev.tally.mu.Lock()
	defer ev.tally.mu.Unlock()
	if ev.tally.seen == nil {
		ev.tally.seen = map[checked]*state.CheckedObject{}
	}
	o := ev.tally.seen[c]
	if o == nil {
		o = &state.CheckedObject{Address: c.object, Status: state.CheckPassed}
		ev.tally.seen[c] = o
	}
	o.Status = o.Status.And(status)
	o.Messages = append(o.Messages, messages...)
}

// checked is the name of something in the module that has conditions.
func (m *Module) checked(kind state.CheckKind, name string) checked {
	prefix := map[state.CheckKind]string{state.CheckedOutput: "output.", state.CheckedVariable: "var.", state.CheckedBlock: "check."}[kind]
	return checked{kind: kind, config: configured(m.Decl, prefix+name), object: m.qualify(prefix + name)}
}

func (i *Instance) checked() checked {
	r := i.Resource
	own := address.Resource{Mode: r.Addr.Mode, Type: r.Addr.Type, Name: r.Addr.Name}
	return checked{kind: state.CheckedResource, config: configured(r.module.Decl, own.String()), object: i.Addr.String()}
}

// configured is an address without instance keys.
func configured(m *modules.Module, name string) string {
	var b strings.Builder
	for _, step := range m.Path {
		b.WriteString("module." + step + ".")
	}
	b.WriteString(name)
	return b.String()
}

// CheckResults returns the results of all conditions of the configuration in
// this phase. Before it, Checks and everything else have been evaluated; whole
// reports that nothing was left out, so that a declaration without objects has
// none. Objects that the phase did not look at stay as they are in base.
func (ev *Evaluator) CheckResults(base []state.CheckResult, whole bool) []state.CheckResult {
	results := map[string]*state.CheckResult{}
	at := map[string]map[string]int{} // declaration → object → place
	put := func(kind state.CheckKind, config string) *state.CheckResult {
		r := results[config]
		if r == nil {
			r = &state.CheckResult{Kind: kind, Config: config}
			results[config], at[config] = r, map[string]int{}
		}
		return r
	}
	for _, b := range base {
		r := put(b.Kind, b.Config)
		r.Status = b.Status
		for _, o := range b.Objects {
			at[b.Config][o.Address] = len(r.Objects)
			r.Objects = append(r.Objects, o)
		}
	}
	if base == nil {
		conditional(ev.opts.Root, func(kind state.CheckKind, config string) {
			put(kind, config).Status = state.CheckUnknown
			if whole {
				results[config].Status = state.CheckPassed
			}
		})
	}
	ev.tally.mu.Lock()
	defer ev.tally.mu.Unlock()
	for c, o := range ev.tally.seen {
		r := put(c.kind, c.config)
		i, ok := at[c.config][c.object]
		if !ok {
			i = len(r.Objects)
			at[c.config][c.object] = i
			r.Objects = append(r.Objects, state.CheckedObject{})
		}
		r.Objects[i] = *o
	}
	list := make([]state.CheckResult, 0, len(results))
	for _, r := range results {
		if len(r.Objects) > 0 {
			r.Status = state.CheckPassed
			for _, o := range r.Objects {
				r.Status = r.Status.And(o.Status)
			}
			slices.SortFunc(r.Objects, func(a, b state.CheckedObject) int { return strings.Compare(a.Address, b.Address) })
		}
		list = append(list, *r)
	}
	state.SortChecks(list)
	return list
}

// conditional calls f for everything in the tree of modules that has
// conditions.
func conditional(m *modules.Module, f func(kind state.CheckKind, config string)) {
	for name, v := range m.Variables {
		if len(v.Validations) > 0 {
			f(state.CheckedVariable, configured(m, "var."+name))
		}
	}
	for name, o := range m.Outputs {
		if len(o.Preconditions) > 0 {
			f(state.CheckedOutput, configured(m, "output."+name))
		}
	}
	for name := range m.Checks {
		f(state.CheckedBlock, configured(m, "check."+name))
	}
	for name, r := range m.Resources {
		if len(r.Lifecycle.Preconditions)+len(r.Lifecycle.Postconditions) > 0 {
			own := address.Resource{Mode: name.Mode, Type: name.Type, Name: name.Name}
			f(state.CheckedResource, configured(m, own.String()))
		}
	}
	for _, c := range m.Calls {
		if c.Module != nil {
			conditional(c.Module, f)
		}
	}
}
