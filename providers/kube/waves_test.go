package kube

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// operated is an operator with its CRD and a custom resource.
func (w *world) operated() string {
	return crdOf(w, "Thing", version("v1", true, 0, "size")) + custom(w, "Thing", "v1", "size: 5") +
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator, namespace: NS}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}\n---\n"
}

func within(limit string) map[string]cty.Value {
	return map[string]cty.Value{"prune_data": cty.True, "timeouts": cty.ObjectVal(map[string]cty.Value{"create": cty.NullVal(cty.String), "update": cty.StringVal(limit), "delete": cty.StringVal(limit)})}
}

// operates plays the operator: while its Deployment is there, it takes its finalizer from
// what is being deleted.
func (w *world) operates(thing string) {
	w.kubectl("patch", thing, "--type=merge", "--field-manager=operator", "-p", `{"metadata":{"finalizers":["example.com/held"]}}`)
	ctx, stop := context.WithCancel(w.t.Context())
	over := make(chan struct{})
	w.t.Cleanup(func() { stop(); <-over })
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			time.Sleep(200 * time.Millisecond)
			if at, err := w.cluster.TryKubectl(w.t, w.cluster.Kubeconfig(), "", "-n", w.ns, "get", thing, "-o", "jsonpath={.metadata.deletionTimestamp}"); err != nil || at == "" {
				continue
			}
			time.Sleep(time.Second) // an operator takes its time
			if name, err := w.cluster.TryKubectl(w.t, w.cluster.Kubeconfig(), "", "-n", w.ns, "get", "deployment", "operator", "-o", "name"); err == nil && strings.Contains(name, "operator") {
				_, _ = w.cluster.TryKubectl(w.t, w.cluster.Kubeconfig(), "", "-n", w.ns, "patch", thing, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			}
		}
	}()
}

// TestOperatorOutlivesItsObjects: a destroy, and a prune, delete custom resources before
// the operator that has their finalizers, and both before the CRD.
func TestOperatorOutlivesItsObjects(t *testing.T) {
	for _, prunes := range []bool{false, true} {
		w := newWorld(t)
		config := w.yaml(w.operated()+configMap1("stays", "1"), within("2m"))
		it := w.make(thing{}, config)
		w.operates("things." + w.ns + ".example.com/a")
		if prunes {
			less := w.yaml(configMap1("stays", "1"), within("2m"))
			it = w.empty(w.make(w.refresh(it), less), less)
		}
		w.destroy(it)
	}
}

// TestWhatHangsIsNamed: an object that does not go is told with its finalizer and who
// set that.
func TestWhatHangsIsNamed(t *testing.T) {
	w := newWorld(t)
	it := w.make(thing{}, w.yaml(w.operated(), within("3s")))
	at := "things." + w.ns + ".example.com/a"
	w.kubectl("patch", at, "--type=merge", "--field-manager=operator", "-p", `{"metadata":{"finalizers":["example.com/held"]}}`)
	r := w.destroys(it)
	says(t, r.Diagnostics, "Object does not go", "held by the finalizers example.com/held (of operator)")
	if got := w.field("deployment/operator", ".metadata.deletionTimestamp"); got != "" {
		t.Error("the operator is deleted before its object has gone")
	}
	w.kubectl("patch", at, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	now := w.refresh(thing{kind: it.kind, state: r.State, private: r.Private})
	now.state = withAttribute(now.state, "timeouts", w.yaml("", within("2m")).GetAttr("timeouts"))
	w.destroy(now)
}

// withAttribute is an object's value with another value of one attribute.
func withAttribute(object cty.Value, name string, v cty.Value) cty.Value {
	all := object.AsValueMap()
	all[name] = v
	return cty.ObjectVal(all)
}
