package cloud

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
)

// keyFile is a service account's key whose tokens come from this server.
func keyFile(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	body, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "ci@p.iam.gserviceaccount.com", "private_key_id": "1", "private_key": string(text), "token_uri": server.URL})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, `{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}`)
}

// TestCredentials: what is wrong with credentials is said in words of their own,
// wherever they come from.
func TestCredentials(t *testing.T) {
	expired := keyFile(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w) })
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, file, variable, summary string
		says                          []string
	}{
		{"file, not there", "/nowhere/key.json", "", "No Google credentials", []string{"/nowhere/key.json"}},
		{"file of something else", empty, "", "No Google credentials", []string{empty, "not in a file from Google"}},
		{"file, expired", expired, "", "Google credentials have expired", []string{expired, "invalid_grant", "Token has been expired or revoked", "gcloud auth application-default login"}},
		{"variable, not there", "", "/nowhere/default.json", "No Google credentials", []string{"/nowhere/default.json", "GOOGLE_APPLICATION_CREDENTIALS"}},
		{"variable, expired", "", expired, "Google credentials have expired", []string{expired, "GOOGLE_APPLICATION_CREDENTIALS"}},
	} {
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", test.variable)
		_, _, err := Settings{CredentialsFile: test.file}.tokens(t.Context())
		var e *Error
		if !errors.As(err, &e) || e.Summary != test.summary {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for _, s := range test.says {
			if !strings.Contains(e.Detail, s) {
				t.Errorf("%s: %q lacks %q", test.name, e.Detail, s)
			}
		}
	}
}

// TestCredentialsExpire: where a token runs out and no other one is handed out, the
// next call says so, and is not made again.
func TestCredentialsExpire(t *testing.T) {
	asked := atomic.Int32{}
	file := keyFile(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			refuse(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "t", "token_type": "Bearer", "expires_in": 1}`) // at once, since the last seconds do not count
	})
	tokens, _, err := Settings{CredentialsFile: file}.tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	google := httptest.NewServer(http.NotFoundHandler())
	defer google.Close()
	s, err := compute.NewService(t.Context(), option.WithEndpoint(google.URL+"/compute/v1/"), option.WithTokenSource(tokens))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	_, err = Read(t.Context(), &Cloud{pace: pace}, func(ctx context.Context) (*compute.Disk, error) {
		calls++
		return s.Disks.Get("p", "z", "d").Context(ctx).Do()
	})
	var e *Error
	if !errors.As(err, &e) || e.Kind != Unknown || e.Reason != "invalid_grant" || calls != 1 {
		t.Errorf("%d calls: %#v", calls, err)
	}
}

// TestQuotaProject: calls are counted in the project that the credentials name, unless
// the provider block names another one.
func TestQuotaProject(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "t", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "adc.json")
	text := fmt.Sprintf(`{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": %q, "quota_project_id": "counted"}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for _, test := range []struct{ file, given, want string }{{file, "", "counted"}, {"", "", "counted"}, {file, "other", "other"}} {
		c, err := Open(t.Context(), Settings{Project: "p", CredentialsFile: test.file, QuotaProject: test.given, Transport: REST})
		if err != nil {
			t.Fatal(err)
		}
		if c.QuotaProject != test.want {
			t.Errorf("%+v: calls are counted in %q", test, c.QuotaProject)
		}
		_ = c.Close()
	}
}
