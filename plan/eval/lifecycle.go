package eval

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// Lifecycle is what the instance's lifecycle block says, with the values of
// arguments that are expressions. Every phase gets the same answer: what they
// rest on has to be known while planning. An argument that is not known is
// treated as left out where it is deferred, while validating, and for an
// instance that represents any number of instances.
func (i *Instance) Lifecycle(t *Task) (modules.Lifecycle, bool) {
	l := i.Resource.Decl.Lifecycle
	if l.Dynamic == nil {
		return l, true
	}
	d := dynamics{
		task: t, scope: scope{module: i.Resource.module, rep: i.rep}, subject: i.Addr.String,
		lenient: t.ev.opts.Validating || i.open(),
	}
	ok := true
	decide := func(expr hcl.Expression, name string, into *bool) {
		if expr != nil {
			yes, fine := d.decide(expr, name)
			*into, ok = yes, ok && fine
		}
	}
	decide(l.Dynamic.CreateBeforeDestroy, "create_before_destroy", &l.CreateBeforeDestroy)
	decide(l.Dynamic.PreventDestroy, "prevent_destroy", &l.PreventDestroy)
	if l.Dynamic.IgnoreChanges != nil {
		fine := d.ignored(l.Dynamic.IgnoreChanges, &l)
		ok = ok && fine
	}
	ty, fine := i.Resource.Type(t)
	return l, ok && fine && t.ignorable(&l, ty)
}

// Protected reports whether prevent_destroy keeps a stored object from being
// destroyed, also one that is no longer in the configuration; the range is the
// range of the resource's declaration.
func (ev *Evaluator) Protected(t *Task, addr address.Instance) (protected bool, at hcl.Range, ok bool) {
	decl := ev.Declaration(addr.Resource)
	if decl == nil {
		return false, hcl.Range{}, true
	}
	l := decl.Lifecycle
	if l.Dynamic == nil || l.Dynamic.PreventDestroy == nil {
		return l.PreventDestroy, decl.Range, true
	}
	m := ev.moduleOrGhost(t, addr.Module)
	if m == nil {
		return false, decl.Range, false
	}
	r := m.resources[modules.ResourceName{Mode: addr.Mode, Type: addr.Type, Name: addr.Name}]
	rep := orphanRepetition(addr.Key)
	if inst := r.Instance(t, addr.Key); inst != nil {
		rep = inst.rep
	} else if r.Repeated() == "" {
		rep = repetition{}
	}
	d := dynamics{task: t, scope: scope{module: m, rep: rep}, subject: addr.String}
	protected, ok = d.decide(l.Dynamic.PreventDestroy, "prevent_destroy")
	return protected, decl.Range, ok
}

// moduleOrGhost returns the module instance at an address, or a made-up one if
// it is no longer in the configuration; nil if the configuration declares none
// such.
func (ev *Evaluator) moduleOrGhost(t *Task, addr address.Module) *Module {
	m, ghosts := ev.root, false
	for _, step := range addr.Steps() {
		call := m.calls[step.Name]
		if call == nil || call.Decl.Module == nil {
			return nil
		}
		if !ghosts {
			call.Instances(t)
			if real := ev.knownModule(m.Addr.Child(step.Name, step.Key)); real != nil {
				m = real
				continue
			}
		}
		m, ghosts = ev.ghost(call, step.Key), true
	}
	return m
}

// ghost is Call.ghost, one for all that ask.
func (ev *Evaluator) ghost(c *Call, key address.Key) *Module {
	addr := c.module.Addr.Child(c.Decl.Name, key)
	ev.shared.Lock()
	defer ev.shared.Unlock()
	if ev.shared.ghosts == nil {
		ev.shared.ghosts = map[address.Module]*Module{}
	}
	m := ev.shared.ghosts[addr]
	if m == nil {
		m = c.ghost(key)
		ev.shared.ghosts[addr] = m
	}
	return m
}

// dynamics evaluates the arguments of one instance's lifecycle block.
type dynamics struct {
	task    *Task
	scope   scope
	subject func() string
	lenient bool // what is not known counts as left out
}

// decide is the value of an argument that is true or false.
func (d dynamics) decide(expr hcl.Expression, name string) (yes, ok bool) {
	v, ok := d.knownValue(expr, name)
	if !ok || v == cty.NilVal {
		return false, ok
	}
	b, err := convert.Convert(v, cty.Bool)
	if err != nil {
		return false, d.fail(expr, name, fmt.Sprintf("It must be true or false for %s: %s.", d.subject(), err))
	}
	return b.True(), true
}

// knownValue is an argument's value; NilVal where it is not known and need not be.
func (d dynamics) knownValue(expr hcl.Expression, name string) (cty.Value, bool) {
	v, ok := d.task.evaluate(d.scope, expr, cty.DynamicPseudoType)
	if !ok {
		return cty.NilVal, false
	}
	v, marked, _ := lang.Unmark(v)
	fail := func(format string, args ...any) (cty.Value, bool) {
		return cty.NilVal, d.fail(expr, name, fmt.Sprintf(format, args...))
	}
	switch {
	case len(marked.Ephemeral) > 0:
		return fail("The value for %s is ephemeral: the apply may be given another one than the plan was. Use a value that is not ephemeral.", d.subject())
	case len(marked.Sensitive) > 0:
		return fail("The value for %s is sensitive, and the plan would reveal it. Use nonsensitive() if it is not a "+
			"secret.", d.subject())
	case !v.IsWhollyKnown() && (d.lenient || d.task.Deferred()):
		return cty.NilVal, true
	case !v.IsWhollyKnown():
		return fail("The value for %s is known only after apply, or depends on an element of count or for_each that "+
			"no longer exists, but it decides what is planned. "+
			"Use values that are known before: variables, each.key, count.index, or what exists already.", d.subject())
	case v.IsNull():
		return fail("The value for %s is null. Give a value, or leave the argument out.", d.subject())
	}
	return v, true
}

