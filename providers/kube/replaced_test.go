package kube

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// deletions counts what a plan deletes of a resource that it updates.
func (p planned) deletions() (n int) {
	for _, note := range p.kinds {
		if note.Kind == providers.NoteDeletion {
			n++
		}
	}
	return n
}

const claimed = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: SERVICE
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: a, image: "x:1"}]}}
---
`

// ruled is a CRD whose objects have a size that a rule fixes.
func ruled(w *world) string {
	return crdOf(w, "Store", "\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf, message: storage size cannot be changed while backups are running}]}}}}}}}")
}

// TestNothingIsDeletedUnplanned: an object whose change is refused is made anew where its
// kind allows that, and then the plan counts it; another one is refused, whatever the
// words of the refusal are, and stays.
func TestNothingIsDeletedUnplanned(t *testing.T) {
	w := newWorld(t)
	beside := configMap1("beside", "1")
	quick := map[string]cty.Value{"wait": cty.False, "prune_data": cty.True}
	for name, c := range map[string]struct{ first, second, object string }{
		"stateful set": {strings.ReplaceAll(claimed, "SERVICE", "one"), strings.ReplaceAll(claimed, "SERVICE", "two"), "statefulset/db"},
		"custom":       {ruled(w) + custom(w, "Store", "v1", "size: 1"), ruled(w) + custom(w, "Store", "v1", "size: 2"), "stores." + w.ns + ".example.com/a"},
	} {
		t.Run(name, func(t *testing.T) {
			it := w.make(thing{}, w.yaml(c.first+beside, quick))
			uid := w.field(c.object, ".metadata.uid")
			says(t, w.plan(it, w.yaml(c.second+beside, quick)).said(), "The API server refuses the object", "Undo the change; or delete the object yourself")
			if got := w.field(c.object, ".metadata.uid"); got != uid {
				t.Error("it is another one")
			}
			w.destroy(it)
		})
	}
	t.Run("job", func(t *testing.T) {
		job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: \"x:1\"}]}}}\n---\n"
		it := w.make(thing{}, w.yaml(job+beside, quick))
		config := w.yaml(strings.ReplaceAll(job, "x:1", "x:2")+beside, quick)
		pl := w.plan(it, config)
		if pl.said().HasErrors() || pl.deletions() != 1 {
			t.Fatalf("%d deletions: %v", pl.deletions(), pl.said())
		}
		it = w.empty(w.make(it, config), config)
		// What is wrong with the new one is no reason to delete the old one.
		says(t, w.plan(it, w.yaml(strings.ReplaceAll(job, "restartPolicy: Never", "restartPolicy: Always")+beside, quick)).said(), "The API server refuses the object", "restartPolicy")
		// What the plan did not know the apply does not delete.
		pl = w.plan(it, w.yaml(job+configMap1("beside", "2"), quick))
		pl.Private = nil
		_, r := w.apply(pl)
		says(t, r.Diagnostics, "Fields cannot be changed", "Nothing was deleted")
		w.destroy(it)
	})
	t.Run("namespace", func(t *testing.T) {
		space := "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-pruned}\n---\n"
		it := w.make(thing{}, w.yaml(space+beside, quick))
		if pl := w.plan(it, w.yaml(beside, quick)); pl.deletions() != 1 {
			t.Errorf("%d deletions, notes %v", pl.deletions(), pl.notes)
		}
		w.destroy(it)
	})
}
