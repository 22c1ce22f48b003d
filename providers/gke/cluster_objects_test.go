package gke

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// apiServer answers for a few objects as a Kubernetes API does, and deletes those of
// the uid that it is told.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by path
	deleted []string
	looked  func() // after the volumes were listed
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, v any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	status := func(code int, reason string) {
		answer(code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
	}
	one, there := s.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodDelete && there:
		var o struct {
			Preconditions struct{ UID string } `json:"preconditions"`
		}
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Preconditions.UID != one["metadata"].(map[string]any)["uid"] {
			status(http.StatusConflict, "Conflict")
			return
		}
		s.deleted = append(s.deleted, r.URL.Path)
		delete(s.objects, r.URL.Path)
		if strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims/data") { // its volume goes with it
			delete(s.objects, "/api/v1/persistentvolumes/pv-data")
		}
		answer(http.StatusOK, one)
	case there:
		answer(http.StatusOK, one)
	case r.Method == http.MethodGet && strings.Contains("/api/v1/services /api/v1/persistentvolumes /apis/networking.k8s.io/v1/ingresses", r.URL.Path): // of all namespaces
		items := []any{}
		kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]
		for at, o := range s.objects {
			if strings.Contains(at, kind+"/") {
				items = append(items, o)
			}
		}
		answer(http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
		if kind == "/persistentvolumes" && s.looked != nil {
			s.looked()
		}
	default:
		status(http.StatusNotFound, "NotFound")
	}
}

func kubernetesObject(kind, name, namespace string, spec map[string]any) map[string]any {
	return map[string]any{"kind": kind, "apiVersion": "v1", "metadata": map[string]any{"name": name, "namespace": namespace, "uid": "uid-" + name}, "spec": spec}
}

func volume(name, driver, policy string) map[string]any {
	return kubernetesObject("PersistentVolume", name, "", map[string]any{"persistentVolumeReclaimPolicy": policy, "csi": map[string]any{"driver": driver, "volumeHandle": "handle-" + name},
		"claimRef": map[string]any{"namespace": "ml", "name": strings.TrimPrefix(name, "pv-"), "uid": "uid-" + strings.TrimPrefix(name, "pv-")}})
}

// TestClusterObjects: destroying a cluster says what it leaves in the cloud, and
// deletes what is declared, but never what is to be retained.
func TestClusterObjects(t *testing.T) {
	for _, test := range []struct {
		name     string
		declared []any
		down     bool
		deleted  []string
		warned   []string
	}{
		{"nothing declared", nil, false, nil, []string{"ml/web", "handle-pv-data", "handle-pv-kept", "ml/front"}},
		{"services and volumes", []any{"load_balancers", "volumes"}, false, []string{"/api/v1/namespaces/ml/persistentvolumeclaims/data", "/api/v1/namespaces/ml/services/web"}, []string{"handle-pv-kept", "ml/front"}},
		{"retained at the last moment", []any{"load_balancers", "volumes"}, false, []string{"/api/v1/namespaces/ml/services/web"}, []string{"handle-pv-kept", "handle-pv-data) was listed for deletion"}},
		{"not reachable", []any{"volumes"}, true, nil, []string{"not known"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := &apiServer{objects: map[string]map[string]any{
				"/api/v1/namespaces/kube-system":                           kubernetesObject("Namespace", "kube-system", "", nil),
				"/api/v1/namespaces/ml/services/web":                       kubernetesObject("Service", "web", "ml", map[string]any{"type": "LoadBalancer"}),
				"/api/v1/namespaces/ml/services/inner":                     kubernetesObject("Service", "inner", "ml", map[string]any{"type": "ClusterIP"}),
				"/apis/networking.k8s.io/v1/namespaces/ml/ingresses/front": kubernetesObject("Ingress", "front", "ml", map[string]any{}),
				"/api/v1/persistentvolumes/pv-data":                        volume("pv-data", "pd.csi.storage.gke.io", "Delete"),
				"/api/v1/persistentvolumes/pv-kept":                        volume("pv-kept", "filestore.csi.storage.gke.io", "Retain"),
				"/api/v1/persistentvolumes/pv-local":                       volume("pv-local", "local.csi.example.org", "Delete"),
				"/api/v1/namespaces/ml/persistentvolumeclaims/data":        kubernetesObject("PersistentVolumeClaim", "data", "ml", nil),
			}}
			if strings.HasPrefix(test.name, "retained") {
				api.looked = func() {
					api.objects["/api/v1/persistentvolumes/pv-data"] = volume("pv-data", "pd.csi.storage.gke.io", "Retain")
				}
			}
			server := httptest.NewTLSServer(api)
			defer server.Close()
			token := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(token, []byte("t"), 0o600); err != nil {
				t.Fatal(err)
			}
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			access, err := connect.Connection{ID: "uid-kube-system", Endpoint: server.URL, CA: string(ca), Credential: connect.Credential{TokenFile: &connect.TokenFile{Path: token}}}.Value()
			if err != nil {
				t.Fatal(err)
			}
			if test.down {
				server.Close()
			}
			w := newWorld(t, "grpc", gcptest.Options{})
			it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"destroy_cloud_objects": test.declared})))
			state := it.state.AsValueMap()
			state["access"] = access
			it.state = cty.ObjectVal(state)
			r := w.destroy(it)
			var said []string
			for _, d := range r.Diagnostics {
				if d.Severity == providers.Error {
					t.Error(d)
				}
				said = append(said, d.Summary+" "+d.Detail)
			}
			all := strings.Join(said, "\n")
			for _, want := range test.warned {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not said: %s", want, all)
				}
			}
			if strings.Contains(all, "pv-local") || strings.Contains(all, "inner") || len(test.deleted) > 0 && strings.Contains(all, "ml/web") {
				t.Errorf("too much is said: %s", all)
			}
			if slices.Sort(api.deleted); !slices.Equal(api.deleted, test.deleted) {
				t.Errorf("deleted %v, want %v", api.deleted, test.deleted)
			}
			if got := w.google.Paths(); len(got) > 0 {
				t.Errorf("there is still %v", got)
			}
		})
	}
}
