package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"
	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestItemsOfAColleague: items that a colleague adds to our lists by a server-side apply
// are drift where a person's tool has added them, and stay where another manager has.
// A value of ours that a colleague takes by force is taken back.
func TestItemsOfAColleague(t *testing.T) {
	quick := map[string]cty.Value{"wait": cty.False}
	more := strings.Replace(less, `env: [{name: A, value: "1"}]`, `env: [{name: A, value: "1"}, {name: C, value: "3"}]`, 1)
	other := strings.Replace(less, `env: [{name: A, value: "1"}]`, `env: [{name: A, value: "9"}]`, 1)
	for manager, drifts := range map[string]bool{"kubectl": true, "colleague": false} {
		t.Run(manager, func(t *testing.T) {
			w := newWorld(t)
			config := w.yaml(less, quick)
			it := w.empty(w.make(thing{}, config), config)
			theirs := func(text string, flags ...string) {
				t.Helper()
				w.cluster.Kubectl(t, strings.ReplaceAll(text, "NS", w.ns), append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}, flags...)...)
			}
			envs := func() string {
				return w.field("deployment/web", ".spec.template.spec.containers[0].env[*].name") + " " + w.field("deployment/web", ".spec.template.spec.containers[0].env[*].value")
			}
			theirs(more)
			now := w.refresh(it)
			pl := w.plan(now, config)
			if pl.said().HasErrors() || pl.noop() == drifts {
				t.Errorf("nothing to do %v: %v %v", pl.noop(), pl.said(), pl.notes)
			}
			it = w.empty(w.make(now, config), config)
			if want := map[bool]string{true: "A 1", false: "A C 1 3"}[drifts]; envs() != want {
				t.Errorf("the environment is %q, want %q", envs(), want)
			}
			theirs(other, "--force-conflicts")
			now = w.refresh(it)
			pl = w.plan(now, config)
			if pl.said().HasErrors() || pl.noop() || !strings.Contains(strings.Join(pl.notes, "\n"), "is taken back from") {
				t.Errorf("nothing to do %v: %v %v", pl.noop(), pl.said(), pl.notes)
			}
			it = w.empty(w.make(now, config), config)
			if envs() != "A 1" {
				t.Errorf("the environment is %q", envs())
			}
			w.destroy(it)
		})
	}
}

// TestQuotaRefusesAtApply: of two objects that each would fit in a quota the second is
// refused at apply. The next plans have it until the quota allows it.
func TestQuotaRefusesAtApply(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "quota", "few", "--hard=count/configmaps=2") // kube-root-ca.crt is one
	w.cluster.Eventually(t, "the quota is counted", quotaCounts(w))
	config := w.yaml(configMap1("a", "1") + configMap1("b", "1"))
	pl := w.plan(thing{}, config)
	if pl.said().HasErrors() {
		t.Fatal(pl.said())
	}
	it, r := w.apply(pl)
	says(t, r.Diagnostics, "Quota of the namespace exceeded", "few")
	if !r.Keep {
		t.Error("the object that was made is to be made anew")
	}
	it = w.refresh(it)
	says(t, w.plan(it, config).said(), "Quota of the namespace exceeded", "few")
	w.kubectl("patch", "quota", "few", "--type=merge", "-p", `{"spec":{"hard":{"count/configmaps":"3"}}}`)
	w.cluster.Eventually(t, "the plan has what is missing", func(context.Context) (bool, error) {
		pl := w.plan(it, config)
		if pl.noop() && !pl.said().HasErrors() {
			t.Fatal("a plan has nothing to do, and an object is missing")
		}
		return !pl.said().HasErrors(), nil
	})
	w.empty(w.make(it, config), config)
}

// mutates has a webhook change the field data.a of the ConfigMaps of the test's namespace.
func (w *world) mutates(change func(string) string) {
	w.t.Helper()
	client := w.cluster.Webhook(w.t, func(asked *admission.AdmissionRequest) *admission.AdmissionResponse {
		var u core.ConfigMap
		if json.Unmarshal(asked.Object.Raw, &u) != nil || u.Data["a"] == "" || asked.Namespace != w.ns {
			return &admission.AdmissionResponse{Allowed: true}
		}
		patch, kind := fmt.Appendf(nil, `[{"op":"replace","path":"/data/a","value":%q}]`, change(u.Data["a"])), admission.PatchTypeJSONPatch
		return &admission.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &kind}
	})
	none, fail := registration.SideEffectClassNone, registration.Fail
	_, err := w.cluster.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(w.t.Context(), &registration.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Webhooks: []registration.MutatingWebhook{{
			Name: "mutates.example.com", ClientConfig: client, SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			Rules:             []registration.RuleWithOperations{{Operations: []registration.OperationType{"CREATE", "UPDATE"}, Rule: registration.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"configmaps"}}}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.cluster.Kubectl(w.t, "", "delete", "mutatingwebhookconfiguration", w.ns, "--ignore-not-found")
	})
	w.cluster.Eventually(w.t, "the webhook changes objects", func(ctx context.Context) (bool, error) {
		u, err := w.cluster.Client.CoreV1().ConfigMaps(w.ns).Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Data: map[string]string{"a": "p"}}, metav1.CreateOptions{DryRun: []string{"All"}})
		return err == nil && u.Data["a"] != "p", nil
	})
}

