package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const documents = "testdata/documents"

// written puts the documents into a folder for a test's namespace; without the
// lines that are removed later where later is set. It says how many there are.
func (w *world) written(later bool) (dir string, n int) {
	w.t.Helper()
	dir = w.t.TempDir()
	files, err := filepath.Glob(documents + "/*.yaml")
	if err != nil || len(files) == 0 {
		w.t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		n += strings.Count(string(text), "\nkind:")
		var kept strings.Builder
		for line := range strings.Lines(string(text)) {
			if !later || !strings.HasSuffix(line, "# removed later\n") {
				kept.WriteString(line)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(strings.ReplaceAll(kept.String(), "NS", w.ns)), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return dir, n
}

// sidecars injects a container into the Deployments of the namespace.
func (w *world) sidecars() {
	w.t.Helper()
	client := w.cluster.Webhook(w.t, func(asked *admission.AdmissionRequest) *admission.AdmissionResponse {
		var o struct {
			Spec struct {
				Template struct {
					Spec struct{ Containers []struct{ Name string } }
				}
			}
		}
		answer := &admission.AdmissionResponse{Allowed: true}
		if json.Unmarshal(asked.Object.Raw, &o) != nil || len(o.Spec.Template.Spec.Containers) != 1 {
			return answer
		}
		kind := admission.PatchTypeJSONPatch
		answer.PatchType = &kind
		answer.Patch = []byte(`[{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "sidecar", "image": "proxy:1"}},
			{"op": "add", "path": "/metadata/annotations", "value": {"example.com/injected": "yes"}}]`)
		return answer
	})
	none, name := registration.SideEffectClassNone, "sidecar-"+w.ns
	hooks := w.cluster.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := hooks.Create(w.t.Context(), &registration.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registration.MutatingWebhook{{
			Name: "sidecar.example.com", ClientConfig: client, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}},
			ObjectSelector:    &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}},
			Rules: []registration.RuleWithOperations{{
				Operations: []registration.OperationType{registration.Create, registration.Update},
				Rule:       registration.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = hooks.Delete(context.Background(), name, metav1.DeleteOptions{}) })
}

// TestDocuments: documents of the kinds that people use give an empty second
// plan, although the server fills in defaults, controllers and webhooks write to
// the objects, kubectl annotates them, and fields are removed.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	w.sidecars()
	dir, n := w.written(false)
	if n < 40 {
		t.Fatalf("%d documents", n)
	}
	config := func(dir string) cty.Value {
		return w.conf("kube_manifest", map[string]cty.Value{"path": cty.StringVal(dir), "namespace": cty.StringVal(w.ns), "prune_data": cty.True})
	}
	it := w.make(thing{}, config(dir))
	w.cluster.Eventually(t, "the autoscaler has set the replicas, and the sidecar is there", func(context.Context) (bool, error) {
		return w.kubectl("get", "deployment", "worker", "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[*].name}") == "2 worker sidecar", nil
	})
	it = w.empty(it, config(dir))
	w.kubectl("annotate", "deployment,service,configmap,secret,statefulset,daemonset,job,ingress", "--all", "note=by somebody", "kubectl.kubernetes.io/last-applied-configuration={}", "--overwrite")
	w.kubectl("label", "deployment,service,configmap", "--all", "team=other")
	it = w.empty(it, config(dir))

	later, _ := w.written(true)
	it = w.make(it, config(later))
	it = w.empty(it, config(later))
	for _, c := range []struct{ object, at, want string }{
		{"deployment/web", "{.metadata.labels.tier}{.spec.template.metadata.annotations}{.spec.template.spec.containers[0].lifecycle}", ""},
		{"deployment/web", "{.spec.template.spec.containers[0].env[*].name}", "POD CPUS TOKEN"},
		{"deployment/web", "{.spec.revisionHistoryLimit}", "10"},
		{"service/web", "{.spec.ports[*].name}", "http"},
		{"configmap/web", "{.data.LEVEL}", ""},
		{"ingress/web", "{.spec.rules[0].http.paths[*].path}", "/"},
		{"cronjob/clean", "{.spec.successfulJobsHistoryLimit}", "3"},
		{"daemonset/agent", "{.spec.template.spec.nodeSelector}", ""},
		{"role/reader", "{.rules[*].resources[*]}", "pods deployments"},
		{"priorityclass/" + w.ns + "-low", "{.description}", ""},
		{"deployment/worker", "{.spec.replicas} {.spec.template.spec.containers[*].name}", "2 worker sidecar"},
	} {
		if got := w.kubectl("get", c.object, "-o", "jsonpath="+c.at); got != c.want {
			t.Errorf("%s %s is %q, want %q", c.object, c.at, got, c.want)
		}
	}
	w.destroy(it)
	for _, kind := range []string{"deployment,statefulset,daemonset,job,pvc,ingress,trainings." + w.ns + ".example.com", "crd/trainings." + w.ns + ".example.com", fmt.Sprintf("pv/%s-data", w.ns)} {
		if out, err := w.cluster.TryKubectl(t, w.cluster.Kubeconfig(), "", "-n", w.ns, "get", kind, "-o", "name", "--ignore-not-found"); err == nil && strings.TrimSpace(out) != "" {
			t.Errorf("destroy left %s", out)
		}
	}
}
