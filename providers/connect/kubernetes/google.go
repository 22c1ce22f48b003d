package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/impersonate"
	"google.golang.org/api/option"

	"github.com/stokehq/stoke/providers/connect"
)

// scopes are the scopes of tokens for Google's API servers,
// https://cloud.google.com/kubernetes-engine/docs/how-to/api-server-authentication
// Without the second one the API server knows a service account by its number, and role bindings to its
// e-mail address do not match.
func scopes() []string {
	return []string{"https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"}
}

// googleTime is how long Google may take to hand out a token.
const googleTime = 30 * time.Second

// google makes a source of tokens. It asks for none yet.
func (e *endpoint) google(k connect.Google) error {
	// The context is of the source, which lives as long as the client.
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: googleTime})
	source, err := e.googleSource(ctx, k)
	if err != nil {
		return err
	}
	if k.Impersonate != "" {
		e.credential += " as " + k.Impersonate
		source, err = impersonate.CredentialsTokenSource(ctx, impersonate.CredentialsConfig{TargetPrincipal: k.Impersonate, Scopes: scopes()}, option.WithTokenSource(source))
		if err != nil {
			return err
		}
	}
	e.tokens = &timedTokens{source, googleTime}
	return nil
}

func (e *endpoint) googleSource(ctx context.Context, k connect.Google) (oauth2.TokenSource, error) {
	if k.CredentialsFile == "" {
		e.credential = "Google's application default credentials"
		found, err := google.FindDefaultCredentials(ctx, scopes()...)
		if err != nil {
			return nil, errors.New("none found: run `gcloud auth application-default login`, or set " +
				"GOOGLE_APPLICATION_CREDENTIALS or credentials_file")
		}
		return found.TokenSource, nil
	}
	e.credential = "Google's credentials in " + k.CredentialsFile
	path, err := connect.ExpandHome(k.CredentialsFile)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var head struct {
		Type google.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(text, &head); err != nil || head.Type == "" {
		return nil, errors.New("it is not a file of Google credentials")
	}
	found, err := google.CredentialsFromJSONWithType(ctx, text, head.Type, scopes()...)
	if err != nil {
		return nil, fmt.Errorf("it cannot be used as %q", head.Type) // the library's error may quote it
	}
	return found.TokenSource, nil
}

// timedTokens gives up on a source that does not answer: the protocol of
// sources has no context.
type timedTokens struct {
	oauth2.TokenSource
	limit time.Duration
}

// Token is that of oauth2.TokenSource.
func (s *timedTokens) Token() (*oauth2.Token, error) {
	type answer struct {
		token *oauth2.Token
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		token, err := s.TokenSource.Token()
		answers <- answer{token, err}
	}()
	select {
	case a := <-answers:
		return a.token, a.err
	case <-time.After(s.limit):
		return nil, fmt.Errorf("no token came from Google within %v; look at the way to oauth2.googleapis.com, or to metadata.google.internal on its machines", s.limit)
	}
}
