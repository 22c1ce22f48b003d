package gke

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestAccess: each endpoint has its address and certificate; a way to a token is in
// the state, and no token.
func TestAccess(t *testing.T) {
	file := key(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "ya29-secret", "token_type": "Bearer", "expires_in": 3600}`)
	})
	for endpoint, want := range map[string]struct {
		address string
		ca      bool
	}{"dns": {"https://gke-", false}, "public": {"https://127.0.0.1:1", true}, "private": {"https://10.128.0.", true}} {
		w := newWorld(t, "grpc", gcptest.Options{APIServer: gcptest.APIServer{Endpoint: "127.0.0.1:1"}})
		w.provider = map[string]cty.Value{"credentials": cty.StringVal(file)}
		if endpoint != "public" { // nobody has those addresses: that takes 10 s
			k := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
			state := k.state.AsValueMap()
			access := state["access"].AsValueMap()
			access["id"] = cty.StringVal("known-before")
			state["access"], state["endpoint"] = cty.ObjectVal(access), cty.StringVal(endpoint)
			if err := w.google.Change(labPath, func(k *containerpb.Cluster) { k.Status = containerpb.Cluster_RECONCILING }); err != nil {
				t.Fatal(err)
			}
			k.state = cty.ObjectVal(state)
			w.check(w.refresh(k), file, want.address, want.ca)
			continue
		}
		it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"endpoint": endpoint})))
		w.check(it, file, want.address, want.ca)
		w.empty(it, w.conf(it.kind, lab(map[string]any{"endpoint": endpoint})))
	}
}

func (w *world) check(it thing, file, address string, ca bool) {
	w.Helper()
	c, err := connect.FromValue(it.state.GetAttr("access"))
	if err != nil {
		w.Fatal(err)
	}
	if !strings.HasPrefix(c.Endpoint, address) || strings.Contains(c.CA, "BEGIN CERTIFICATE") != ca || c.Credential.Google == nil || c.Credential.Google.CredentialsFile != file {
		w.Errorf("the access is %+v", c)
	}
	config := it.state.GetAttr("kubeconfig").AsString()
	for _, part := range []string{"server: " + c.Endpoint, "command: gke-gcloud-auth-plugin", "provideClusterInfo: true"} {
		if !strings.Contains(config, part) {
			w.Errorf("the kubeconfig lacks %q:\n%s", part, config)
		}
	}
	if strings.Contains(config, "certificate-authority-data") != ca {
		w.Errorf("the kubeconfig has another certificate:\n%s", config)
	}
	if strings.Contains(it.state.GoString(), "ya29-secret") || strings.Contains(it.state.GoString(), "PRIVATE KEY") {
		w.Error("a token or a key is in the state")
	}
}

// TestWhichCluster: the cluster's own API server says which it is, as soon as it can be
// reached; at another address it is asked again.
func TestWhichCluster(t *testing.T) {
	file := key(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "ya29-secret", "token_type": "Bearer", "expires_in": 3600}`)
	})
	var up atomic.Bool
	server := func(uid string) (*httptest.Server, []byte) {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !up.Load() || r.Header.Get("Authorization") != "Bearer ya29-secret" {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "message": "no", "code": 401}`)
				return
			}
			fmt.Fprintf(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": %q}}`, uid)
		}))
		t.Cleanup(s.Close)
		return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	first, ca := server("uid-1")
	w := newWorld(t, "grpc", gcptest.Options{APIServer: gcptest.APIServer{Endpoint: first.Listener.Addr().String(), CA: ca}})
	w.provider = map[string]cty.Value{"credentials": cty.StringVal(file)}
	config := w.conf("gke_cluster", lab(nil))
	id := func(it thing) string { return textIn(it.state.GetAttr("access"), "id") }
	it, r := w.apply("op-1", w.plan(thing{kind: "gke_cluster"}, config))
	if r.Diagnostics.HasErrors() || len(r.Diagnostics) != 1 || r.Diagnostics[0].Summary != "Cluster cannot be reached" || id(it) != "" {
		t.Fatalf("a cluster that cannot be reached is %q: %v", id(it), r.Diagnostics)
	}
	up.Store(true)
	if it = w.empty(it, config); id(it) != "uid-1" {
		t.Errorf("it is %q", id(it))
	}
	second, _ := server("uid-2")
	if err := w.google.Change(labPath, func(k *containerpb.Cluster) { k.Endpoint = second.Listener.Addr().String() }); err != nil {
		t.Fatal(err)
	}
	up.Store(false)
	if it = w.refresh(it); id(it) != "" {
		t.Errorf("one at another address that does not say which it is, is taken for %q", id(it))
	}
	up.Store(true)
	if it = w.refresh(it); id(it) != "uid-2" {
		t.Errorf("another cluster at this name is taken for %q", id(it))
	}
	up.Store(false)
	if it = w.refresh(it); id(it) != "uid-2" {
		t.Errorf("the same one that cannot be reached is %q", id(it))
	}
}

// TestImpersonated: who acts as a service account reaches the cluster as that, too.
func TestImpersonated(t *testing.T) {
	m := &clusterModel{Name: types.StringValue("lab"), Endpoint: types.StringValue("dns"), Access: types.ObjectNull(connect.AttributeTypes())}
	j := job{settings: &settings{credentials: "/keys/ci.json"}, cloud: &cloud.Cloud{Settings: cloud.Settings{Impersonate: "deploy@p.iam.gserviceaccount.com"}}, diags: &diag.Diagnostics{}}
	m.readAccess(t.Context(), j, &containerpb.Cluster{Status: containerpb.Cluster_PROVISIONING})
	c, _, _ := connect.FromObject(t.Context(), m.Access)
	if c == nil || c.Credential.Google == nil || *c.Credential.Google != (connect.Google{CredentialsFile: "/keys/ci.json", Impersonate: "deploy@p.iam.gserviceaccount.com"}) {
		t.Errorf("the access is %+v", c)
	}
}
