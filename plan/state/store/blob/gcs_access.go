package blob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/stokehq/stoke/plan/state/backend"
)

// What tokens are good for: objects in buckets, and, to speak for another
// account, everything that the first one may do.
const (
	storageScope  = "https://www.googleapis.com/auth/devstorage.read_write"
	platformScope = "https://www.googleapis.com/auth/cloud-platform"
)

// gcsTokens is where access tokens come from. The context ends with the
// program: tokens are fetched whenever one has run out.
func gcsTokens(ctx context.Context, c backend.Config) (oauth2.TokenSource, error) {
	ctx = context.WithoutCancel(ctx)
	target := c.String("impersonate_service_account")
	if target == "" {
		return gcsOwnTokens(ctx, c, storageScope)
	}
	source, err := gcsOwnTokens(ctx, c, platformScope)
	if err != nil {
		return nil, err
	}
	return oauth2.ReuseTokenSource(nil, &impersonation{
		client: oauth2.NewClient(ctx, source), service: iamCredentials,
		account: target, delegates: c.Strings("impersonate_service_account_delegates"),
	}), nil
}

func gcsOwnTokens(ctx context.Context, c backend.Config, scope string) (oauth2.TokenSource, error) {
	if token := c.String("access_token"); token != "" {
		content, err := fileOrText(token)
		if err != nil {
			return nil, fmt.Errorf("access_token: %w", err)
		}
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: strings.TrimSpace(content)}), nil
	}
	if text := c.String("credentials"); text != "" {
		content, err := fileOrText(text)
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		if !strings.HasPrefix(strings.TrimSpace(content), "{") {
			return nil, errors.New("credentials: it is neither the name of a file nor JSON")
		}
		//lint:ignore SA1019 it is the user's own configuration, of any type
		found, err := google.CredentialsFromJSON(ctx, []byte(content), scope)
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		return found.TokenSource, nil
	}
	found, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("no credentials for Google Cloud: %w", err)
	}
	return found.TokenSource, nil
}

// iamCredentials is the service that gives tokens of service accounts.
const iamCredentials = "https://iamcredentials.googleapis.com/v1/"

// impersonation gets tokens of a service account:
// https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken
type impersonation struct {
	client    *http.Client // that asks with the first account's tokens
	service   string
	account   string
	delegates []string
}

// Token fetches a token for an hour.
func (i *impersonation) Token() (*oauth2.Token, error) {
	const accounts = "projects/-/serviceAccounts/"
	ask := struct {
		Delegates []string `json:"delegates,omitempty"`
		Scope     []string `json:"scope"`
		Lifetime  string   `json:"lifetime"`
	}{Scope: []string{storageScope}, Lifetime: "3600s"}
	for _, d := range i.delegates {
		ask.Delegates = append(ask.Delegates, accounts+d)
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	resp, err := i.client.Post(i.service+accounts+url.PathEscape(i.account)+":generateAccessToken", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("impersonate %s: %w", i.account, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("impersonate %s: %w", i.account, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("impersonate %s: %w", i.account, &gcsError{status: resp.StatusCode, message: gcsMessage(answer)})
	}
	var token struct {
		AccessToken string
		ExpireTime  time.Time
	}
	if err := json.Unmarshal(answer, &token); err != nil || token.AccessToken == "" {
		return nil, fmt.Errorf("impersonate %s: the answer holds no token", i.account)
	}
	return &oauth2.Token{AccessToken: token.AccessToken, Expiry: token.ExpireTime}, nil
}
