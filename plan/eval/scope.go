package eval

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// scope is the context of an expression: a module, perhaps one turn of a
// repetition, perhaps a condition about an object.
type scope struct {
	module *Module
	rep    repetition
	self   cty.Value // NilVal where self means nothing
	check  string    // the check block that the expression is in
}

// evaluate gives the expression's value, converted to ty.
func (t *Task) evaluate(s scope, expr hcl.Expression, ty cty.Type) (cty.Value, bool) {
	refs, diags := lang.References(expr)
	if diags.HasErrors() {
		t.Report(diags...)
		return cty.DynamicVal, false
	}
	ctx, ok := t.context(s, refs)
	if !ok {
		return cty.DynamicVal, false
	}
	v, diags := expr.Value(ctx)
	t.Report(diags...)
	if diags.HasErrors() {
		return cty.DynamicVal, false
	}
	if ty == cty.DynamicPseudoType {
		return v, true
	}
	v, err := convert.Convert(v, ty)
	if err != nil {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Incorrect value type",
			Detail: fmt.Sprintf("The value is not what is needed here: %s.", err), Subject: expr.Range().Ptr(),
			Expression: expr, EvalContext: ctx,
		})
		return cty.DynamicVal, false
	}
	return v, true
}

// context builds the evaluation context that holds exactly what the
// references name.
func (t *Task) context(s scope, refs []lang.Reference) (*hcl.EvalContext, bool) {
	b := contextBuilder{
		task: t, scope: s, ok: true,
		roots:   map[string]map[string]cty.Value{},
		managed: map[string]map[string]cty.Value{},
		data:    map[string]map[string]cty.Value{},
		seen:    map[lang.Subject]bool{},
		outputs: map[string]map[string]bool{},
	}
	for _, ref := range refs {
		b.note(ref)
		b.prefixed = b.prefixed || ref.Prefixed
	}
	for _, ref := range refs {
		if !b.seen[ref.Subject] {
			b.seen[ref.Subject] = true
			b.add(ref)
		}
		if s, ok := ref.Subject.(lang.Resource); ok {
			b.foresee(s, ref)
		}
	}
	return b.finish(), b.ok
}

type contextBuilder struct {
	task  *Task
	scope scope
	ok    bool

	roots         map[string]map[string]cty.Value // var, local, module, path, …
	managed, data map[string]map[string]cty.Value // type → name → value
	prefixed      bool                            // some resource is named by resource.TYPE.NAME
	self          cty.Value
	seen          map[lang.Subject]bool
	outputs       map[string]map[string]bool // module call → outputs asked for; nil: all
}

// note collects the needed outputs of a module call.
func (b *contextBuilder) note(ref lang.Reference) {
	call, ok := ref.Subject.(lang.ModuleCall)
	if !ok {
		return
	}
	only, known := b.outputs[call.Name]
	if known && only == nil {
		return
	}
	if len(ref.Remaining) > 0 {
		if attr, ok := ref.Remaining[0].(hcl.TraverseAttr); ok {
			if only == nil {
				only = map[string]bool{}
				b.outputs[call.Name] = only
			}
			only[attr.Name] = true
			return
		}
	}
	b.outputs[call.Name] = nil
}

func (b *contextBuilder) put(root, name string, v cty.Value) {
	if b.roots[root] == nil {
		b.roots[root] = map[string]cty.Value{}
	}
	b.roots[root][name] = v
}

func (b *contextBuilder) add(ref lang.Reference) {
	t, m := b.task, b.scope.module
	switch s := ref.Subject.(type) {
	case lang.Variable:
		v, ok := m.variable(t, s.Name, ref.Range)
		b.ok = b.ok && ok
		b.put("var", s.Name, v)
	case lang.Local:
		v, ok := m.local(t, s.Name, ref.Range)
		b.ok = b.ok && ok
		b.put("local", s.Name, v)
	case lang.ModuleCall:
		v, ok := m.callValue(t, s.Name, b.outputs[s.Name], ref)
		b.ok = b.ok && ok
		b.put("module", s.Name, v)
	case lang.Resource:
		b.resource(s, ref)
	case lang.CountIndex:
		b.repeated("count", "index", b.scope.rep.index, "count", ref)
	case lang.EachKey:
		b.repeated("each", "key", b.scope.rep.name, "for_each", ref)
	case lang.EachValue:
		b.repeated("each", "value", b.scope.rep.each, "for_each", ref)
	case lang.Self:
		if b.scope.self == cty.NilVal {
			b.fail(ref, `Invalid "self" reference`, `"self" is the object that a postcondition checks; it means nothing here.`)
			return
		}
		b.self = b.scope.self
	case lang.Path:
		b.put("path", s.Name, cty.StringVal(t.path(m, s.Name)))
	case lang.Terraform:
		if s.Name == "applying" {
			b.put("terraform", s.Name, t.applying())
			return
		}
		b.put("terraform", s.Name, cty.StringVal(t.ev.opts.Workspace))
	}
}

