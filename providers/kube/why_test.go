package kube

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// A wait that ends says what the pods of the object wait for.
func TestWhyNotReady(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ name, annotations, resources, why string }{
		{"large", "{}", "{limits: {nvidia.com/gpu: 16}}", "Insufficient nvidia.com/gpu"},
		{"missing", "{kubetest/waiting: ImagePullBackOff}", "{}", "ImagePullBackOff of container main"},
	} {
		config := w.yaml(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+c.name+`}
spec:
  selector: {matchLabels: {app: `+c.name+`}}
  template:
    metadata: {labels: {app: `+c.name+`}, annotations: `+c.annotations+`}
    spec: {containers: [{name: main, image: main, resources: `+c.resources+`}]}
`, w.limit("8s"))
		_, r := w.apply(w.plan(thing{}, config))
		says(t, r.Diagnostics, "Object is not ready", c.why)
	}
	w.kubectl("create", "quota", "none", "--hard=pods=0")
	_, r := w.apply(w.plan(thing{}, w.yaml(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: refused}
spec:
  selector: {matchLabels: {app: refused}}
  template: {metadata: {labels: {app: refused}}, spec: {containers: [{name: main, image: main}]}}
`, w.limit("8s"))))
	says(t, r.Diagnostics, "Object is not ready", "exceeded quota: none")
}

// limit is a configuration's timeouts.
func (w *world) limit(d string) map[string]cty.Value {
	schema, _ := w.phase().Schema(w.t.Context())
	v := nulls(schema.Resources["kube_manifest"].Block.ImpliedType().AttributeType("timeouts"))
	for name := range v {
		v[name] = cty.StringVal(d)
	}
	return map[string]cty.Value{"timeouts": cty.ObjectVal(v)}
}