func (d dynamics) fail(expr hcl.Expression, name, detail string) bool {
	d.task.Report(&hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Invalid " + name + " value", Detail: detail, Subject: expr.Range().Ptr(),
		Expression: expr, EvalContext: d.task.contextForDisplay(d.scope, expr),
	})
	return false
}

// ignored adds the ignored attributes to the lifecycle.
func (d dynamics) ignored(i *modules.Ignored, l *modules.Lifecycle) bool {
	if i.If != nil {
		v, ok := d.knownValue(i.If, "ignore_changes")
		if !ok || v == cty.NilVal {
			return ok
		}
		b, err := convert.Convert(v, cty.Bool)
		switch {
		case err != nil:
			return d.fail(i.If, "ignore_changes", fmt.Sprintf("The condition must be true or false for %s: %s.", d.subject(), err))
		case b.True():
			return d.ignored(i.Then, l)
		}
		return d.ignored(i.Else, l)
	}
	l.IgnoreAll = l.IgnoreAll || i.All
	l.IgnoreChanges = append(l.IgnoreChanges[:len(l.IgnoreChanges):len(l.IgnoreChanges)], i.Paths...)
	for _, expr := range i.Texts {
		v, ok := d.knownValue(expr, "ignore_changes")
		if !ok {
			return false
		}
		if v != cty.NilVal && !d.addNamed(expr, v, l) {
			return false
		}
	}
	return true
}

// addNamed adds what texts name: a path, several of them, or all.
func (d dynamics) addNamed(expr hcl.Expression, v cty.Value, l *modules.Lifecycle) bool {
	if v.Type() == cty.String {
		v = cty.TupleVal([]cty.Value{v})
	}
	texts, err := convert.Convert(v, cty.List(cty.String))
	if ty := v.Type(); err != nil || ty.IsMapType() || ty.IsObjectType() {
		return d.fail(expr, "ignore_changes", fmt.Sprintf("For %s it must be a list of texts that name arguments of the resource, or the text all; not %s.", d.subject(), v.Type().FriendlyName()))
	}
	for it := texts.ElementIterator(); it.Next(); {
		_, text := it.Element()
		if text.IsNull() {
			return d.fail(expr, "ignore_changes", fmt.Sprintf("An element for %s is null; each must name an argument of the resource.", d.subject()))
		}
		if text.AsString() == "all" {
			l.IgnoreAll = true
			continue
		}
		path, diags := hclsyntax.ParseTraversalAbs([]byte(text.AsString()), expr.Range().Filename, expr.Range().Start)
		if diags.HasErrors() {
			return d.fail(expr, "ignore_changes", fmt.Sprintf("For %s, %q does not name an argument of the resource; write it as labels or labels[\"team\"].", d.subject(), text.AsString()))
		}
		if root, ok := path[0].(hcl.TraverseRoot); ok {
			path[0] = hcl.TraverseAttr{Name: root.Name, SrcRange: expr.Range()}
		}
		l.IgnoreChanges = append(l.IgnoreChanges, path)
	}
	return true
}

// valueRoots are names that begin references to values, and which people write
// into ignore_changes with that in mind.
var valueRoots = map[string]bool{"var": true, "local": true, "each": true, "count": true, "data": true, "module": true, "path": true, "terraform": true}

// ignorable finds paths of ignore_changes that the type does not have.
func (t *Task) ignorable(l *modules.Lifecycle, ty *Type) bool {
	if len(l.IgnoreChanges) == 0 {
		return true
	}
	ok := true
	object := cty.UnknownVal(ty.Implied)
	for _, path := range l.IgnoreChanges {
		_, diags := path.TraverseRel(object)
		rng := path.SourceRange()
		name := path[0].(hcl.TraverseAttr).Name
		if !diags.HasErrors() {
			if a := ty.Schema.Block.Attributes[name]; a != nil && a.Computed && !a.Optional {
				t.ReportOnce(rng.String()+name, &hcl.Diagnostic{
					Severity: hcl.DiagWarning, Summary: "Redundant ignore_changes element",
					Detail:  fmt.Sprintf("The provider computes %s: it has no configured value that could change. Take it out of ignore_changes.", name),
					Subject: rng.Ptr(),
				})
			}
			continue
		}
		ok = false
		detail := diags[0].Detail
		switch {
		case valueRoots[name]:
			detail = fmt.Sprintf("In a list in brackets, %s would be an argument of the resource. To use its value, write the list as an expression of texts, such as concat([\"labels\"], %s.…).", name, name)
		case !ty.Implied.HasAttribute(name):
			detail = fmt.Sprintf("The resource has no argument %q.", name)
			if near := Nearest(name, keysOf(ty.Implied.AttributeTypes())); near != "" {
				detail += fmt.Sprintf(" Did you mean %q?", near)
			}
		}
		t.ReportOnce(rng.String()+name, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Unsupported attribute in ignore_changes", Detail: strings.TrimSpace(detail), Subject: rng.Ptr(),
		})
	}
	return ok
}
