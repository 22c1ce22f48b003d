package eval

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// Resource is a resource or data source in one module instance.
type Resource struct {
	Decl *modules.Resource
	Addr address.Resource

	module   *Module
	form     repetitionForm // valid once keys is done
	keys     cell[[]*Instance]
	byName   map[string]*Instance   // of a for_each; valid once keys is done
	demanded cell[struct{}]         // depends_on, the resource's own and its module call's
	base     cell[*hcl.EvalContext] // what the body refers to, shared by all instances
	value    cell[cty.Value]
}

func newResource(m *Module, decl *modules.Resource) *Resource {
	r := &Resource{
		Decl: decl, module: m,
		Addr: address.Resource{Module: m.Addr, Mode: decl.Mode, Type: decl.Type, Name: decl.Name},
	}
	name := r.Addr.String
	r.value.node = &Node{Resource: r}
	r.value.name, r.value.rng = name, &decl.Range
	r.keys.name, r.keys.rng = func() string { return name() + " (its count or for_each)" }, &decl.Range
	for _, h := range []*header{&r.value.header, &r.keys.header, &r.demanded.header, &r.base.header} {
		r.scoped(h)
	}
	return r
}

// Module is the module instance that the resource belongs to.
func (r *Resource) Module() *Module { return r.module }

// Node is the resource's place in the dependency graph.
func (r *Resource) Node() *Node { return r.value.node }

// Demanded is the place of what depends_on names, for data sources that must
// not be read before it is done. It is nil before the value of the first
// instance is read.
func (r *Resource) Demanded() *Node { return r.demanded.node }

// Instances returns the instances in key order.
func (r *Resource) Instances(t *Task) ([]*Instance, bool) {
	return r.keys.get(t, func(t *Task) ([]*Instance, bool) {
		form, reps, ok := t.instances(r.module, r.Decl.Count, r.Decl.ForEach, "resource")
		if !ok {
			return nil, false
		}
		r.form = form
		instances := make([]*Instance, len(reps))
		for i, rep := range reps {
			inst := &Instance{Resource: r, Addr: r.Addr.Instance(rep.key), rep: rep}
			inst.value.node = &Node{Instance: inst}
			inst.value.rng = &r.Decl.Range
			inst.value.advises = r.value.advises
			instances[i] = inst
		}
		if form == mapped {
			r.byName = make(map[string]*Instance, len(instances))
			for _, inst := range instances {
				name, _ := inst.Addr.Key.Str()
				r.byName[name] = inst
			}
		}
		return instances, true
	})
}

// Instance returns the instance with a key, nil if it does not exist.
func (r *Resource) Instance(t *Task, key address.Key) *Instance {
	instances, ok := r.Instances(t)
	if !ok {
		return nil
	}
	switch r.form {
	case undecided:
		if key.IsAny() {
			return instances[0]
		}
	case once:
		if key.IsZero() {
			return instances[0]
		}
	case counted:
		if i, ok := key.Int(); ok && i >= 0 && i < len(instances) {
			return instances[i]
		}
	case mapped:
		if name, ok := key.Str(); ok {
			return r.byName[name]
		}
	}
	return nil
}

// Repeated returns the argument that repeats the resource: "", "count" or
// "for_each".
func (r *Resource) Repeated() string {
	switch {
	case r.Decl.Count != nil:
		return "count"
	case r.Decl.ForEach != nil:
		return "for_each"
	}
	return ""
}

// Value returns the resource's value in expressions: an object, a tuple of them
// by count, or an object of them by for_each. It is built once, after the last
// instance.
func (r *Resource) Value(t *Task) (cty.Value, bool) {
	return r.value.get(t, func(t *Task) (cty.Value, bool) {
		instances, ok := r.Instances(t)
		if !ok {
			return cty.DynamicVal, false
		}
		values := make([]cty.Value, len(instances))
		failed := make([]bool, len(instances))
		t.ForEach(len(instances), func(t *Task, i int) {
			v, ok := instances[i].Value(t)
			values[i], failed[i] = v, !ok
		})
		if slices.Contains(failed, true) {
			return cty.DynamicVal, false
		}
		if r.form == undecided {
			return open(instances[0].rep), true
		}
		return r.form.collect(values, func(i int) address.Key { return instances[i].Addr.Key }), true
	})
}

// Provider is the configured provider that the resource is made with.
func (r *Resource) Provider(t *Task) (*Provider, bool) {
	return r.module.Provider(t, r.Decl.Provider)
}

// Type describes the resource's type, or reports an unknown one.
func (r *Resource) Type(t *Task) (*Type, bool) {
	schema, source, ok := r.module.providerSchema(t, r.Decl.Provider)
	if !ok {
		return nil, false
	}
	all, what := schema.Resources, "resource type"
	if r.Decl.Mode == address.Data {
		all, what = schema.Data, "data source"
	}
	rs := all[r.Decl.Type]
	if rs == nil {
		detail := fmt.Sprintf("The provider %s has no %s %q.", source, what, r.Decl.Type)
		if near := Nearest(r.Decl.Type, keysOf(all)); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", near)
		}
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid " + what, Detail: detail, Subject: r.Decl.TypeRange.Ptr()})
		return nil, false
	}
	return t.ev.typeOf(rs), true
}

