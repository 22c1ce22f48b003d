package kubetest

import (
	"context"
	"strings"
	"testing"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func TestWebhook(t *testing.T) {
	c := shared.Cluster(t)
	ns := c.Namespace(t)
	hook := c.Webhook(t, func(asked *admission.AdmissionRequest) *admission.AdmissionResponse {
		return &admission.AdmissionResponse{Allowed: asked.Name != "bad", Result: &metav1.Status{Message: "that name is bad"}}
	})
	none, fail := registration.SideEffectClassNone, registration.Fail
	hooks := c.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	made, err := hooks.Create(t.Context(), &registration.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kubetest-"},
		Webhooks: []registration.ValidatingWebhook{{
			Name: "names.kubetest.example", ClientConfig: hook, SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{core.LabelMetadataName: ns}},
			Rules: []registration.RuleWithOperations{{
				Operations: []registration.OperationType{registration.Create},
				Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hooks.Delete(context.Background(), made.Name, metav1.DeleteOptions{}) })
	try := func(ctx context.Context, name string) error {
		_, err := c.Client.CoreV1().ConfigMaps(ns).Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{DryRun: []string{"All"}})
		return err
	}
	c.Eventually(t, "the webhook refuses a bad name", func(ctx context.Context) (bool, error) {
		err := try(ctx, "bad")
		return err != nil && strings.Contains(err.Error(), "that name is bad"), err
	})
	if err := try(t.Context(), "good"); err != nil {
		t.Errorf("a good name: %v", err)
	}
}
