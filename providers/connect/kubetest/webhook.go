package kubetest

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
)

// Webhook serves an admission webhook until the test ends. The caller puts its
// result into a ValidatingWebhookConfiguration or a
// MutatingWebhookConfiguration. review's answer needs no UID; it is called from
// several goroutines.
func (c *Cluster) Webhook(t testing.TB, review func(*admission.AdmissionRequest) *admission.AdmissionResponse) registration.WebhookClientConfig {
	t.Helper()
	p, err := c.authority.server("webhook")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked admission.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Request == nil {
			http.Error(w, "no admission review", http.StatusBadRequest)
			return
		}
		answer := admission.AdmissionReview{TypeMeta: asked.TypeMeta, Response: review(asked.Request)}
		answer.Response.UID = asked.Request.UID
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the API server may have left
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	url := server.URL + "/"
	return registration.WebhookClientConfig{URL: &url, CABundle: c.authority.pem}
}