// TestWebhookThatMutates: a webhook changes a value that is declared. The plan shows the
// changed value, and the next plan is empty, also where each request gets another value.
// A later change of the declaration is planned and applied.
func TestWebhookThatMutates(t *testing.T) {
	var calls atomic.Int64
	for name, change := range map[string]func(string) string{
		"the same":    func(s string) string { return strings.TrimSuffix(s, "!") + "!" },
		"another one": func(s string) string { return fmt.Sprintf("%.1s-%d", s, calls.Add(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mutates(change)
			config := w.yaml(configMap1("a", "1"))
			pl := w.plan(thing{}, config)
			if text := pl.objects()["ConfigMap/"+w.ns+"/a"]; pl.said().HasErrors() || !strings.Contains(text, `a: 1`) {
				t.Fatalf("%v, planned %q", pl.said(), text)
			}
			it, r := w.apply(pl)
			if r.Diagnostics.HasErrors() {
				t.Fatal(r.Diagnostics)
			}
			it = w.empty(it, config)
			config = w.yaml(configMap1("a", "2"))
			if it, r = w.apply(w.plan(it, config)); r.Diagnostics.HasErrors() {
				t.Fatal(r.Diagnostics)
			}
			it = w.empty(it, config)
			if got := w.field("configmap/a", ".data.a"); !strings.HasPrefix(got, "2") {
				t.Errorf("it is %q", got)
			}
			w.destroy(it)
		})
	}
}

// TestNamespaceThatDoesNotGo: a declared namespace that is being deleted, and that a
// finalizer in it holds, is planned, also after an apply that waited for it in vain.
func TestNamespaceThatDoesNotGo(t *testing.T) {
	w := newWorld(t)
	inner := w.ns + "-inner"
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-inner}\n---\n" + strings.Replace(configMap1("a", "1"), "{name: a}", "{name: a, namespace: NS-inner}", 1)
	config := w.yaml(text, pruning)
	it := w.empty(w.make(thing{}, config), config)
	w.kubectl("-n", inner, "create", "configmap", "held")
	w.kubectl("-n", inner, "patch", "configmap", "held", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	w.kubectl("delete", "namespace", inner, "--wait=false")
	w.cluster.Eventually(t, "the namespace's content goes", func(context.Context) (bool, error) {
		return w.kubectl("-n", inner, "get", "configmap", "a", "--ignore-not-found", "-o", "name") == "", nil
	})
	short := w.yaml(text, within("5s"))
	for range 2 {
		now := w.refresh(it)
		pl := w.plan(now, short)
		if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || pl.noop() || !strings.Contains(notes, "Namespace "+inner+" is being deleted: stoke waits for that, and recreates it") {
			t.Fatalf("nothing to do %v: %v %s", pl.noop(), pl.said(), notes)
		}
		got, resp := w.apply(pl)
		says(t, resp.Diagnostics, "Object does not go", "example.com/slow")
		it = got
	}
	w.kubectl("-n", inner, "patch", "configmap", "held", "--type=merge", "-p", `{"metadata":{"finalizers":[]}}`)
	it = w.empty(w.make(w.refresh(it), config), config)
	w.destroy(it)
}

// TestServiceChangedByHand: what people change of a Service's port is drift, which the
// next apply repairs.
func TestServiceChangedByHand(t *testing.T) {
	for name, patch := range map[string]string{
		"name":   `[{"op":"replace","path":"/spec/ports/0/name","value":"other"}]`,
		"target": `[{"op":"replace","path":"/spec/ports/0/targetPort","value":9999}]`,
		"number": `[{"op":"replace","path":"/spec/ports/0/port","value":81},{"op":"replace","path":"/spec/ports/1/port","value":82}]`,
		"gone":   `[{"op":"remove","path":"/spec/ports/1"}]`,
		"added":  `[{"op":"add","path":"/spec/ports/2","value":{"name":"more","port":7}}]`,
		"type":   `[{"op":"replace","path":"/spec/type","value":"NodePort"},{"op":"replace","path":"/spec/ports/0/nodePort","value":31234}]`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := w.yaml("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: ClusterIP, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, {name: metrics, port: 90}]}\n")
			it := w.empty(w.make(thing{}, config), config)
			look := func() string {
				return w.field("service/web", ".spec.type") + w.field("service/web", ".spec.ports[*].name") + w.field("service/web", ".spec.ports[*].port") + w.field("service/web", ".spec.ports[*].targetPort")
			}
			before := look()
			w.kubectl("patch", "service", "web", "--type=json", "-p", patch)
			now := w.refresh(it)
			if pl := w.plan(now, config); pl.said().HasErrors() || pl.noop() {
				t.Fatalf("nothing to do %v: %v %v", pl.noop(), pl.said(), pl.notes)
			}
			it = w.empty(w.make(now, config), config)
			if got := look(); got != before {
				t.Errorf("it is %s, want %s", got, before)
			}
			w.destroy(it)
		})
	}
}

