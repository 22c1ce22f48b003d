package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/impersonate"
	"google.golang.org/api/option"

	"github.com/stokehq/stoke/providers"
)

// scope is what every call asks for; roles say what is allowed.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// tokenTime is how long Google may take to hand out the first token.
const tokenTime = 8 * time.Second

// tokens is a source of tokens that has handed out one, and the project that the
// credentials name for counting calls in.
func (s Settings) tokens(ctx context.Context) (source oauth2.TokenSource, counted string, err error) {
	type handed struct {
		source  oauth2.TokenSource
		counted string
		err     error
	}
	answer := make(chan handed, 1) // the search for credentials, and sources, know no end
	go func() {
		source, counted, err := s.first()
		answer <- handed{source, counted, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	select {
	case got := <-answer:
		return got.source, got.counted, got.err
	case <-ctx.Done():
		return nil, "", tokenError("these credentials", fmt.Errorf("no answer within %v", tokenTime))
	case <-providers.CallFrom(ctx).Stopping:
		return nil, "", tokenError("these credentials", errStopped)
	}
}

// first is the source, once it has handed out a token.
func (s Settings) first() (oauth2.TokenSource, string, error) {
	// The source outlives the call, and so does the context that it keeps.
	kept := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenTime})
	source, what, counted, err := s.source(kept)
	if err != nil {
		return nil, "", &Error{Summary: "No Google credentials", Kind: Unknown, Detail: strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + ".", Err: err}
	}
	if s.Impersonate != "" {
		counted = "" // that account may not know the project
		what = fmt.Sprintf("%s as %s", what, s.Impersonate)
		source, err = impersonate.CredentialsTokenSource(kept, impersonate.CredentialsConfig{TargetPrincipal: s.Impersonate, Scopes: []string{scope}}, option.WithTokenSource(source))
		if err != nil {
			return nil, "", &Error{Summary: "No Google credentials", Kind: Unknown, Detail: fmt.Sprintf("%s: %v", what, err), Err: err}
		}
	}
	source = oauth2.ReuseTokenSource(nil, source)
	if _, err = source.Token(); err != nil {
		return nil, "", tokenError(what, err)
	}
	return source, counted, nil
}

// defaultFile is the variable that names a file of credentials.
const defaultFile = "GOOGLE_APPLICATION_CREDENTIALS"

// source is the credentials, what they are called in messages, and the project that
// they name for counting calls in.
func (s Settings) source(ctx context.Context) (source oauth2.TokenSource, what, counted string, err error) {
	if s.CredentialsFile != "" {
		return fromFile(ctx, s.CredentialsFile, "the credentials in "+s.CredentialsFile)
	}
	if name := os.Getenv(defaultFile); name != "" {
		return fromFile(ctx, name, "the credentials in "+name+" ("+defaultFile+")")
	}
	found, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, "", "", errors.New("application default credentials are missing: run `gcloud auth " +
			"application-default login`, set " + defaultFile + ", or give credentials in the block provider \"gke\"")
	}
	return found.TokenSource, "the application default credentials", quotaProject(found.JSON), nil
}

// fromFile is the source of a file of credentials, which messages call what.
func fromFile(ctx context.Context, name, what string) (source oauth2.TokenSource, called, counted string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, "", "", fmt.Errorf("%s cannot be read: %w", what, err)
	}
	var head struct {
		Type google.CredentialsType `json:"type"`
	}
	if json.Unmarshal(text, &head) != nil || head.Type == "" {
		return nil, "", "", fmt.Errorf("%s are not in a file from Google: give the key of a service account, or the "+
			"file that `gcloud auth application-default login` wrote", what)
	}
	found, err := google.CredentialsFromJSONWithType(ctx, text, head.Type, scope)
	if err != nil {
		return nil, "", "", fmt.Errorf("%s cannot be used as %q", what, head.Type) // the library's error may quote it
	}
	return found.TokenSource, what, quotaProject(text), nil
}

// quotaProject is the project that a file of credentials names for counting calls in.
func quotaProject(text []byte) string {
	var file struct {
		QuotaProject string `json:"quota_project_id"`
	}
	_ = json.Unmarshal(text, &file) // of a machine's own credentials there is no file
	return file.QuotaProject
}

// tokenError is the reason why there is no token, with the remedy.
func tokenError(what string, err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.ErrorCode == "" { // keys of service accounts leave the answer as it is
		var said struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		if json.Unmarshal(refused.Body, &said) == nil {
			refused.ErrorCode, refused.ErrorDescription = said.Error, said.Description
		}
	}
	if refused != nil && refused.ErrorCode != "" {
		detail := fmt.Sprintf("Google hands out no token for %s (%s", what, refused.ErrorCode)
		if refused.ErrorDescription != "" {
			detail += ": " + strings.TrimSuffix(refused.ErrorDescription, ".")
		}
		detail += "). "
		if refused.ErrorCode == "invalid_grant" {
			return &Error{Summary: "Google credentials have expired", Kind: Unknown, Err: err, Reason: refused.ErrorCode,
				Detail: detail + "Log in again with `gcloud auth application-default login`, or make a new key; a clock that is wrong has the same effect."}
		}
		return &Error{Summary: "Google refuses the credentials", Kind: Unknown, Err: err, Reason: refused.ErrorCode, Detail: detail + "Look at the account that they are of."}
	}
	return &Error{Summary: "Google cannot be reached", Kind: Ambiguous, Err: err, Detail: fmt.Sprintf("No token came for %s: %v. Look at the network and its proxy.", what, err)}
}
