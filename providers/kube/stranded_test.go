package kube

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestPlanStrandsNoObjects: a namespace, and a CRD, is not deleted while objects in it
// stay declared, in the same resource or in another one.
func TestPlanStrandsNoObjects(t *testing.T) {
	w := newWorld(t)
	const named = "Declared objects would be deleted"
	ns := w.ns + "-strand"
	space := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + ns + "}\n---\n"
	group := ns + ".example.com"
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec:\n  group: " + group +
		"\n  names: {kind: Thing, plural: things}\n  scope: Namespaced\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n---\n"
	within := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n---\n"
	custom := "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: one}\n"
	conf := func(yaml string) cty.Value {
		return w.conf("kube_manifest", map[string]cty.Value{"yaml": cty.StringVal(yaml), "namespace": cty.StringVal(ns), "prune_data": cty.True})
	}
	it := w.make(thing{}, conf(space+crd+within))
	other := w.make(thing{name: "other"}, conf(custom))
	says(t, w.plan(it, conf(crd+within)).said(), named, "ConfigMap "+ns+"/a would be deleted with Namespace "+ns)
	stays := w.plan(other, conf(custom))
	if _, notes := w.review(w.plan(it, conf(space+crd)), stays); len(notes) == 0 {
		t.Error("an object that leaves by itself is not reported")
	}
	diags, _ := w.review(w.plan(it, conf(space+within)), stays)
	says(t, diags, named, "Thing "+ns+"/one would be deleted with CustomResourceDefinition things."+group+", which kube_manifest.x")
	gone := w.plan(it, conf(within))
	gone.Planned = cty.NullVal(it.state.Type())
	diags, _ = w.review(gone, stays)
	says(t, diags, named, "Thing "+ns+"/one would be deleted with Namespace "+ns)
	gone.prior, stays.Planned = it, cty.NullVal(it.state.Type())
	if diags, _ := w.review(gone, stays); len(diags) > 0 {
		t.Errorf("a destroy of everything says %v", diags)
	}
	w.destroy(other)
	w.destroy(it)
}
