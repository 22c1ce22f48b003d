package kubernetes

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect"
)

// server answers as an API server does that knows one token.
type server struct {
	*httptest.Server
	ca     string
	uid    string
	asked  atomic.Int64
	refuse atomic.Int64 // so many requests that are answered 503
	token  atomic.Value // string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{uid: "uid-1"}
	s.token.Store("good")
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	s.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason metav1.StatusReason) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"refused"}`, reason, code)
	}
	switch {
	case s.refuse.Add(-1) >= 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Header.Get("Authorization") == "Bearer powerless":
		status(http.StatusForbidden, metav1.StatusReasonForbidden)
	case r.Header.Get("Authorization") != "Bearer "+s.token.Load().(string):
		status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, s.uid)
	default:
		status(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// with is a connection by a token.
func (s *server) with(t *testing.T, token string) connect.Connection {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return connect.Connection{Endpoint: s.URL, CA: s.ca, Credential: connect.Credential{TokenFile: &connect.TokenFile{Path: file}}}
}

// plugin is a connection by a plugin, which is a shell script.
func (s *server) plugin(t *testing.T, script string) connect.Connection {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the plugins are shell scripts")
	}
	return connect.Connection{Endpoint: s.URL, CA: s.ca, Credential: connect.Credential{Exec: &connect.Exec{Command: "/bin/sh", Args: []string{"-c", script}}}}
}

const credential = `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'`

func TestDial(t *testing.T) {
	s, other := newServer(t), newServer(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	kubeconfig := func(text string) connect.Connection {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: file}}}
	}
	edit := func(c connect.Connection, f func(*connect.Connection)) connect.Connection { f(&c); return c }
	// One that listens and says nothing: the limit ends the wait.
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	for name, tt := range map[string]struct {
		connection      connect.Connection
		summary, detail string // "" where it works
	}{
		"token":                 {s.with(t, "good"), "", ""},
		"the cluster it says":   {edit(s.with(t, "good"), func(c *connect.Connection) { c.ID = "uid-1" }), "", ""},
		"plugin":                {s.plugin(t, fmt.Sprintf(credential, "good")), "", ""},
		"may not tell itself":   {s.with(t, "powerless"), "", ""},
		"another cluster":       {edit(s.with(t, "good"), func(c *connect.Connection) { c.ID = "uid-2" }), "This is another cluster", "uid-1"},
		"cannot be told":        {edit(s.with(t, "powerless"), func(c *connect.Connection) { c.ID = "uid-1" }), "Cluster cannot be identified", "kube-system"},
		"nobody there":          {edit(s.with(t, "good"), func(c *connect.Connection) { c.Endpoint = "https://" + closed.Addr().String() }), "The API server cannot be reached", "nothing listens there"},
		"no answer":             {edit(s.with(t, "good"), func(c *connect.Connection) { c.Endpoint = "https://" + deaf.Addr().String() }), "The API server cannot be reached", "no answer within"},
		"unknown name":          {edit(s.with(t, "good"), func(c *connect.Connection) { c.Endpoint = "https://nowhere.invalid:6443" }), "The API server cannot be reached", "nowhere.invalid does not resolve"},
		"not TLS":               {edit(s.with(t, "good"), func(c *connect.Connection) { c.Endpoint = "https://" + plainServer(t) }), "The API server cannot be reached", "HTTP response to HTTPS client"},
		"another authority":     {edit(s.with(t, "good"), func(c *connect.Connection) { c.CA = "" }), "Unknown authority of the API server", "Give the cluster's own CA"},
		"refused":               {s.with(t, "bad"), "The API server refuses the credential", "Log in again"},
		"no token":              {s.with(t, ""), "No credential for the cluster", "empty"},
		"no token file":         {edit(s.with(t, "good"), func(c *connect.Connection) { c.Credential.TokenFile.Path = "/nowhere" }), "No credential for the cluster", "no such file"},
		"no plugin":             {edit(s.plugin(t, ""), func(c *connect.Connection) { c.Credential.Exec.Command = "no-such-plugin" }), "No credential for the cluster", "there is no such program"},
		"garbage of a plugin":   {s.plugin(t, "echo canary-garbage"), "No credential for the cluster", "not an ExecCredential"},
		"plugin fails":          {s.plugin(t, "echo please log in >&2; exit 3"), "No credential for the cluster", "please log in"},
		"plugin without token":  {s.plugin(t, `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{}}'`), "No credential for the cluster", "neither a token"},
		"plugin of old":         {s.plugin(t, `echo '{"apiVersion":"client.authentication.k8s.io/v1alpha1","kind":"ExecCredential","status":{"token":"x"}}'`), "No credential for the cluster", "v1alpha1"},
		"plugin that has ended": {s.plugin(t, `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"x","expirationTimestamp":"2020-01-01T00:00:00Z"}}'`), "No credential for the cluster", "ended at 2020"},
		"plugin takes long":     {s.plugin(t, "sleep 10; "+fmt.Sprintf(credential, "good")), "", ""}, // longer than a dial may take
		"plugin is refused":     {s.plugin(t, fmt.Sprintf(credential, "bad")), "The API server refuses the credential", ""},
		"no kubeconfig":         {connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: "/nowhere"}}}, "No credential for the cluster", "/nowhere"},
		"garbage":               {kubeconfig("canary: ["), "No credential for the cluster", "it is no kubeconfig"},
		"empty kubeconfig":      {kubeconfig(""), "No credential for the cluster", "no current context"},
		"no such context":       {edit(kubeconfig("apiVersion: v1\nkind: Config\ncontexts: [{name: lab, context: {cluster: c}}]\n"), func(c *connect.Connection) { c.Credential.Kubeconfig.Context = "prod" }), "No credential for the cluster", `no context "prod"; it has lab`},
		"no pod":                {connect.Connection{Credential: connect.Credential{InCluster: &connect.InCluster{}}}, "No credential for the cluster", "this is not a pod"},
		"http to a TLS port":    {edit(s.with(t, "good"), func(c *connect.Connection) { c.Endpoint = "http://" + s.Listener.Addr().String() }), "The API server speaks TLS", "https://"},
		"no CA at all":          {kubeconfig("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: " + s.URL + ", certificate-authority-data: Y2FuYXJ5}}]\n"), "Certificate authority cannot be read", "certificate-authority-data"},
		"another server's CA":   {edit(s.with(t, "good"), func(c *connect.Connection) { c.CA = other.ca }), "", ""}, // both are httptest's
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Dial(t.Context(), tt.connection, nil)
			if tt.summary == "" {
				if err != nil {
					t.Fatal(err)
				}
				if want := "uid-1"; name != "may not tell itself" && c.ID != want {
					t.Errorf("the cluster is %q", c.ID)
				}
				c.Close()
				return
			}
			if err == nil {
				t.Fatal("it works")
			}
			summary, detail := Describe(err)
			if summary != tt.summary || !strings.Contains(detail, tt.detail) {
				t.Errorf("%s: %s\nwant %s: … %s", summary, detail, tt.summary, tt.detail)
			}
			if strings.Contains(detail, "canary") || strings.Contains(err.Error(), "canary") {
				t.Errorf("it shows what may be secret: %v", err)
			}
			if words := len(strings.Fields(summary)); words > 8 || !strings.HasSuffix(detail, ".") {
				t.Errorf("%q: %q", summary, detail)
			}
		})
	}
}

