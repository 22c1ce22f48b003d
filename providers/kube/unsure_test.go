package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// What could not be checked at plan is not promised, so that the second plan
// has nothing to do: numbers as the cluster writes them, kinds that are made
// along, in a namespace or in none.
func TestUncheckedIsNotPromised(t *testing.T) {
	w := newWorld(t)
	crd := func(kind, scope string) string {
		return strings.NewReplacer("KIND", kind, "LOWER", strings.ToLower(kind), "SCOPE", scope, "GROUP", w.ns+".example.com").Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: LOWERs.GROUP}
spec:
  group: GROUP
  names: {kind: KIND, plural: LOWERs}
  scope: SCOPE
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: GROUP/v1
kind: KIND
metadata: {name: a}
size: 1
---
`)
	}
	text := crd("Local", "Namespaced") + crd("Global", "Cluster") + `
apiVersion: v1
kind: Namespace
metadata: {name: NS-made}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS-made}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx, resources: {requests: {cpu: 1000m}}}]}
`
	for name, given := range map[string]map[string]cty.Value{
		"no namespace":   {"namespace": cty.NullVal(cty.String), "prune_data": cty.True},
		"in a namespace": {"prune_data": cty.True},
	} {
		t.Run(name, func(t *testing.T) {
			config := w.yaml(text, given)
			pl := w.plan(thing{}, config)
			if pl.said().HasErrors() {
				t.Fatal(pl.said())
			}
			in := w.ns
			if given["namespace"] != cty.NilVal {
				in = "default"
			}
			group := w.ns + ".example.com/"
			for _, key := range []string{group + "Local/" + in + "/a", group + "Global/a", "apps/Deployment/" + w.ns + "-made/web"} {
				if pl.objects()[key] != "unknown" {
					t.Errorf("%s is planned as %q of %v", key, pl.objects()[key], pl.objects())
				}
			}
			it := w.make(thing{}, config)
			it = w.empty(it, config)
			w.destroy(it)
		})
	}
}

// What cannot be there twice under any name is made anew without a dry run.
func TestMadeAnewWithoutADryRun(t *testing.T) {
	w := newWorld(t)
	conf := func(ip string) cty.Value {
		return w.yaml("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {" + ip + "ports: [{port: 80, nodePort: 30999}], type: NodePort}\n---\n" + configMap1("beside", "1"))
	}
	it := w.make(thing{}, conf(""))
	now := w.field("service/s", ".spec.clusterIP")
	next := now[:strings.LastIndex(now, ".")+1] + "77"
	pl := w.plan(w.refresh(it), conf("clusterIP: "+next+", "))
	if pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), "is checked at apply") {
		t.Fatalf("%v %v", pl.said(), pl.notes)
	}
	it = w.make(w.refresh(it), conf("clusterIP: "+next+", "))
	w.empty(it, conf("clusterIP: "+next+", "))
	if got := w.field("service/s", ".spec.clusterIP"); got != next {
		t.Errorf("its address is %s", got)
	}
}

// A user who may neither list nor watch is waited for by single reads.
func TestWaitingWithoutWatches(t *testing.T) {
	w := newWorld(t)
	w.config = w.cluster.KubeconfigFor(t, kubetest.Login{User: "narrow"})
	w.kubectl("create", "role", "narrow", "--verb=get,create,patch,delete", "--resource=deployments.apps,configmaps")
	w.kubectl("create", "rolebinding", "narrow", "--role=narrow", "--user=narrow")
	w.kubectl("create", "clusterrole", "narrow-"+w.ns, "--verb=get", "--resource=namespaces", "--resource-name=kube-system")
	w.kubectl("create", "clusterrolebinding", "narrow-"+w.ns, "--clusterrole=narrow-"+w.ns, "--user=narrow")
	config := w.yaml(strings.Split(web, "---")[0])
	it := w.make(thing{}, config)
	if got := w.field("deployment/web", ".status.readyReplicas"); got != "2" {
		t.Errorf("%s replicas were ready", got)
	}
	it = w.empty(it, config)
	w.destroy(it)
	if got := w.field("deployment/web", ".metadata.uid"); got != "" {
		t.Error("destroy left it")
	}
}

// Where nothing has changed, no API server is asked by a plan without a refresh.
func TestPlanWithoutACluster(t *testing.T) {
	w := newWorld(t)
	config := w.yaml(configMap1("a", "1"))
	it := w.make(thing{}, config)
	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	whole := w.config
	w.config = filepath.Join(t.TempDir(), "kubeconfig")
	gone := strings.ReplaceAll(string(text), w.cluster.Endpoint, "https://127.0.0.1:1")
	if gone == string(text) {
		t.Fatalf("the kubeconfig does not name %s", w.cluster.Endpoint)
	}
	if err := os.WriteFile(w.config, []byte(gone), 0o600); err != nil {
		t.Fatal(err)
	}
	if pl := w.plan(it, config); pl.said().HasErrors() || !pl.noop() {
		t.Errorf("%v, nothing to do %v", pl.said(), pl.noop())
	}
	says(t, w.plan(it, w.yaml(configMap1("a", "2"))).said(), "cannot be reached", "")
	w.config = whole
	w.destroy(it)
}
