package kubernetes

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// kubeconfig writes a file with two contexts: "good" leads to the server.
func kubeconfig(t *testing.T, arguments map[string]cty.Value, current string) string {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	path := filepath.Join(dir, "config")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %q
contexts:
- {name: good, context: {cluster: c, user: u}}
- {name: bad, context: {cluster: c, user: nobody}}
clusters:
- {name: c, cluster: {server: %q, certificate-authority: ca.pem}}
users:
- {name: u, user: {token: tok}}
- {name: nobody, user: {token: wrong}}
`, current, arguments["host"].AsString())
	for name, text := range map[string]string{ca: arguments["cluster_ca_certificate"].AsString(), path: content} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestConnect reaches the server in every documented way.
func TestConnect(t *testing.T) {
	server := serve(t, newCluster())
	host, ca := server["host"], server["cluster_ca_certificate"]
	good, bad := kubeconfig(t, server, "good"), kubeconfig(t, server, "bad")
	plugin := filepath.Join(t.TempDir(), "plugin")
	script := "#!/bin/sh\nprintf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s%s\"}}' \"$1\" \"$HALF\"\n"
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	exec := cty.ObjectVal(map[string]cty.Value{
		"api_version": text("client.authentication.k8s.io/v1"), "command": text(plugin),
		"args": cty.ListVal([]cty.Value{text("t")}), "env": cty.MapVal(map[string]cty.Value{"HALF": text("ok")}),
	})
	type values = map[string]cty.Value
	tests := []struct {
		name      string
		arguments values
		environ   map[string]string
		want      string // part of an error
	}{
		{"host, token", values{"host": host, "token": text("tok"), "cluster_ca_certificate": ca}, nil, ""},
		{"insecure", values{"host": host, "token": text("tok"), "insecure": cty.True}, nil, ""},
		{"host without https", values{"host": text(strings.TrimPrefix(host.AsString(), "https://")), "token": text("tok"), "insecure": cty.True}, nil, ""},
		{"environment", nil, map[string]string{"KUBE_HOST": host.AsString(), "KUBE_TOKEN": "tok", "KUBE_CLUSTER_CA_CERT_DATA": ca.AsString()}, ""},
		{"config_path", values{"config_path": text(good)}, nil, ""},
		{"KUBE_CONFIG_PATH", nil, map[string]string{"KUBE_CONFIG_PATH": good}, ""},
		{"config_paths", values{"config_paths": cty.ListVal([]cty.Value{text(good), text(bad)})}, nil, ""},
		{"KUBE_CONFIG_PATHS", nil, map[string]string{"KUBE_CONFIG_PATHS": good + string(filepath.ListSeparator) + bad}, ""},
		{"config_context", values{"config_path": text(bad), "config_context": text("good")}, nil, ""},
		{"KUBE_CTX", values{"config_path": text(bad)}, map[string]string{"KUBE_CTX": "good"}, ""},
		{"config_context_auth_info", values{"config_path": text(bad), "config_context_auth_info": text("u")}, nil, ""},
		{"token above a file's", values{"config_path": text(bad), "token": text("tok")}, nil, ""},
		{"exec", values{"host": host, "cluster_ca_certificate": ca, "exec": exec}, nil, ""},
		{"file of another user", values{"config_path": text(bad)}, nil, "does not know who asks"},
		{"wrong token", values{"host": host, "token": text("x"), "cluster_ca_certificate": ca}, nil, "does not know who asks"},
		{"unknown authority", values{"host": host, "token": text("tok")}, nil, "certificate"},
		{"no context of the name", values{"config_path": text(good), "config_context": text("none")}, nil, "none"},
		{"no file", values{"config_path": text("/nonexistent/config")}, nil, "read kubeconfig"},
		{"nothing", nil, nil, "no cluster is configured"},
		{"file that must not be read", values{"config_path": text(good), "load_config_file": cty.False}, nil, "no cluster is configured"},
		{"not in a cluster", values{"in_cluster_config": cty.True}, nil, "does not run in a cluster"},
		{"certificate that is none", values{"host": host, "cluster_ca_certificate": text("x")}, nil, "certificate"},
		{"suffix", values{"secret_suffix": text("A_b"), "host": host}, nil, "secret_suffix"},
		{"suffix with a number", values{"secret_suffix": text("a-7"), "host": host}, nil, "number after a hyphen"},
		{"label", values{"labels": cty.MapVal(map[string]cty.Value{"a b": text("x")}), "host": host}, nil, "label"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			arguments := values{"secret_suffix": text("x")}
			for name, v := range tt.arguments {
				arguments[name] = v
			}
			b, err := openWith(t, arguments, tt.environ)
			if err == nil {
				_, err = b.Workspaces(t.Context())
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), "tok\"") || strings.Contains(err.Error(), "wrong")) {
				t.Errorf("a token is in %v", err)
			}
		})
	}
}

// TestRefusals has the server refuse, and looks at what people are told.
func TestRefusals(t *testing.T) {
	for action, want := range map[string]string{
		"list secrets": "needs the verbs get, list", "create secrets": "needs the verbs", "update leases": "",
		"create leases": "leases of coordination.k8s.io",
	} {
		cluster := &storetest.Cluster{Deny: func(asked, _ string) bool { return asked == action }}
		s := process(t, map[string]cty.Value{"host": text(serveAt(t, cluster)), "secret_suffix": text("x")})
		err := work(t, s)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", action, err)
		}
	}
	for status, want := range map[int]string{500: "500", 503: "503", 404: "not find", 502: "502"} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>no", status) })
		s := process(t, map[string]cty.Value{"host": text(serveAt(t, h)), "secret_suffix": text("x")})
		if _, _, err := s.ReadSnapshot(t.Context()); err == nil {
			t.Errorf("%d: read all the same, want %q", status, want)
		} else if strings.Contains(err.Error(), "<html>") {
			t.Logf("%d: %v", status, err)
		}
	}
}

// TestWorkspaces are those that have a state of this suffix.
func TestWorkspaces(t *testing.T) {
	cluster := &storetest.Cluster{}
	arguments := map[string]cty.Value{"host": text(serveAt(t, cluster)), "secret_suffix": text("x")}
	b, err := openWith(t, arguments, nil)
	if err != nil {
		t.Fatal(err)
	}
	arguments["secret_suffix"] = text("y")
	other, err := openWith(t, arguments, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for where, names := range map[*Backend][]string{b: {"dev", "a-b.c"}, other: {"prod"}} {
		for _, name := range names {
			s, err := where.Store(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.WriteSnapshot(ctx, noise(1, 900<<10), ""); err != nil {
				t.Fatal(err)
			}
			if err := s.Append(ctx, 0, []byte("x"), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func(b *Backend, want ...string) {
		t.Helper()
		if got, err := b.Workspaces(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q %v, want %q", got, err, want)
		}
	}
	list(b, "a-b.c", "default", "dev")
	list(other, "default", "prod")
	s, err := b.Store("dev")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DropJournal(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(ctx, "dev"); err != nil {
		t.Fatal(err)
	}
	list(b, "a-b.c", "default")
	for _, key := range cluster.Secrets() {
		if strings.Contains(key, "-dev-") {
			t.Errorf("%s is left", key)
		}
	}
	for _, name := range []string{"Dev", "a_b", "a/b", "", strings.Repeat("x", 64)} {
		if _, err := b.Store(name); err == nil {
			t.Errorf("%q can be a workspace", name)
		}
	}
}
