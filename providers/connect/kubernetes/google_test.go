package kubernetes

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/stokehq/stoke/providers/connect"
)

// source is one of tokens, as a function.
type source func() (*oauth2.Token, error)

func (f source) Token() (*oauth2.Token, error) { return f() }

// TestGoogleIsSlow: a source that never answers is given up with an error that
// says so; what one answers is passed on.
func TestGoogleIsSlow(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	hangs := &timedTokens{source(func() (*oauth2.Token, error) { <-never; return nil, nil }), time.Millisecond}
	if token, err := hangs.Token(); err == nil || !strings.Contains(err.Error(), "no token came from Google within 1ms") {
		t.Errorf("%v, %v", token, err)
	}
	want := errors.New("refused")
	answers := &timedTokens{source(func() (*oauth2.Token, error) { return &oauth2.Token{AccessToken: "a"}, want }), time.Hour}
	if token, err := answers.Token(); token == nil || token.AccessToken != "a" || err != want {
		t.Errorf("%v, %v", token, err)
	}
	// Every source of Google's has the limit.
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, []byte(`{"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for _, k := range []connect.Google{{}, {CredentialsFile: file}, {CredentialsFile: file, Impersonate: "ci@p.iam.gserviceaccount.com"}} {
		var e endpoint
		if err := e.google(k); err != nil {
			t.Fatal(err)
		}
		if s, ok := e.tokens.(*timedTokens); !ok || s.limit != 30*time.Second {
			t.Errorf("%#v: %#v", k, e.tokens)
		}
		if !strings.Contains(e.credential, k.Impersonate) {
			t.Errorf("%#v is called %q", k, e.credential)
		}
	}
}

// TestGoogleScopes: tokens tell the e-mail address of their account, which role bindings of Kubernetes name.
func TestGoogleScopes(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.FormValue("assertion"), ".")
		if len(parts) == 3 {
			claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
			asked = string(claims)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "t", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer server.Close()
	key, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "ci@p.iam.gserviceaccount.com", "token_uri": server.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for _, k := range []connect.Google{{}, {CredentialsFile: file}} {
		var e endpoint
		if err := e.google(k); err != nil {
			t.Fatal(err)
		}
		if _, err := e.tokens.Token(); err != nil || !strings.Contains(asked, "auth/cloud-platform") || !strings.Contains(asked, "auth/userinfo.email") {
			t.Errorf("%v: asked for %s", err, asked)
		}
	}
}
