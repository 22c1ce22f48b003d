package kube

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// named is a thing under another address, as a plan begins with it.
func named(name string) thing { return thing{kind: "kube_manifest", name: name} }

// An object that moves from one resource to another in one apply stays as it
// is, whichever of the two is applied first.
func TestMoveBetweenResources(t *testing.T) {
	for name, giverFirst := range map[string]bool{"the giver first": true, "the taker first": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}\nspec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}\n---\n"
			conf := func(text string) cty.Value { return w.yaml(text, map[string]cty.Value{"wait": cty.False}) }
			a := w.make(named("a"), conf(configMap1("a", "1")+configMap1("x", "1")+claim))
			b := w.make(named("b"), conf(configMap1("b", "1")))
			uid := w.field("configmap/x", ".metadata.uid")
			bothOfB := conf(configMap1("b", "1") + configMap1("x", "1") + claim)
			planA, planB := w.plan(w.refresh(a), conf(configMap1("a", "1"))), w.plan(w.refresh(b), bothOfB)
			if diags, notes := w.review(planA, planB); diags.HasErrors() || !strings.Contains(strings.Join(notes, "\n"), "ConfigMap "+w.ns+"/x is handed over to kube_manifest.b as it is") {
				t.Fatal(diags, notes)
			}
			apply := func(pl planned) thing {
				it, r := w.apply(pl)
				if r.Diagnostics.HasErrors() {
					t.Fatal(r.Diagnostics)
				}
				return it
			}
			if giverFirst {
				a = apply(planA)
				b = apply(planB)
			} else {
				b = apply(planB)
				a = apply(planA)
			}
			if got := w.field("configmap/x", ".metadata.uid"); got != uid {
				t.Errorf("it is another one: %q", got)
			}
			if got := w.field("pvc/x", ".metadata.deletionTimestamp") + w.field("pvc/x", ".metadata.name"); got != "x" {
				t.Errorf("the claim is %q", got)
			}
			b = w.empty(b, bothOfB)
			w.empty(a, conf(configMap1("a", "1")))
			w.destroy(a)
			if got := w.field("configmap/x", ".metadata.uid"); got != uid {
				t.Error("the giver's end is that of the object")
			}
			w.destroy(b)
		})
	}
}

// What another resource has taken over is neither pruned nor destroyed with the
// one that had it.
func TestTakenOverByImport(t *testing.T) {
	w := newWorld(t)
	a := w.make(named("a"), w.yaml(configMap1("a", "1")+configMap1("x", "1")))
	b := w.imported("kube_manifest", "ConfigMap/"+w.ns+"/x")
	b.name = "b"
	b = w.make(b, w.yaml(configMap1("x", "2")))
	uid := w.field("configmap/x", ".metadata.uid")
	if now := w.refresh(a); len(now.state.GetAttr("objects").AsValueMap()) != 1 {
		t.Errorf("a refresh has what another resource took over: %#v", now.state.GetAttr("objects"))
	}
	pruned, r := w.apply(w.plan(a, w.yaml(configMap1("a", "1"))))
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	a.private = pruned.private
	w.destroy(a)
	if got := w.field("configmap/x", ".metadata.uid"); got != uid {
		t.Errorf("it is %q now", got)
	}
	w.destroy(b)
	if got := w.field("configmap/x", ".metadata.uid"); got != "" {
		t.Error("its own resource does not delete it")
	}
}

// That an object is there already, or another resource's, the plan says: for
// what is new in a resource too, and whatever its fields are.
func TestTakenNames(t *testing.T) {
	w := newWorld(t)
	a := w.make(named("a"), w.yaml(configMap1("a", "1")))
	w.kubectl("create", "configmap", "theirs", "--from-literal=b=1")
	says(t, w.plan(w.refresh(a), w.yaml(configMap1("a", "1")+configMap1("theirs", "1"))).said(), "Object exists already", "stoke import")
	taker := w.plan(named("b"), w.yaml(configMap1("a", "1")))
	says(t, taker.said(), "Object exists already", "stoke import") // nobody gives it up
	giver := w.plan(w.refresh(a), w.yaml(configMap1("a", "1")))
	diags, _ := w.review(giver, taker)
	says(t, diags, "Object declared twice", "kube_manifest.a and by kube_manifest.b")

	one, two := w.plan(named("one"), w.yaml(configMap1("new", "1"))), w.plan(named("two"), w.yaml(configMap1("new", "1")))
	diags, _ = w.review(one, two)
	says(t, diags, "Object declared twice", "kube_manifest.one and by kube_manifest.two")
}

