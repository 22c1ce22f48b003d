//go:build e2e

package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// operatorKinds are the kinds of a generated operator.
var operatorKinds = []string{"Alpha", "Beta", "Gamma", "Delta", "Epsilon"}

// operator renders a manifest in the shape of public operators, in one file: CRDs of
// more than 300 KB and objects of their kinds, a webhook configuration, an aggregated
// role, a Deployment and a StatefulSet. The second version has fields and a version
// of the CRDs that the first does not have, another value of an immutable field, and
// neither the object nor the CRD of the last kind.
func operator(ns string, second bool) string {
	var b strings.Builder
	document := func(format string, args ...any) {
		fmt.Fprintf(&b, "---\n"+strings.ReplaceAll(format, "NS", ns)+"\n", args...)
	}
	kinds, version, serving, image, role := operatorKinds, "v1", "", "nginx:1", "all"
	if second {
		kinds, version, image, role = kinds[:len(kinds)-1], "v2", "nginx:2", "part"
	}
	for _, kind := range kinds {
		plural := strings.ToLower(kind) + "s"
		schema := wideSchema(second)
		serving = fmt.Sprintf("  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: %s}}", schema)
		if second {
			serving += fmt.Sprintf("\n  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: %s}}", schema)
		}
		document("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "+plural+".NS.example.com}\n"+
			"spec:\n  group: NS.example.com\n  names: {kind: "+kind+", plural: "+plural+"}\n  scope: Namespaced\n  versions:\n%s", serving)
		more := ""
		if second {
			more = ", added: x"
		}
		document("apiVersion: NS.example.com/" + version + "\nkind: " + kind + "\nmetadata: {name: one}\nspec: {field1: a" + more + "}")
	}
	document("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: NS-operator}\nwebhooks:\n" +
		"- {name: check.NS.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, timeoutSeconds: 1,\n" +
		"   clientConfig: {service: {namespace: NS, name: web, path: /check}}, rules: [{apiGroups: [NS.example.com], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: ['*']}]}")
	document("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-all}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate-to: NS}}]}\nrules: []")
	document("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-part, labels: {aggregate-to: NS}}\nrules: [{apiGroups: [NS.example.com], resources: ['*'], verbs: [get, list]}]")
	document("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NS-all}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-" + role + "}\n" +
		"subjects: [{kind: ServiceAccount, name: web, namespace: NS}]")
	document("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}")
	document("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {image: " + image + "}")
	document("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}")
	template := "template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: web, containers: [{name: web, image: " + image + "}]}}"
	document("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {app: web}}, " + template + "}")
	document("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: store}\nspec: {serviceName: web, replicas: 1, selector: {matchLabels: {app: web}}, " + template + "}")
	return b.String()
}

// wideSchema is a schema of more than 300 KB, in JSON.
func wideSchema(second bool) string {
	var fields []string
	for n := range 1500 {
		fields = append(fields, fmt.Sprintf(`"field%d": {"type": "string", "description": %q}`, n, strings.Repeat("What this field is for. ", 8)))
	}
	if second {
		fields = append(fields, `"added": {"type": "string"}`)
	}
	return `{"type": "object", "properties": {"spec": {"type": "object", "properties": {` + strings.Join(fields, ", ") + `}}}}`
}

// operating is a configuration of a version of the operator, in one file.
func (w *world) operating(second bool) cty.Value {
	w.t.Helper()
	text := operator(w.ns, second)
	if n := len(text) / len(operatorKinds); n < 300<<10 {
		w.t.Fatalf("a CRD has %d bytes", n)
	}
	file := filepath.Join(w.t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.conf("kube_manifest", map[string]cty.Value{"path": cty.StringVal(file), "namespace": cty.StringVal(w.ns), "prune_data": cty.True})
}

// remains lists what carries the mark of a resource.
func (w *world) remains(id string) string {
	w.t.Helper()
	return w.kubectl("get", "crd,clusterroles,clusterrolebindings,validatingwebhookconfigurations,deployments,statefulsets,services,configmaps,serviceaccounts",
		"-l", "stoke.dev/managed="+id, "-o", "name")
}

// TestOperatorAppliesAtFirst applies a new operator ten times: each first apply
// succeeds, and each destroy leaves nothing. One of them is changed by hand, repaired,
// and upgraded in between.
func TestOperatorAppliesAtFirst(t *testing.T) {
	const rounds = 10
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			w := newWorld(t)
			config := w.operating(false)
			it := w.empty(w.make(thing{}, config), config)
			id := it.state.GetAttr("id").AsString()
			if left := w.remains(id); strings.Count(left, "\n")+1 != len(operatorKinds)+9 {
				t.Errorf("made were %s", left)
			}
			if round == 0 {
				it = w.changedByHand(it, config)
				config = w.operating(true)
				it = w.empty(w.make(it, config), config)
				if got := w.field("clusterrolebinding/"+w.ns+"-all", ".roleRef.name") + " " + w.field("alphas.v2."+w.ns+".example.com/one", ".spec.added"); got != w.ns+"-part x" {
					t.Errorf("the upgrade made %s", got)
				}
				if got := w.kubectl("get", "crd", "epsilons."+w.ns+".example.com", "--ignore-not-found", "-o", "name"); got != "" {
					t.Errorf("%s is left of the first version", got)
				}
			}
			w.destroy(it)
			if left := w.remains(id); left != "" {
				t.Errorf("the destroy left %s", left)
			}
		})
	}
}

// changedByHand changes objects of the operator by hand, and has them repaired.
func (w *world) changedByHand(it thing, config cty.Value) thing {
	w.t.Helper()
	look := func() string {
		return strings.Join([]string{
			w.field("deployment/web", ".spec.template.spec.containers[0].image"), w.field("configmap/web", ".data.image"),
			w.field("clusterrole/"+w.ns+"-part", ".rules[0].verbs"), w.field("crd/alphas."+w.ns+".example.com", ".spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.field1.type"),
			w.field("alphas."+w.ns+".example.com/one", ".spec.field1"), w.field("serviceaccount/web", ".metadata.name"),
		}, " ")
	}
	before := look()
	w.kubectl("set", "image", "deployment/web", "web=nginx:3")
	w.kubectl("delete", "configmap", "web")
	w.kubectl("delete", "serviceaccount", "web")
	w.kubectl("patch", "clusterrole", w.ns+"-part", "--type=json", "-p", `[{"op":"replace","path":"/rules/0/verbs","value":["get"]}]`)
	w.kubectl("patch", "crd", "alphas."+w.ns+".example.com", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/field1/type","value":"integer"}]`)
	w.kubectl("patch", "betas."+w.ns+".example.com", "one", "--type=merge", "-p", `{"spec":{"field1":"by hand"}}`)
	if after := look(); after == before {
		w.t.Fatal("nothing was changed by hand")
	}
	it = w.empty(w.make(w.refresh(it), config), config)
	if after := look(); after != before || w.field("betas."+w.ns+".example.com/one", ".spec.field1") != "a" {
		w.t.Errorf("repaired is %s, want %s", after, before)
	}
	return it
}
