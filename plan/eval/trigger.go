package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// Trigger evaluates an element of the instance's replace_triggered_by: all
// instances of a resource or one of them, and the rest of the reference, below
// one object. They are planned first, and become dependencies.
func (t *Task) Trigger(i *Instance, expr hcl.Expression) (named []*Instance, rest hcl.Traversal, ok bool) {
	head, key, rest := triggerParts(expr)
	ref, isResource := triggerSubject(head)
	if !isResource {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid reference in replace_triggered_by",
			Detail:  "Each element names a managed resource, one of its instances or an attribute of one, such as metal_host.machine or metal_host.machine[each.key].address.",
			Subject: expr.Range().Ptr(),
		})
		return nil, nil, false
	}
	m := i.Resource.module
	r := m.Resource(ref.Subject.(lang.Resource))
	if r == nil {
		t.Report(m.undeclaredResource(ref.Subject.(lang.Resource), ref))
		return nil, nil, false
	}
	if key == nil {
		rest = ref.Remaining
		if len(rest) > 0 {
			if index, isIndex := rest[0].(hcl.TraverseIndex); isIndex {
				return t.oneOf(r, index.Key, rest[1:])
			}
		}
		_, ok = r.Value(t)
		named, _ = r.Instances(t)
		return named, rest, ok
	}
	v, ok := t.evaluate(scope{module: m, rep: i.rep}, key, cty.DynamicPseudoType)
	if !ok {
		return nil, nil, false
	}
	v, _ = v.Unmark()
	return t.oneOf(r, v, rest)
}

// oneOf plans the instance with the given key; a missing instance, or instances
// that are not known yet, are not an error.
func (t *Task) oneOf(r *Resource, v cty.Value, rest hcl.Traversal) ([]*Instance, hcl.Traversal, bool) {
	if _, ok := r.Instances(t); !ok {
		return nil, nil, false
	}
	inst := r.Instance(t, keyFrom(v))
	if inst == nil {
		return nil, rest, true
	}
	_, ok := inst.Value(t)
	return []*Instance{inst}, rest, ok
}

func keyFrom(v cty.Value) address.Key {
	if !v.IsKnown() || v.IsNull() {
		return address.Key{}
	}
	switch v.Type() {
	case cty.String:
		return address.StringKey(v.AsString())
	case cty.Number:
		var n int
		if gocty.FromCtyValue(v, &n) == nil {
			return address.IntKey(n)
		}
	}
	return address.Key{}
}

// triggerParts takes RESOURCE[KEY].REST apart where the key is an expression;
// otherwise key is nil.
func triggerParts(expr hcl.Expression) (head, key hcl.Expression, rest hcl.Traversal) {
	head = expr
	if rel, ok := head.(*hclsyntax.RelativeTraversalExpr); ok {
		head, rest = rel.Source, rel.Traversal
	}
	if index, ok := head.(*hclsyntax.IndexExpr); ok {
		return index.Collection, index.Key, rest
	}
	return expr, nil, nil
}

func triggerSubject(expr hcl.Expression) (lang.Reference, bool) {
	tr, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() {
		return lang.Reference{}, false
	}
	ref, diags := lang.ParseReference(tr)
	if diags.HasErrors() {
		return lang.Reference{}, false
	}
	s, ok := ref.Subject.(lang.Resource)
	return ref, ok && s.Mode == address.Managed
}
