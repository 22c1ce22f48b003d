package blob

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"github.com/zclconf/go-cty/cty"
	"gocloud.dev/blob/gcsblob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/impersonate"
	"google.golang.org/api/option"

	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
)

// GCS is the backend "gcs". Its arguments are Terraform's:
// https://developer.hashicorp.com/terraform/language/backend/gcs
func GCS() *backend.Kind {
	return &backend.Kind{Name: "gcs", Open: patient(openGCS), Arguments: []backend.Argument{
		{Name: "bucket", Type: cty.String, Required: true},
		{Name: "prefix", Type: cty.String},
		{Name: "credentials", Type: cty.String, Secret: true, Environment: []string{"GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS"}},
		{Name: "access_token", Type: cty.String, Secret: true, Environment: []string{"GOOGLE_OAUTH_ACCESS_TOKEN"}},
		{Name: "impersonate_service_account", Type: cty.String, Environment: []string{"GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"}},
		{Name: "impersonate_service_account_delegates", Type: cty.List(cty.String)},
		{Name: "encryption_key", Type: cty.String, Secret: true, Environment: []string{"GOOGLE_ENCRYPTION_KEY"}},
		{Name: "kms_encryption_key", Type: cty.String, Environment: []string{"GOOGLE_KMS_ENCRYPTION_KEY"}},
		{Name: "storage_custom_endpoint", Type: cty.String, Environment: []string{"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT"}},
	}}
}

func openGCS(ctx context.Context, c backend.Config, tries patience) (backend.Backend, error) {
	name := c.String("bucket")
	g := &gcsBucket{name: name, kms: c.String("kms_encryption_key"), attempts: tries.attempts}
	var err error
	if g.key, err = encryptionKey(c.String("encryption_key")); err != nil {
		return nil, err
	}
	if g.key != nil && g.kms != "" {
		return nil, errors.New("encryption_key and kms_encryption_key exclude each other")
	}
	options, err := gcsOptions(ctx, c)
	if err != nil {
		return nil, err
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	client.SetRetry(storage.WithBackoff(gax.Backoff{Initial: tries.first, Max: tries.most, Multiplier: 2}), storage.WithMaxAttempts(tries.attempts))
	if g.bucket, err = gcsblob.OpenBucket(ctx, nil, name, &gcsblob.Options{Client: client}); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	prefix := strings.TrimLeft(c.String("prefix"), "/")
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	n := names{
		snapshot: func(workspace string) string { return path.Join(prefix, workspace+".tfstate") },
		lock:     func(workspace string) string { return path.Join(prefix, workspace+".tflock") },
		prefix:   prefix, shallow: true,
		workspace: func(key string) string {
			w, ok := strings.CutSuffix(strings.TrimPrefix(key, prefix), ".tfstate")
			if !ok {
				return ""
			}
			return w
		},
	}
	return &Backend{bucket: g, names: n, timing: object.DefaultTiming, close: func() error {
		return errors.Join(g.bucket.Close(), client.Close())
	}}, nil
}

// encryptionKey decodes a key that the customer keeps.
func encryptionKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	content, err := fileOrText(text)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(content))
	if err != nil || len(key) != 32 {
		return nil, errors.New("encryption_key must be 32 bytes in base64")
	}
	return key, nil
}

// fileOrText is the content of a file, if the text is the name of one.
func fileOrText(text string) (string, error) {
	name := text
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		name = filepath.Join(home, rest)
	}
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return text, nil
	}
	b, err := os.ReadFile(name)
	return string(b), err
}

// gcsOptions are where the service is and who asks it.
func gcsOptions(ctx context.Context, c backend.Config) ([]option.ClientOption, error) {
	options := []option.ClientOption{option.WithUserAgent(c.Caller)}
	if endpoint := c.String("storage_custom_endpoint"); endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint))
	}
	if c.Getenv("STORAGE_EMULATOR_HOST") != "" {
		// The library takes the address from there, and asks for nobody.
		return append(options, option.WithoutAuthentication(), option.WithHTTPClient(&http.Client{})), nil
	}
	source, err := gcsTokens(ctx, c)
	if err != nil {
		return nil, err
	}
	return append(options, option.WithTokenSource(source)), nil
}

// gcsTokens is where access tokens come from. The context ends with the
// program: tokens are fetched whenever one has run out.
func gcsTokens(ctx context.Context, c backend.Config) (oauth2.TokenSource, error) {
	ctx = context.WithoutCancel(ctx)
	source, err := gcsOwnTokens(ctx, c)
	if err != nil {
		return nil, err
	}
	target := c.String("impersonate_service_account")
	if target == "" {
		return source, nil
	}
	return impersonate.CredentialsTokenSource(ctx, impersonate.CredentialsConfig{
		TargetPrincipal: target, Scopes: []string{storage.ScopeReadWrite}, Delegates: c.Strings("impersonate_service_account_delegates"),
	}, option.WithTokenSource(source))
}

func gcsOwnTokens(ctx context.Context, c backend.Config) (oauth2.TokenSource, error) {
	scope := storage.ScopeReadWrite
	if c.String("impersonate_service_account") != "" {
		scope = "https://www.googleapis.com/auth/cloud-platform"
	}
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
		found, err := google.CredentialsFromJSON(ctx, []byte(content), scope) //nolint:staticcheck // the user's own configuration
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
