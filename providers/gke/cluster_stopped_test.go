package gke

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestClusterStopped: the first Ctrl-C ends the look for what a cluster has in the cloud, and the cluster stays: its objects were to be
// deleted before it.
func TestClusterStopped(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		default:
			close(stop) // the first Ctrl-C
		}
		<-r.Context().Done() // and no answer
	}))
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	access, err := connect.Connection{ID: "x", Endpoint: server.URL, CA: string(ca), Credential: connect.Credential{TokenFile: &connect.TokenFile{Path: token}}}.Value()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"destroy_cloud_objects": []any{"volumes"}})))
	it.state = withAttribute(it.state, "access", access)
	w.mutations()
	null := cty.NullVal(it.state.Type())
	ctx := providers.WithCall(t.Context(), &providers.Call{Stopping: stop})
	r := w.phase().Apply(ctx, providers.ApplyRequest{Type: it.kind, Prior: it.state, Planned: null, Config: null, Private: it.private})
	if !r.Diagnostics.HasErrors() || r.State.IsNull() {
		t.Errorf("said is %v", r.Diagnostics)
	}
	if got := w.mutations(); len(got) > 0 || !slices.Contains(w.google.Paths(), labPath) {
		t.Errorf("%v was called, and there is %v", got, w.google.Paths())
	}
}
