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
)

// scope is what every call asks for; roles say what is allowed.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// tokenTime is how long Google may take to hand out the first token.
const tokenTime = 8 * time.Second

// tokens is a source of tokens that has handed out one.
func (s Settings) tokens(ctx context.Context) (oauth2.TokenSource, error) {
	// The source outlives the call, and so does the context that it keeps.
	kept := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenTime})
	source, what, err := s.source(kept)
	if err != nil {
		return nil, &Error{Summary: "No Google credentials", Detail: strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + "."}
	}
	if s.Impersonate != "" {
		what = fmt.Sprintf("%s as %s", what, s.Impersonate)
		source, err = impersonate.CredentialsTokenSource(kept, impersonate.CredentialsConfig{TargetPrincipal: s.Impersonate, Scopes: []string{scope}}, option.WithTokenSource(source))
		if err != nil {
			return nil, &Error{Summary: "No Google credentials", Detail: fmt.Sprintf("%s: %v", what, err)}
		}
	}
	source = oauth2.ReuseTokenSource(nil, source)
	answer := make(chan error, 1) // sources know no context
	go func() {
		_, err := source.Token()
		answer <- err
	}()
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = fmt.Errorf("no answer within %v", tokenTime)
	}
	if err != nil {
		return nil, tokenError(what, err)
	}
	return source, nil
}

func (s Settings) source(ctx context.Context) (oauth2.TokenSource, string, error) {
	if s.CredentialsFile == "" {
		found, err := google.FindDefaultCredentials(ctx, scope)
		if err != nil {
			return nil, "", errors.New("there are no application default credentials: run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS, or give credentials in the block provider \"gke\"")
		}
		return found.TokenSource, "the application default credentials", nil
	}
	text, err := os.ReadFile(s.CredentialsFile)
	if err != nil {
		return nil, "", fmt.Errorf("the credentials cannot be read: %w", err)
	}
	var head struct {
		Type google.CredentialsType `json:"type"`
	}
	if json.Unmarshal(text, &head) != nil || head.Type == "" {
		return nil, "", fmt.Errorf("%s is no file of Google's credentials: give the key of a service account, or what `gcloud auth application-default login` wrote", s.CredentialsFile)
	}
	found, err := google.CredentialsFromJSONWithType(ctx, text, head.Type, scope)
	if err != nil {
		return nil, "", fmt.Errorf("%s cannot be used as %q", s.CredentialsFile, head.Type) // the library's error may quote it
	}
	return found.TokenSource, "the credentials in " + s.CredentialsFile, nil
}

// tokenError says why there is no token, and what to do.
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
			return &Error{Summary: "Google credentials have expired", Reason: refused.ErrorCode,
				Detail: detail + "Log in again with `gcloud auth application-default login`, or make a new key; a clock that is wrong has the same effect."}
		}
		return &Error{Summary: "Google refuses the credentials", Reason: refused.ErrorCode, Detail: detail + "Look at the account that they are of."}
	}
	return &Error{Summary: "Google cannot be reached", Detail: fmt.Sprintf("No token came for %s: %v. Look at the network and its proxy.", what, err)}
}
