package kubetest

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Webhook serves an admission webhook until the test ends. The caller puts its
// result into a ValidatingWebhookConfiguration or a
// MutatingWebhookConfiguration. review's answer needs no UID; it is called from
// several goroutines.
func (c *Cluster) Webhook(t testing.TB, review func(*admission.AdmissionRequest) *admission.AdmissionResponse) registration.WebhookClientConfig {
	t.Helper()
	server := c.webhookServer(t, func(w http.ResponseWriter, r *http.Request) {
		var asked admission.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Request == nil {
			http.Error(w, "no admission review", http.StatusBadRequest)
			return
		}
		answer := admission.AdmissionReview{TypeMeta: asked.TypeMeta, Response: review(asked.Request)}
		answer.Response.UID = asked.Request.UID
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the API server may have left
	})
	server.StartTLS()
	t.Cleanup(server.Close)
	url := server.URL + "/"
	return registration.WebhookClientConfig{URL: &url, CABundle: c.authority.pem}
}

// webhookServer is a server, not started yet, with a certificate that API servers trust
// by the cluster's CA.
func (c *Cluster) webhookServer(t testing.TB, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	p, err := c.authority.server("webhook")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(serve)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	return server
}

// ConversionWebhook returns the URL and the CA certificate, in PEM, of a conversion webhook
// that gives every object the requested version and changes nothing else of it. It answers
// between a call of start and a call of stop, or the end of the test; at other times its
// port refuses connections.
func (c *Cluster) ConversionWebhook(t testing.TB) (url string, ca []byte, start, stop func()) {
	t.Helper()
	place, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := place.Addr().String()
	place.Close()
	var server *httptest.Server
	stop = func() {
		if server != nil {
			server.CloseClientConnections()
			server.Close()
			server = nil
		}
	}
	t.Cleanup(func() { stop() })
	start = func() {
		t.Helper()
		stop()
		on, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server = c.webhookServer(t, convertVersions)
		server.Listener.Close()
		server.Listener = on
		server.StartTLS()
	}
	return "https://" + address + "/", c.authority.pem, start, stop
}

// conversionReview is the ConversionReview of apiextensions.k8s.io/v1.
type conversionReview struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Request    *conversionRequest  `json:"request,omitempty"`
	Response   *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type conversionResponse struct {
	UID              string           `json:"uid"`
	ConvertedObjects []map[string]any `json:"convertedObjects"`
	Result           metav1.Status    `json:"result"`
}

// convertVersions answers a conversion review with the same objects in the requested
// version.
func convertVersions(w http.ResponseWriter, r *http.Request) {
	var review conversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no conversion review", http.StatusBadRequest)
		return
	}
	for _, u := range review.Request.Objects {
		u["apiVersion"] = review.Request.DesiredAPIVersion
	}
	review.Response = &conversionResponse{review.Request.UID, review.Request.Objects, metav1.Status{Status: metav1.StatusSuccess}}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server may have left
}