// What did not become ready is waited for by the next apply, after an error and
// after a kill alike.
func TestReadinessIsRemembered(t *testing.T) {
	w := newWorld(t)
	job := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {nowhere: \"1\"}, tolerations: [{operator: Exists}], containers: [{name: a, image: x}]}\n"
	short := w.yaml(job+"---\n"+configMap1("beside", "1"), map[string]cty.Value{"timeouts": cty.ObjectVal(map[string]cty.Value{"create": cty.StringVal("3s"), "update": cty.StringVal("3s"), "delete": cty.NullVal(cty.String)})})
	pl := w.plan(thing{}, short)
	it, r := w.apply(pl)
	says(t, r.Diagnostics, "Object is not ready", "p is not ready")
	if !r.Keep {
		t.Error("the unfinished objects are not kept")
	}
	for range 2 { // and the apply after that as well
		pl = w.plan(w.refresh(it), short)
		objects := pl.objects()
		if pl.said().HasErrors() || pl.noop() || objects["Pod/"+w.ns+"/p"] != "unknown" || objects["ConfigMap/"+w.ns+"/beside"] == "unknown" {
			t.Fatalf("%v, nothing to do %v: %v", pl.said(), pl.noop(), objects)
		}
		it, r = w.apply(pl)
		says(t, r.Diagnostics, "Object is not ready", "p is not ready")
	}
	settled := it
	settled.private = nil // as after a kill, when only the create's state is known
	if pl = w.plan(w.refresh(settled), short); pl.noop() {
		t.Error("after a kill there is nothing to do")
	}
	w.kubectl("label", "node", "gpu-1", "nowhere=1")
	defer w.kubectl("label", "node", "gpu-1", "nowhere-")
	long := w.yaml(job + "---\n" + configMap1("beside", "1"))
	it = w.make(w.refresh(it), long)
	w.empty(it, long)
}

// A claim, a volume, a CRD or a namespace is made anew only where prune_data
// allows that, and pruned at apply by that alone.
func TestDataMadeAnew(t *testing.T) {
	w := newWorld(t)
	claim := func(class string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], storageClassName: " + class + ", resources: {requests: {storage: 1Gi}}}\n---\n" + configMap1("a", "1")
	}
	conf := func(text string, prune bool) cty.Value {
		return w.yaml(text, map[string]cty.Value{"wait": cty.False, "prune_data": cty.BoolVal(prune)})
	}
	it := w.make(thing{}, conf(claim("one"), false))
	says(t, w.plan(w.refresh(it), conf(claim("two"), false)).said(), "Data would be deleted", "prune_data = true")
	it = w.make(w.refresh(it), conf(claim("two"), true))
	it = w.empty(it, conf(claim("two"), true))
	if got := w.field("pvc/a", ".spec.storageClassName"); got != "two" {
		t.Errorf("its class is %q", got)
	}
	pl := w.plan(it, conf(configMap1("a", "1"), true))
	values := pl.Planned.AsValueMap()
	values["prune_data"] = cty.False
	pl.Planned, pl.config = cty.ObjectVal(values), conf(configMap1("a", "1"), false)
	_, r := w.apply(pl)
	says(t, r.Diagnostics, "Data would be deleted", "prune_data")
	if got := w.field("pvc/a", ".metadata.deletionTimestamp"); got != "" {
		t.Error("the claim is deleted")
	}
	// The same objects in a resource of their own are renamed without it.
	ns := func(name string) cty.Value {
		return w.conf("kube_namespace", map[string]cty.Value{"name": cty.StringVal(w.ns + name)})
	}
	one := w.make(thing{kind: "kube_namespace"}, ns("-1"))
	if pl := w.plan(w.refresh(one), ns("-2")); pl.said().HasErrors() || len(pl.Replace) == 0 {
		t.Errorf("a rename: %v %v", pl.Replace, pl.said())
	}
	w.destroy(one)
}

// An object that is being deleted is not there any more.
func TestObjectInDeletion(t *testing.T) {
	w := newWorld(t)
	text := configMap1("a", "1") + configMap1("b", "1")
	config := w.yaml(text)
	it := w.make(thing{}, config)
	w.kubectl("patch", "configmap", "a", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	w.kubectl("delete", "configmap", "a", "--wait=false")
	uid := w.field("configmap/a", ".metadata.uid")
	pl := w.plan(w.refresh(it), config)
	if pl.said().HasErrors() || pl.noop() || !strings.Contains(strings.Join(pl.notes, "\n"), "is being deleted") {
		t.Fatalf("%v, nothing to do %v: %v", pl.said(), pl.noop(), pl.notes)
	}
	type result struct {
		it thing
		r  providers.ApplyResponse
	}
	done := make(chan result, 1)
	go func() {
		it, r := w.apply(pl)
		done <- result{it, r}
	}()
	select {
	case <-done:
		t.Error("it is applied while it is being deleted")
	case <-time.After(time.Second): // long enough for a mistake to show; a slow machine hides it
	}
	w.kubectl("patch", "configmap", "a", "--type=merge", "-p", `{"metadata":{"finalizers":[]}}`)
	end := <-done
	if end.r.Diagnostics.HasErrors() {
		t.Fatal(end.r.Diagnostics)
	}
	if got := w.field("configmap/a", ".metadata.uid"); got == uid || got == "" {
		t.Errorf("its UID is %q", got)
	}
	w.empty(end.it, config)

	// A namespace that goes takes what is declared in it along.
	inner := w.ns + "-going"
	w.kubectl("create", "namespace", inner)
	w.kubectl("-n", inner, "create", "configmap", "held")
	w.kubectl("-n", inner, "patch", "configmap", "held", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	defer w.kubectl("-n", inner, "patch", "configmap", "held", "--type=merge", "-p", `{"metadata":{"finalizers":[]}}`)
	w.kubectl("delete", "namespace", inner, "--wait=false")
	says(t, w.plan(thing{}, w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: "+inner+"}\n")).said(), "Namespace is missing", "being deleted")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	held := w.imported("kube_namespace", inner)
	values := held.state.AsValueMap()
	values["timeouts"] = cty.ObjectVal(map[string]cty.Value{"create": cty.NullVal(cty.String), "update": cty.NullVal(cty.String), "delete": cty.StringVal("10s")})
	held.state = cty.ObjectVal(values)
	r := w.phase().Apply(ctx, providers.ApplyRequest{Type: "kube_namespace", Prior: held.state, Planned: cty.NullVal(held.state.Type()), Config: cty.NullVal(held.state.Type()), Private: held.private})
	says(t, r.Diagnostics, "Object does not go", "example.com/slow")
}
