package gke

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestOpening: what keeps Google Cloud from being used is one error, before
// anything is touched.
func TestOpening(t *testing.T) {
	t.Parallel()
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
		}, "cannot be reached"},
		{"no network over REST", func(*testing.T) map[string]cty.Value {
			return map[string]cty.Value{"container_endpoint": cty.StringVal("http://127.0.0.1:1"), "transport": cty.StringVal("rest")}
		}, "cannot be reached"},
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

// TestSilence: where nobody answers, that is one error within ten seconds, before
// anything is touched.
func TestSilence(t *testing.T) {
	t.Parallel()
	if opening > 10*time.Second {
		t.Errorf("Google Cloud may take %v", opening)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	mute := make(chan struct{})
	defer close(mute)
	nowhere := cty.StringVal("http://" + silent.Addr().String())
	worlds := map[string]*world{}
	for name, block := range map[string]map[string]cty.Value{
		"API over gRPC": {"container_endpoint": nowhere},
		"API over REST": {"container_endpoint": nowhere, "transport": cty.StringVal("rest")},
		"token's server": {"credentials": cty.StringVal(key(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-mute:
			case <-r.Context().Done():
			}
		}))},
	} {
		worlds[name] = newWorld(t, "grpc", gcptest.Options{})
		worlds[name].provider = block
	}
	var group sync.WaitGroup
	for name, w := range worlds {
		group.Go(func() {
			if _, diags := w.open(); len(diags) != 1 || !diags.HasErrors() || !strings.Contains(diags[0].Detail, "network") {
				t.Errorf("%s: %v", name, diags)
			}
			if got := w.google.Calls(); len(got) > 0 {
				t.Errorf("%s: %d calls", name, len(got))
			}
		})
	}
	group.Wait()
}