// plainServer speaks no TLS.
func plainServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A plugin is asked once for many requests, and again when the API server no
// longer takes what it gave.
func TestPluginIsAskedAgain(t *testing.T) {
	s := newServer(t)
	dir := t.TempDir()
	tokens := filepath.Join(dir, "token")
	write := func(token string) {
		if err := os.WriteFile(tokens, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good")
	connection := s.plugin(t, fmt.Sprintf(`echo >> %s/runs; printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%%s"}}' "$(cat %s)"`, dir, tokens))
	c, err := Dial(t.Context(), connection, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func() error {
		_, err := c.Dynamic.Resource(namespaces).Get(t.Context(), "kube-system", metav1.GetOptions{})
		return err
	}
	for range 5 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	s.token.Store("newer")
	write("newer")
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	runs, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil || len(runs) != 2 {
		t.Errorf("the plugin ran %d times, %v", len(runs), err)
	}
}

// Once it has answered, an API server that is away is waited for.
func TestRequestsOutliveARestart(t *testing.T) {
	s := newServer(t)
	var told atomic.Int64
	c, err := Dial(t.Context(), s.with(t, "good"), func(context.Context, error) { told.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.refuse.Store(3)
	if _, err := c.Dynamic.Resource(namespaces).Get(t.Context(), "kube-system", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if told.Load() != 3 {
		t.Errorf("%d waits were told, want 3", told.Load())
	}
	// One that never did is not.
	s.refuse.Store(1 << 30)
	if _, err := Dial(t.Context(), s.with(t, "good"), nil); err == nil {
		t.Error("an API server that is not ready is dialled")
	}
}

// A thousand objects that need a cluster dial it once, also where it is not
// there.
func TestPoolDialsOnce(t *testing.T) {
	s := newServer(t)
	var p Pool
	defer p.Close()
	good, bad := s.with(t, "good"), s.with(t, "bad")
	for range 1000 {
		if _, err := p.Get(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Get(t.Context(), bad); err == nil {
			t.Fatal("a bad token works")
		}
	}
	if got := s.asked.Load(); got != 2 {
		t.Errorf("%d requests", got)
	}
	// That the caller gave up says nothing about the cluster.
	var fresh Pool
	defer fresh.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fresh.Get(ctx, good); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := fresh.Get(t.Context(), good); err != nil {
		t.Error(err)
	}
}

// A plugin of a kubeconfig with provideClusterInfo is told which cluster it is for, and
// what the kubeconfig has for it.
func TestPluginIsToldTheCluster(t *testing.T) {
	s := newServer(t)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	script := `printf %s "$KUBERNETES_EXEC_INFO" > ` + dir + `/info; ` + fmt.Sprintf(credential, "good")
	config := fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q, extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: lab}}]}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, %q], provideClusterInfo: true, interactiveMode: Never}}}]
`, s.URL, ca, script)
	file := filepath.Join(dir, "config")
	for name, text := range map[string]string{file: config, ca: s.ca} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Dial(t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: file}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	info, err := os.ReadFile(filepath.Join(dir, "info"))
	for _, part := range []string{s.URL, "certificate-authority-data", `"audience":"lab"`} {
		if err != nil || !strings.Contains(string(info), part) {
			t.Errorf("it is told %s, %v", info, err)
		}
	}
}
