//go:build e2e

package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// operatorKinds are the kinds of a generated operator: five to seven of them.
var operatorKinds = []string{"Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta", "Eta"}

// shapes is the number of different operators.
const shapes = 20

// operator renders a manifest in the shape of public operators, in one file: CRDs of
// more than 300 KB and objects of their kinds, one of them without namespaces, a webhook
// configuration, an aggregated role, a Deployment and a StatefulSet. Shapes differ in the
// number of kinds, in further objects, and in the order of the documents. The second
// version has fields and a version of the CRDs that the first does not have, other values
// of immutable fields, and neither the object nor the CRD of the last kind. marked is the
// number of objects that are not of these kinds.
func operator(ns string, shape int, second bool) (text string, marked int) {
	var all []string
	document := func(format string, args ...any) {
		all = append(all, fmt.Sprintf("---\n"+strings.ReplaceAll(format, "NS", ns)+"\n", args...))
	}
	kinds, version, serving, image, role, value := operatorKinds[:5+shape%3], "v1", "", "nginx:1", "all", 5
	if second {
		kinds, version, image, role, value = kinds[:len(kinds)-1], "v2", "nginx:2", "part", 6
	}
	for _, kind := range kinds {
		plural := strings.ToLower(kind) + "s"
		schema := wideSchema(second)
		serving = fmt.Sprintf("  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: %s}}", schema)
		if second {
			serving += fmt.Sprintf("\n  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: %s}}", schema)
		}
		scope, name, more := "Namespaced", "one", ""
		if kind == "Gamma" {
			scope, name = "Cluster", "NS-one"
		}
		document("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "+plural+".NS.example.com}\n"+
			"spec:\n  group: NS.example.com\n  names: {kind: "+kind+", plural: "+plural+"}\n  scope: "+scope+"\n  versions:\n%s", serving)
		if second {
			more = ", added: x"
		}
		document("apiVersion: NS.example.com/" + version + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {field1: a" + more + "}")
	}
	const hook = "- {name: check.NS.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, timeoutSeconds: 1,\n" +
		"   clientConfig: {service: {namespace: NS, name: web, path: /check}}, rules: [{apiGroups: [NS.example.com], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: ['*']}]}"
	document("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: NS-operator}\nwebhooks:\n" + hook)
	document("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-all}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate-to: NS}}]}\nrules: []")
	document("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-part, labels: {aggregate-to: NS}}\nrules: [{apiGroups: [NS.example.com], resources: ['*'], verbs: [get, list]}]")
	document("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NS-all}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-" + role + "}\n" +
		"subjects: [{kind: ServiceAccount, name: web, namespace: NS}]")
	document("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}")
	document("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {image: " + image + "}")
	document("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}")
	pod := "{metadata: {labels: {app: web}}, spec: {serviceAccountName: web, containers: [{name: web, image: " + image + "}]}}"
	document("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {app: web}}, template: " + pod + "}")
	document("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: store}\nspec: {serviceName: web, replicas: 1, selector: {matchLabels: {app: web}}, template: " + pod + "}")
	if shape%4 == 1 {
		document("apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: NS-operator}\nwebhooks:\n" + hook)
	}
	if shape%5 == 0 {
		document("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS-high}\nvalue: %d", value)
	}
	switch shape / 3 % 3 {
	case 0:
		document("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec: {selector: {matchLabels: {app: web}}, template: " + pod + "}")
		document("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}")
	case 1:
		document("apiVersion: batch/v1\nkind: Job\nmetadata: {name: setup}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: " + image + "}]}}}")
	case 2:
		document("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec: {podSelector: {matchLabels: {app: web}}}")
	}
	marked = len(all) - len(kinds)
	at := shape * 7 % len(all)
	return strings.Join(append(all[at:len(all):len(all)], all[:at]...), ""), marked
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

// operating is a configuration of a version of an operator, in one file.
func (w *world) operating(shape int, second bool) cty.Value {
	w.t.Helper()
	text, _ := operator(w.ns, shape, second)
	if n := len(text) / len(operatorKinds[:5+shape%3]); !second && n < 300<<10 {
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
	return w.kubectl("get", "crd,clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations,priorityclasses,"+
		"deployments,statefulsets,daemonsets,jobs,services,configmaps,serviceaccounts,poddisruptionbudgets,networkpolicies",
		"-l", "stoke.dev/managed="+id, "-o", "name")
}

// TestOperatorAppliesAtFirst applies a new operator of another shape ten times, or
// STOKE_OPERATORS times: each first apply succeeds, and each destroy leaves nothing. Every
// fifth of them is changed by hand, repaired, and upgraded in between; of 100 rounds, each
// shape once.
func TestOperatorAppliesAtFirst(t *testing.T) {
	rounds := 10
	if given, err := strconv.Atoi(os.Getenv("STOKE_OPERATORS")); err == nil {
		rounds = given
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			w, shape := newWorld(t), round%shapes
			config := w.operating(shape, false)
			it := w.empty(w.make(thing{}, config), config)
			id := it.state.GetAttr("id").AsString()
			if _, marked := operator(w.ns, shape, false); strings.Count(w.remains(id), "\n")+1 != marked {
				t.Errorf("made were %s, want %d objects", w.remains(id), marked)
			}
			if round%5 == round/shapes%5 {
				it = w.changedByHand(it, config)
				it = w.upgraded(it, shape)
			}
			w.destroy(it)
			if left := w.remains(id); left != "" {
				t.Errorf("the destroy left %s", left)
			}
		})
	}
}

// upgraded applies the second version of an operator.
func (w *world) upgraded(it thing, shape int) thing {
	w.t.Helper()
	config := w.operating(shape, true)
	it = w.empty(w.make(it, config), config)
	if got := w.field("clusterrolebinding/"+w.ns+"-all", ".roleRef.name") + " " + w.field("alphas.v2."+w.ns+".example.com/one", ".spec.added"); got != w.ns+"-part x" {
		w.t.Errorf("the upgrade made %s", got)
	}
	last := strings.ToLower(operatorKinds[4+shape%3]) + "s." + w.ns + ".example.com"
	if got := w.kubectl("get", "crd", last, "--ignore-not-found", "-o", "name"); got != "" {
		w.t.Errorf("%s is left of the first version", got)
	}
	return it
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
