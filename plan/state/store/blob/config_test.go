package blob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/api/option"

	"github.com/stokehq/stoke/plan/state/store/storetest"
)

func TestRefusedConfigurations(t *testing.T) {
	account := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(account, []byte(`{"type":"service_account","private_key":"no key"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		cloud, name string
		value       cty.Value
		want        string // "" for accepted
	}{
		{"s3", "key", text("/x"), "neither begin nor end with a slash"},
		{"s3", "workspace_key_prefix", text("env/"), "neither begin nor end with a slash"},
		{"s3", "sse_customer_key", text("short"), "32 bytes in base64"},
		{"s3", "secret_key", cty.NullVal(cty.String), "belong together"},
		{"s3", "retry_mode", text("never"), "retry_mode"},
		{"s3", "custom_ca_bundle", text("/nonexistent"), "custom_ca_bundle"},
		{"s3", "dynamodb_table", text("locks"), "use_lockfile = true"},
		{"s3", "shared_credentials_file", text("x"), "shared_credentials_files"},
		{"s3", "ec2_metadata_service_endpoint_mode", text("IPv5"), "ec2_metadata_service_endpoint_mode"},
		{"s3", "assume_role", cty.ObjectVal(map[string]cty.Value{"role_arn": text("arn:aws:iam::1:role/x"), "duration": text("1s")}), "from 15m to 12h"},
		{"s3", "assume_role_with_web_identity", cty.ObjectVal(map[string]cty.Value{"role_arn": text("arn:aws:iam::1:role/x")}), "web_identity_token"},
		{"s3", "endpoints", cty.ObjectVal(map[string]cty.Value{"sso": text("http://x")}), "AWS_ENDPOINT_URL_SSO"},
		{"s3", "kms_key_id", text("arn:aws:kms:x"), ""},
		{"gcs", "encryption_key", text("c2hvcnQ="), "32 bytes in base64"},
		{"gcs", "storage_custom_endpoint", text("storage.example.org"), "not an address such as"},
		{"gcs", "access_token", cty.NullVal(cty.String), "no credentials for Google Cloud"},
		{"gcs", "kms_encryption_key", text("projects/p/locations/l/keyRings/r/cryptoKeys/k"), ""},
	}
	for _, test := range tests {
		t.Run(test.cloud+" "+test.name, func(t *testing.T) {
			c := clouds()[test.cloud]
			arguments := c.arguments("http://127.0.0.1:1")
			arguments[test.name] = test.value
			_, err := openWith(t, c.kind, c.open, impatient, arguments)
			if test.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	for content, want := range map[string]string{"nofile": "neither the name of a file nor JSON", "{}": "credentials", account: ""} {
		c := clouds()["gcs"]
		arguments := c.arguments("http://127.0.0.1:1")
		delete(arguments, "access_token")
		arguments["credentials"] = text(content)
		b, err := openWith(t, c.kind, c.open, impatient, arguments)
		if err == nil { // the key is looked at when the first token is needed
			_, err = b.Workspaces(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "no key") {
			t.Errorf("credentials %q: %v", content, err)
		}
	}
}

// TestRefusingBuckets are those that do not let us in: what people are told
// names the cause, and never a secret.
func TestRefusingBuckets(t *testing.T) {
	for name, c := range clouds() {
		for _, test := range []struct {
			argument string
			value    cty.Value
			want     string
		}{
			{"bucket", text("elsewhere"), "there is no such bucket"},
			{"access_key", text("nobody"), "does not accept the credentials"},
			{"secret_key", text("hunter2"), "does not accept the credentials"},
			{"access_token", text("hunter2"), "does not accept the credentials"},
		} {
			srv := httptest.NewServer(c.server())
			defer srv.Close()
			arguments := c.arguments(srv.URL)
			if _, ok := arguments[test.argument]; !ok {
				continue
			}
			arguments[test.argument] = test.value
			b, err := openWith(t, c.kind, c.open, impatient, arguments)
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Workspaces(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s with another %s: %v", name, test.argument, err)
			}
			s, err := b.Store("default")
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.ReadSnapshot(t.Context()); err == nil {
				t.Errorf("%s with another %s: there is no state, and no error", name, test.argument)
			}
		}
	}
}

// TestImpersonation asks for another account's token with the first one's.
func TestImpersonation(t *testing.T) {
	var asked map[string]any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/projects/-/serviceAccounts/b@p.iam:generateAccessToken" || json.NewDecoder(r.Body).Decode(&asked) != nil {
			http.Error(w, `{"error":{"message":"Permission denied."}}`, http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"accessToken":"theirs","expireTime":"2030-01-02T03:04:05Z"}`)
	}))
	defer srv.Close()
	i := &impersonation{client: srv.Client(), service: srv.URL + "/v1/", account: "b@p.iam", delegates: []string{"a@p.iam"}}
	token, err := i.Token()
	if err != nil || token.AccessToken != "theirs" || token.Expiry.Year() != 2030 {
		t.Errorf("token %v, %v", token, err)
	}
	want := map[string]any{"delegates": []any{"projects/-/serviceAccounts/a@p.iam"}, "scope": []any{storageScope}, "lifetime": "3600s"}
	if d := cmp.Diff(want, asked); d != "" {
		t.Error(d)
	}
	i.account = "c@p.iam"
	if _, err := i.Token(); err == nil || !strings.Contains(err.Error(), "c@p.iam: 403 Forbidden: Permission denied") {
		t.Errorf("got %v", err)
	}
}

// TestGooglesLibrary has Google's own client read what ours writes, and the
// other way round.
func TestGooglesLibrary(t *testing.T) {
	ctx := t.Context()
	srv := httptest.NewServer(&storetest.GCS{Bucket: "b"})
	defer srv.Close()
	theirs, err := storage.NewClient(ctx, option.WithEndpoint(srv.URL+"/storage/v1/"), option.WithHTTPClient(srv.Client()))
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	c := clouds()["gcs"]
	b, err := openWith(t, c.kind, c.open, impatient, c.arguments(srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	ours, handle := b.(*Backend).bucket, theirs.Bucket("b").Object("a b/c+d?é.tfstate")
	version, err := ours.Put(ctx, handle.ObjectName(), []byte("one"), "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := handle.NewReader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if string(data) != "one" || err != nil || fmt.Sprint(r.Attrs.Generation) != version {
		t.Errorf("theirs reads %q at %d, and ours wrote version %s: %v", data, r.Attrs.Generation, version, err)
	}
	_ = r.Close()
	write(ctx, t, handle.If(storage.Conditions{GenerationMatch: r.Attrs.Generation}), "two")
	if _, err := ours.Put(ctx, handle.ObjectName(), []byte("three"), version); err == nil {
		t.Error("ours wrote over what theirs had written")
	}
	got, version, err := ours.Get(ctx, handle.ObjectName())
	if string(got) != "two" || err != nil {
		t.Errorf("ours reads %q: %v", got, err)
	}
	if keys, err := ours.List(ctx, "a b/", true); len(keys) != 1 || err != nil {
		t.Errorf("list %q: %v", keys, err)
	}
	if err := ours.Delete(ctx, handle.ObjectName(), version); err != nil {
		t.Error(err)
	}
	if _, err := handle.Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		t.Errorf("after the delete: %v", err)
	}
}

func write(ctx context.Context, t *testing.T, o *storage.ObjectHandle, content string) {
	t.Helper()
	w := o.NewWriter(ctx)
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
