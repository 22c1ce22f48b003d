package kube

import (
	"strings"
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

// TestClaimWithoutAClass: a claim of a cluster without a default class says so.
func TestClaimWithoutAClass(t *testing.T) {
	w := newWorld(t)
	_, r := w.apply(w.plan(thing{}, w.yaml("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", w.limit("20s"))))
	says(t, r.Diagnostics, "Object is not ready", "no storage class is set")
}

// TestRefusalsNameTheirPlace: what the API server refuses is told with the document that
// declares it, and a mistyped kind with what may be meant.
func TestRefusalsNameTheirPlace(t *testing.T) {
	w := newWorld(t)
	says(t, w.plan(thing{}, w.yaml(configMap1("a", "1")+"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 99999}]}\n")).said(), "refuses the object", "It is declared in yaml, document 2")
	says(t, w.plan(thing{}, w.yaml("apiVersion: apps/v1\nkind: Deploymnt\nmetadata: {name: a}\n")).said(), "Unknown kind", "Did you mean apps/Deployment?")
	says(t, w.plan(thing{}, w.yaml(strings.Replace(replicated, "replicas", "replcas", 1))).said(), "refuses the object", "That is: spec.replcas is not a field: did you mean replicas?")
	crd := w.make(thing{}, w.yaml(shape))
	says(t, w.plan(thing{}, w.yaml(oneShape+"{sides: 3, colour: red}")).said(), "refuses the object", "That is: spec.colour is not a field: did you mean color?")
	w.destroy(crd)
	for _, a := range w.cluster.Audit(t, "") {
		if strings.HasPrefix(a.Agent, "stoke") {
			if a.Agent != "stoke/test" {
				t.Errorf("the User-Agent is %q", a.Agent)
			}
			return
		}
	}
	t.Error("no request has stoke's User-Agent")
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
