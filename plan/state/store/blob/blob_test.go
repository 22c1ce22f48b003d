package blob

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// impatient tries once more, at once.
var impatient = patience{attempts: 2, first: time.Millisecond, most: 2 * time.Millisecond}

// unhurried leases do not end however busy the machine is.
var unhurried = object.Timing{Lease: time.Hour, Renew: 50 * time.Millisecond}

type opener = func(ctx context.Context, c backend.Config, tries patience) (backend.Backend, error)

// openWith opens a backend as a backend block does.
func openWith(t testing.TB, k *backend.Kind, open opener, tries patience, arguments map[string]cty.Value) (backend.Backend, error) {
	t.Helper()
	c, problems := k.Resolve(arguments, func(string) string { return "" })
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	c.Caller = "stoke-test"
	b, err := open(t.Context(), c, tries)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { b.Close() })
	b.(*Backend).timing = unhurried
	return b, nil
}

func text(s string) cty.Value { return cty.StringVal(s) }

// cloud is a kind of backend and a server of its kind.
type cloud struct {
	kind   *backend.Kind
	open   opener
	server func() http.Handler
	// arguments configure the backend for the server at a URL.
	arguments func(url string) map[string]cty.Value
}

func clouds() map[string]cloud {
	s3 := func(old bool) cloud {
		return cloud{S3(), openS3, func() http.Handler {
			return &storetest.S3{Bucket: "b", AccessKey: "AK", SecretKey: "SK", OldDelete: old}
		}, func(url string) map[string]cty.Value {
			return map[string]cty.Value{
				"bucket": text("b"), "key": text("path/to/x.tfstate"), "region": text("eu-central-1"), "use_path_style": cty.True,
				"access_key": text("AK"), "secret_key": text("SK"),
				"endpoints": cty.ObjectVal(map[string]cty.Value{"s3": text(url)}),
			}
		}}
	}
	return map[string]cloud{
		"s3": s3(false), "s3 without conditional deletes": s3(true),
		"gcs": {GCS(), openGCS, func() http.Handler { return &storetest.GCS{Bucket: "b", Token: "tok"} }, func(url string) map[string]cty.Value {
			return map[string]cty.Value{
				"bucket": text("b"), "prefix": text("path/to"), "access_token": text("tok"), "storage_custom_endpoint": text(url + "/storage/v1/"),
			}
		}},
	}
}

// place starts a server and returns how processes open the default state.
func (c cloud) place(t testing.TB, h http.Handler) func() state.Store {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return func() state.Store {
		b, err := openWith(t, c.kind, c.open, impatient, c.arguments(srv.URL))
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Store(backend.DefaultWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// TestMain keeps the machine's own credentials and emulators out.
func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "GOOGLE_") || name == "STORAGE_EMULATOR_HOST" {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	for name, c := range clouds() {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Harness{
				Place: func(t testing.TB) func() state.Store { return c.place(t, c.server()) },
				Info:  true,
			})
		})
	}
}

func TestSabotage(t *testing.T) {
	all := clouds()
	delete(all, "s3 without conditional deletes") // the same requests
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Sabotage(t, storetest.Sabotaged{
				Place: func(t testing.TB) (func() state.Store, *storetest.Saboteur) {
					s := &storetest.Saboteur{Server: c.server()}
					return c.place(t, s), s
				},
				Patience: time.Minute,
			})
		})
	}
}