// TestUndeclaredFieldBlocks: a field that people have set and that excludes a declared one
// is named, for the apply does not remove it. The plan is empty once the field is removed.
func TestUndeclaredFieldBlocks(t *testing.T) {
	w := newWorld(t)
	config := w.yaml("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {minAvailable: 1, selector: {matchLabels: {app: a}}}\n", map[string]cty.Value{"wait": cty.False})
	it := w.empty(w.make(thing{}, config), config)
	w.kubectl("patch", "pdb", "a", "--type=merge", "-p", `{"spec":{"minAvailable":null,"maxUnavailable":1}}`)
	now := w.refresh(it)
	says(t, w.plan(now, config).said(), "The API server refuses the object", "The reason may be .spec.maxUnavailable, which the manifest leaves out and kubectl-patch has set")
	w.kubectl("patch", "pdb", "a", "--type=merge", "-p", `{"spec":{"maxUnavailable":null}}`)
	it = w.empty(w.make(w.refresh(now), config), config)
	w.destroy(it)
}

// TestResizeThatIsRefused: a bound claim of a manifest whose class does not grow, or that
// should shrink, stays as it is, and the plan of the old size is empty.
func TestResizeThatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.cluster.Kubectl(t, strings.ReplaceAll("{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], storageClassName: none, hostPath: {path: /srv}}}", "NS", w.ns), "apply", "-f", "-")
	t.Cleanup(func() { w.cluster.Kubectl(t, "", "delete", "persistentvolume", w.ns) })
	claim := func(size string) cty.Value {
		return w.yaml("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], storageClassName: none, volumeName: NS, resources: {requests: {storage: " + size + "}}}\n---\n" + configMap1("a", size))
	}
	it := w.empty(w.make(thing{}, claim("2Gi")), claim("2Gi"))
	uid := w.field("pvc/a", ".metadata.uid")
	says(t, w.plan(w.refresh(it), claim("3Gi")).said(), "The API server refuses the object", "only dynamically provisioned pvc can be resized")
	says(t, w.plan(w.refresh(it), claim("1Gi")).said(), "Data would be deleted", "prune_data = true")
	it = w.empty(it, claim("2Gi"))
	if w.field("pvc/a", ".metadata.uid") != uid {
		t.Error("it is another one")
	}
	w.destroy(it)
}

// TestImportThenRefused: each request of the first apply after an import is refused once.
// The next plan has everything that is missing.
func TestImportThenRefused(t *testing.T) {
	w := newWorld(t)
	g := w.through()
	config := w.yaml(configMap1("d", "1") + configMap1("e", "1"))
	want := map[string]string{"configmap/d .data": `{"a":"1"}`, "configmap/e .data": `{"a":"1"}`}
	for _, after := range []bool{false, true} {
		for n, met := 0, true; met && !t.Failed(); n++ {
			for _, name := range []string{"d", "e"} {
				w.cluster.Kubectl(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: "+w.ns+"}\ndata: {a: \"1\", b: \"2\"}\n", "apply", "-f", "-")
			}
			it := w.imported("kube_manifest", "ConfigMap/"+w.ns+"/d,ConfigMap/"+w.ns+"/e")
			pl := w.plan(it, config)
			if pl.said().HasErrors() {
				t.Fatal(pl.said())
			}
			g.refuse(n, after)
			got, _ := w.apply(pl)
			what := g.open()
			met = what != ""
			w.destroy(w.repaired(got, config, fmt.Sprintf("%s refused (effect: %v)", what, after), want))
		}
	}
}

// TestAggregatedAPIThatIsAway: an APIService without a server does not stop plans and
// applies of other groups.
func TestAggregatedAPIThatIsAway(t *testing.T) {
	w := newWorld(t)
	service := "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.NS.example.com}\nspec: {group: NS.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: nothing, namespace: NS, port: 443}}\n---\n"
	config := w.yaml(service+configMap1("a", "1"), map[string]cty.Value{"wait": cty.False})
	it := w.empty(w.make(thing{}, config), config)
	config = w.yaml(service+configMap1("a", "2"), map[string]cty.Value{"wait": cty.False})
	it = w.empty(w.make(w.refresh(it), config), config)
	w.destroy(it)
}
