package imagetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is a registry on loopback. The zero values of its rules let everybody
// do everything.
type Registry struct {
	Host string // 127.0.0.1:PORT

	mu       sync.Mutex
	user     string
	password string
	readOnly bool
	broken   bool
	passing  int // requests until the refused one, where refusing
	refusing bool
	met      bool // a request was refused by RefuseAfter
	requests []string
}

// New starts a registry that ends with the test.
func New(t *testing.T) *Registry {
	t.Helper()
	r := &Registry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.admits(w, req) {
			inner.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(srv.Close)
	r.Host = strings.TrimPrefix(srv.URL, "http://")
	return r
}

// Demand lets only this user in.
func (r *Registry) Demand(user, password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.user, r.password = user, password
}

// ReadOnly refuses everything that writes, whoever asks.
func (r *Registry) ReadOnly(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readOnly = yes
}

// Break makes every answer one of a gateway that has lost its registry.
func (r *Registry) Break(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = yes
}

// RefuseAfter lets n more requests pass and refuses the one after them. A negative
// n refuses none. It reports whether the call before it refused a request.
func (r *Registry) RefuseAfter(n int) (met bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	met = r.met
	r.passing, r.refusing, r.met = n, n >= 0, false
	return met
}

// Count is how many requests had a method and a part of a path.
func (r *Registry) Count(method, part string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.requests {
		if strings.HasPrefix(line, method+" ") && strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// admits answers those that are not let in as registries do: 401 with a
// challenge to strangers, 403 to those who may not write.
func (r *Registry) admits(w http.ResponseWriter, req *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req.Method+" "+req.URL.Path)
	user, password, given := req.BasicAuth()
	writes := req.Method != http.MethodGet && req.Method != http.MethodHead
	if r.refusing {
		if r.passing--; r.passing < 0 {
			r.refusing, r.met = false, true
			refuse(w, http.StatusForbidden, "DENIED", "requested access to the resource is denied")
			return false
		}
	}
	switch {
	case r.broken:
		refuse(w, http.StatusBadGateway, "UNAVAILABLE", "no registry behind the gateway")
	case r.user != "" && (!given || user != r.user || password != r.password):
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	case writes && r.readOnly:
		refuse(w, http.StatusForbidden, "DENIED", "requested access to the resource is denied")
	default:
		return true
	}
	return false
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
}

// LogIn makes a Docker configuration with a user's password at a registry, and
// lets this process use it until the test ends.
func LogIn(t *testing.T, host, user, password string) {
	t.Helper()
	home := t.TempDir()
	config := map[string]any{"auths": map[string]any{host: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}}}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".docker", "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
}