// context evaluates what the body and depends_on refer to, once for all
// instances.
func (r *Resource) context(t *Task, ty *Type) (*hcl.EvalContext, bool) {
	return r.base.get(t, func(t *Task) (*hcl.EvalContext, bool) {
		_, ok := r.demanded.get(t, func(t *Task) (struct{}, bool) {
			ok := r.module.await(t)
			return struct{}{}, t.touch(r.module, r.Decl.DependsOn) && ok
		})
		var refs []lang.Reference
		for _, tr := range variablesIn(r.Decl.Body, ty) {
			ref, diags := lang.ParseReference(tr)
			t.Report(diags...)
			if diags.HasErrors() {
				ok = false
				continue
			}
			switch ref.Subject.(type) {
			case lang.CountIndex, lang.EachKey, lang.EachValue:
				if !r.allows(t, ref) {
					ok = false
				}
				continue // each instance has its own
			case lang.Resource:
				if r.module.Resource(ref.Subject.(lang.Resource)) == r {
					ok = false
					t.Report(&hcl.Diagnostic{
						Severity: hcl.DiagError, Summary: "Self-referential block",
						Detail:  fmt.Sprintf("The configuration of %s may not refer to %s itself, which has no values before it is decided.", r.Addr, r.Addr),
						Subject: ref.Range.Ptr(),
					})
					continue
				}
			}
			refs = append(refs, ref)
		}
		ctx, fine := t.context(scope{module: r.module}, refs)
		return ctx, t.ignorable(&r.Decl.Lifecycle, ty) && ok && fine
	})
}

func (r *Resource) allows(t *Task, ref lang.Reference) bool {
	want := "for_each"
	if _, ok := ref.Subject.(lang.CountIndex); ok {
		want = "count"
	}
	if r.Repeated() == want {
		return true
	}
	b := contextBuilder{task: t}
	b.repeated(map[string]string{"count": "count", "for_each": "each"}[want], map[bool]string{true: "index", false: "key"}[want == "count"], cty.NilVal, want, ref)
	return false
}

// Instance is one object that the configuration wants.
type Instance struct {
	Resource *Resource
	Addr     address.Instance

	rep   repetition
	value cell[cty.Value]
}

// Node is the instance's place in the dependency graph.
func (i *Instance) Node() *Node { return i.value.node }

// NamedResources returns the resources that the instance's declaration names: in its
// arguments, its conditions, its count or its for_each. What depends_on names
// is Demanded's.
func (i *Instance) NamedResources() []address.Resource {
	var named []address.Resource
	for _, node := range []*Node{i.value.node, i.Resource.base.node, i.Resource.keys.node} {
		if node == nil {
			continue
		}
		for _, dep := range node.Deps() {
			if dep.Resource != nil && dep.Resource != i.Resource {
				named = append(named, dep.Resource.Addr)
			}
		}
	}
	return named
}

// Value is the instance's object in this phase.
func (i *Instance) Value(t *Task) (cty.Value, bool) {
	return i.value.get(t, func(t *Task) (cty.Value, bool) {
		i.Resource.Instances(t) // what count or for_each read is read by every instance
		return t.ev.opts.Resolver.Value(t.ev.ctx, t, i)
	})
}

// Config is the instance's configuration as an object of its type, with marks
// and unknowns.
func (i *Instance) Config(t *Task) (cty.Value, *Type, bool) {
	r := i.Resource
	ty, ok := r.Type(t)
	if !ok {
		return cty.DynamicVal, nil, false
	}
	base, ok := r.context(t, ty)
	if !ok {
		return cty.DynamicVal, ty, false
	}
	v, diags := decode(r.Decl.Body, ty, repeat(base, i.rep))
	if diags.HasErrors() && i.open() {
		return cty.UnknownVal(ty.Implied), ty, true // where there is an instance, a later plan says it
	}
	t.Report(diags...)
	return v, ty, !diags.HasErrors()
}

// decode turns a body into an object of the type.
func decode(body hcl.Body, ty *Type, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	expanded := body
	if hasDynamic(body) {
		expanded = dynblock.Expand(body, ctx)
	}
	v, diags := hcldec.Decode(expanded, ty.spec, ctx)
	narrow(body, diags)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	return v, diags
}

// hasDynamic reports whether the body may hold dynamic blocks. It only sees
// native syntax, since JSON needs a schema.
func hasDynamic(body hcl.Body) bool {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return true
	}
	for _, b := range native.Blocks {
		if b.Type == "dynamic" || hasDynamic(b.Body) {
			return true
		}
	}
	return false
}
