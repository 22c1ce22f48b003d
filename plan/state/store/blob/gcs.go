package blob

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
)

// GCS is the backend "gcs". Its arguments are Terraform's:
// https://developer.hashicorp.com/terraform/language/backend/gcs
func GCS() *backend.Kind {
	return &backend.Kind{Name: "gcs", Open: withPatience(openGCS), Arguments: []backend.Argument{
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
	g := &gcsBucket{name: c.String("bucket"), kms: c.String("kms_encryption_key")}
	key, err := encryptionKey(c.String("encryption_key"))
	if err != nil {
		return nil, err
	}
	if key != nil && g.kms != "" {
		return nil, errors.New("encryption_key and kms_encryption_key exclude each other")
	}
	if g.client, err = newGCSClient(ctx, c, tries); err != nil {
		return nil, err
	}
	g.client.key = key
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
	return &Backend{bucket: g, names: n, timing: object.DefaultTiming, close: g.client.close}, nil
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
