package kubernetes

import (
	"errors"
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
