package gke

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestOpening: what keeps Google Cloud from being used is one error, before
// anything is touched.
func TestOpening(t *testing.T) {
	for _, test := range []struct {
		name  string
		block func(t *testing.T) map[string]cty.Value
		want  string // in the summary; "" for what is fine
	}{
		{"fine", func(*testing.T) map[string]cty.Value { return nil }, ""},
		{"key", func(t *testing.T) map[string]cty.Value {
			return map[string]cty.Value{"credentials": cty.StringVal(key(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"access_token": "t", "token_type": "Bearer", "expires_in": 3600}`)
			}))}
		}, ""},
		{"expired", func(t *testing.T) map[string]cty.Value {
			return map[string]cty.Value{"credentials": cty.StringVal(key(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}`)
			}))}
		}, "credentials have expired"},
		{"no file", func(*testing.T) map[string]cty.Value {
			return map[string]cty.Value{"credentials": cty.StringVal("/nowhere/key.json")}
		}, "no Google credentials"},
		{"none at all", func(*testing.T) map[string]cty.Value {
			return map[string]cty.Value{"file_endpoint": cty.NullVal(cty.String)}
		}, "no Google credentials"},
		{"wrong project", func(*testing.T) map[string]cty.Value {
			return map[string]cty.Value{"project": cty.StringVal("other-project")}
		}, "no such project"},
		{"no network", func(*testing.T) map[string]cty.Value {
			return map[string]cty.Value{"container_endpoint": cty.StringVal("http://127.0.0.1:1")}
		}, "did not answer"},
		{"plain text elsewhere", func(*testing.T) map[string]cty.Value {
			return map[string]cty.Value{"compute_endpoint": cty.StringVal("http://10.0.0.1/compute/v1/")}
		}, "cannot be used"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			w.provider = test.block(t)
			_, diags := w.open()
			switch {
			case test.want == "" && len(diags) > 0:
				t.Error(diags)
			case test.want != "" && (len(diags) != 1 || !strings.Contains(strings.ToLower(diags[0].Summary), strings.ToLower(test.want))):
				t.Errorf("got %v, want one error with %q", diags, test.want)
			}
			if got := w.mutations(); len(got) > 0 {
				t.Errorf("touched: %v", got)
			}
		})
	}
}