func (b *contextBuilder) fail(ref lang.Reference, summary, detail string) {
	b.ok = false
	b.task.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: ref.Range.Ptr()})
}

func (b *contextBuilder) repeated(root, name string, v cty.Value, argument string, ref lang.Reference) {
	if v == cty.NilVal {
		b.fail(ref, fmt.Sprintf("Reference to %q in non-%s context", root, argument),
			fmt.Sprintf("%q can only be used in a block where the %q argument is set.", root+"."+name, argument))
		return
	}
	b.put(root, name, v)
}

func (b *contextBuilder) resource(s lang.Resource, ref lang.Reference) {
	m := b.scope.module
	r := m.resources[modules.ResourceName{Mode: s.Mode, Type: s.Type, Name: s.Name}]
	into := b.managed
	if s.Mode == address.Data {
		into = b.data
	}
	if into[s.Type] == nil {
		into[s.Type] = map[string]cty.Value{}
	}
	if r == nil {
		b.ok = false
		b.task.Report(m.undeclaredResource(s, ref))
		into[s.Type][s.Name] = cty.DynamicVal
		return
	}
	if !b.mayRefer(r, ref) {
		into[s.Type][s.Name] = cty.DynamicVal
		return
	}
	v, ok := r.Value(b.task)
	b.ok = b.ok && ok
	into[s.Type][s.Name] = v
}

func (b *contextBuilder) finish() *hcl.EvalContext {
	vars := make(map[string]cty.Value, len(b.roots)+len(b.managed)+2)
	for root, names := range b.roots {
		vars[root] = cty.ObjectVal(names)
	}
	if tf, ok := vars["terraform"]; ok {
		vars["tofu"] = tf
	}
	if len(b.data) > 0 {
		vars["data"] = types(b.data)
	}
	if b.prefixed {
		vars["resource"] = types(b.managed)
	}
	for typeName, names := range b.managed {
		vars[typeName] = cty.ObjectVal(names)
	}
	if b.self != cty.NilVal {
		vars["self"] = b.self
	}
	return &hcl.EvalContext{Variables: vars, Functions: b.scope.module.functions()}
}

func types(byType map[string]map[string]cty.Value) cty.Value {
	attrs := make(map[string]cty.Value, len(byType))
	for name, names := range byType {
		attrs[name] = cty.ObjectVal(names)
	}
	return cty.ObjectVal(attrs)
}

// repeat returns a context for one turn, on top of the shared one.
func repeat(base *hcl.EvalContext, rep repetition) *hcl.EvalContext {
	if rep.index == cty.NilVal && rep.each == cty.NilVal {
		return base
	}
	ctx := base.NewChild()
	ctx.Variables = make(map[string]cty.Value, 1)
	if rep.index != cty.NilVal {
		ctx.Variables["count"] = cty.ObjectVal(map[string]cty.Value{"index": rep.index})
	}
	if rep.each != cty.NilVal {
		ctx.Variables["each"] = cty.ObjectVal(map[string]cty.Value{"key": rep.name, "value": rep.each})
	}
	return ctx
}

func (t *Task) path(m *Module, name string) string {
	switch name {
	case "module":
		return filepath.ToSlash(m.Decl.Dir)
	case "root":
		return filepath.ToSlash(t.ev.root.Decl.Dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return filepath.ToSlash(dir)
}

// touch makes what the traversals of a depends_on name dependencies of the
// cell that the task computes.
func (t *Task) touch(m *Module, traversals []hcl.Traversal) bool {
	ok := true
	for _, tr := range traversals {
		ref, diags := lang.ParseReference(tr)
		t.Report(diags...)
		if diags.HasErrors() {
			ok = false
			continue
		}
		if !isWholeObject(ref) {
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Invalid depends_on reference",
				Detail:  fmt.Sprintf("Things are depended on as a whole. Name only %s, without its attributes.", ref.Subject),
				Subject: tr.SourceRange().Ptr(),
			})
			ok = false
			continue
		}
		switch s := ref.Subject.(type) {
		case lang.ModuleCall:
			call := m.calls[s.Name]
			if call == nil {
				t.Report(m.undeclared("module call", "module", s.Name, ref.Range, keysOf(m.calls)))
				ok = false
				continue
			}
			instances, fine := call.Instances(t)
			ok = ok && fine
			var failed atomic.Bool
			for _, inst := range instances {
				inst.Walk(t, func(t *Task, m *Module) {
					for _, r := range m.ordered {
						if _, fine := r.Value(t); !fine {
							failed.Store(true)
						}
					}
				})
			}
			ok = ok && !failed.Load()
		default:
			_, fine := t.context(scope{module: m}, []lang.Reference{ref})
			ok = ok && fine
		}
	}
	return ok
}

// isWholeObject reports whether a reference is about a thing or an instance of it,
// rather than about something in it.
func isWholeObject(ref lang.Reference) bool {
	switch len(ref.Remaining) {
	case 0:
		return true
	case 1:
		_, index := ref.Remaining[0].(hcl.TraverseIndex)
		return index
	}
	return false
}
