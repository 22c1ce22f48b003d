package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
)

// crdOf is a CRD with versions.
func crdOf(w *world, kind, versions string) string {
	return strings.NewReplacer("GROUP", w.ns, "KIND", kind, "PLURAL", strings.ToLower(kind)+"s", "VERSIONS", versions).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP.example.com}
spec:
  group: GROUP.example.com
  names: {kind: KIND, plural: PLURAL}
  scope: Namespaced
  versions:VERSIONS
---
`)
}

// version is one of a CRD's, whose spec has fields, such as "size".
func version(name string, storage bool, bytes int, fields ...string) string {
	var properties []string
	for i, f := range fields {
		text := ""
		if i == 0 {
			text = strings.Repeat("x", bytes)
		}
		properties = append(properties, fmt.Sprintf("%s: {type: integer, description: %q}", f, text))
	}
	return fmt.Sprintf("\n  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}", name, storage, strings.Join(properties, ", "))
}

func custom(w *world, kind, version, spec string) string {
	return fmt.Sprintf("apiVersion: %s.example.com/%s\nkind: %s\nmetadata: {name: a}\nspec: {%s}\n---\n", w.ns, version, kind, spec)
}

var pruning = map[string]cty.Value{"prune_data": cty.True}

// TestCRDsAndTheirObjects: five large CRDs and an object of each are applied in one
// manifest at the first attempt, whatever the API server serves when.
func TestCRDsAndTheirObjects(t *testing.T) {
	w := newWorld(t)
	var text strings.Builder
	for _, kind := range []string{"One", "Two", "Three", "Four", "Five"} {
		text.WriteString(custom(w, kind, "v1", "size: 5") + crdOf(w, kind, version("v1", true, 400_000, "size")))
	}
	config := w.yaml(text.String(), pruning)
	for range 3 {
		it := w.empty(w.make(thing{}, config), config)
		w.destroy(it)
	}
}

// TestKindServedLate: a CRD is established some time before its kind is among those that
// the API server tells of.
func TestKindServedLate(t *testing.T) {
	w := newWorld(t)
	g := w.through()
	config := w.yaml(custom(w, "Thing", "v1", "size: 5")+crdOf(w, "Thing", version("v1", true, 0, "size")), pruning)
	pl := w.plan(thing{}, config)
	if pl.said().HasErrors() {
		t.Fatal(pl.said())
	}
	g.mu.Lock()
	g.late = 6
	g.mu.Unlock()
	it, r := w.apply(pl)
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	w.destroy(w.empty(it, config))
}

// TestCRDChangesWithItsObjects: a CRD that gets a field, or a version, changes together
// with objects that use it: in one manifest, and in two of which one depends on the
// other. What does not fit the new schema the plan refuses.
func TestCRDChangesWithItsObjects(t *testing.T) {
	for name, c := range map[string]struct{ versions, served, spec string }{
		"field":   {version("v1", true, 0, "size", "num"), "v1", "size: 5, num: 6"},
		"version": {version("v1", false, 0, "size") + version("v2", true, 0, "size", "num"), "v2", "size: 5, num: 6"},
	} {
		t.Run(name+" in one", func(t *testing.T) {
			w := newWorld(t)
			first := w.yaml(crdOf(w, "Thing", version("v1", true, 0, "size"))+custom(w, "Thing", "v1", "size: 5"), pruning)
			second := w.yaml(crdOf(w, "Thing", c.versions)+custom(w, "Thing", c.served, c.spec), pruning)
			it := w.empty(w.make(thing{}, first), first)
			wrong := w.yaml(crdOf(w, "Thing", c.versions)+custom(w, "Thing", c.served, c.spec+", nmu: 7"), pruning)
			says(t, w.plan(it, wrong).said(), badObject, "nmu")
			pl := w.plan(it, second)
			if pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), "is checked at apply") {
				t.Fatal(pl.said(), pl.notes)
			}
			it = w.empty(w.make(it, second), second)
			if got := w.field("things."+w.ns+".example.com/a", ".spec.num"); got != "6" {
				t.Errorf("it is %q", got)
			}
			w.destroy(it)
		})
		t.Run(name+" in two", func(t *testing.T) {
			w := newWorld(t)
			crds, objects := named("crds"), named("objects")
			step := func(crd, object cty.Value) {
				p := w.phase()
				a := w.planIn(p, crds, crd)
				b := w.planIn(p, objects, object)
				diags, _ := w.review(a, b)
				if a.Diagnostics.HasErrors() || b.Diagnostics.HasErrors() || diags.HasErrors() {
					t.Fatal(a.Diagnostics, b.Diagnostics, diags)
				}
				p = w.phase()
				var r providers.ApplyResponse
				if crds, r = w.applyIn(p, a); r.Diagnostics.HasErrors() {
					t.Fatal(r.Diagnostics)
				}
				if objects, r = w.applyIn(p, b); r.Diagnostics.HasErrors() {
					t.Fatal(r.Diagnostics)
				}
				w.empty(crds, crd)
				w.empty(objects, object)
			}
			step(w.yaml(crdOf(w, "Thing", version("v1", true, 0, "size")), pruning), w.yaml(custom(w, "Thing", "v1", "size: 5"), pruning))
			step(w.yaml(crdOf(w, "Thing", c.versions), pruning), w.yaml(custom(w, "Thing", c.served, c.spec), pruning))
			w.destroy(objects)
			w.destroy(crds)
		})
	}
}

// TestWebhookThatComesLater: objects that a webhook has to look at which does not run
// yet are applied when it does.
func TestWebhookThatComesLater(t *testing.T) {
	w := newWorld(t)
	answers := w.cluster.Webhook(t, func(*admission.AdmissionRequest) *admission.AdmissionResponse {
		return &admission.AdmissionResponse{Allowed: true}
	})
	down := "https://127.0.0.1:1/"
	none, fail, exact, second := registration.SideEffectClassNone, registration.Fail, registration.Exact, int32(1)
	hook := &registration.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Webhooks: []registration.ValidatingWebhook{{
		Name: "later.example.com", ClientConfig: registration.WebhookClientConfig{URL: &down, CABundle: answers.CABundle}, SideEffects: &none, FailurePolicy: &fail, MatchPolicy: &exact,
		AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: &second,
		Rules:             []registration.RuleWithOperations{{Operations: []registration.OperationType{"*"}, Rule: registration.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"configmaps"}}}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}},
	}}}
	hooks := w.cluster.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hook, err := hooks.Create(t.Context(), hook, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.cluster.Kubectl(t, "", "delete", "validatingwebhookconfiguration", w.ns, "--ignore-not-found")
	})
	w.cluster.Eventually(t, "the API server asks the webhook", func(ctx context.Context) (bool, error) {
		_, err := w.cluster.Client.CoreV1().ConfigMaps(w.ns).Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}, metav1.CreateOptions{DryRun: []string{"All"}})
		return err != nil, nil
	})
	config := w.yaml(configMap1("a", "1"))
	pl := w.plan(thing{}, config)
	if pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), "is checked at apply: a webhook of the cluster does not answer") {
		t.Fatal(pl.said(), pl.notes)
	}
	done := make(chan error, 1)
	waits := make(chan struct{}, 100)
	go func() { // it comes up once the apply was refused
		<-waits
		hook.Webhooks[0].ClientConfig = answers
		_, err := hooks.Update(t.Context(), hook, metav1.UpdateOptions{})
		done <- err
	}()
	ctx := providers.WithCall(t.Context(), &providers.Call{Operation: "op-" + w.ns, Address: pl.prior.address(), Progress: func(p providers.Progress) {
		if strings.Contains(p.Step, "a webhook does not answer") {
			select {
			case waits <- struct{}{}:
			default:
			}
		}
	}})
	r := w.phase().Apply(ctx, providers.ApplyRequest{Type: pl.kind, Prior: pl.prior.state, Planned: pl.Planned, Config: pl.config, Private: pl.Private})
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.empty(thing{kind: pl.kind, state: r.State, private: r.Private}, config)
}
