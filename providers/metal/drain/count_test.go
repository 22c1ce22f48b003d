package drain

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
)

// TestCountBy: a node that no configuration reaches counts, where somebody may
// list all nodes; and that is all that is asked as that user.
func TestCountBy(t *testing.T) {
	for name, token := range map[string]bool{"certificate": false, "token": true} {
		t.Run(name, func(t *testing.T) {
			r := &Roll{}
			c, machines, nodes := several(t, r, 1)
			c.AddNode("stranger")
			c.SetReady("stranger", false)
			before := nodes[0]
			if err := r.Do(t.Context(), machines[0], before, change(host.Reboots), draining, nothing); err != nil {
				t.Errorf("without a kubeconfig nobody can know: %v", err)
			}
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, c.Kubeconfig(token), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := r.CountBy(file); err != nil {
				t.Fatal(err)
			}
			var too *UnavailableError
			err := r.Do(t.Context(), machines[0], look(t, machines[0]), change(host.Reboots), draining, nothing)
			if !errors.As(err, &too) || !strings.Contains(err.Error(), "stranger is NotReady") {
				t.Errorf("with one: %v", err)
			}
			c.SetReady("stranger", true)
			if err := r.Do(t.Context(), machines[0], look(t, machines[0]), change(host.Reboots), draining, nothing); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			// Another cluster is none of its business.
			other, others, node := several(t, r, 1)
			if err := r.Do(t.Context(), others[0], node[0], change(host.Reboots), draining, nothing); err != nil {
				t.Errorf("another cluster: %v", err)
			}
			if !slices.Contains(other.Requests(), "GET nodes") {
				t.Error("the other cluster's node was not asked")
			}
		})
	}
}

func TestKubeconfigs(t *testing.T) {
	whole := string(draintest.New(t, nil).Kubeconfig(true))
	for name, test := range map[string]struct{ old, new, want string }{
		"whole":      {"", "", ""},
		"garbage":    {whole, "a: [", "is no kubeconfig"},
		"no context": {"current-context: lab", "current-context: there", "not whole"},
		"insecure":   {"{server:", "{insecure-skip-tls-verify: true, server:", "does not check who"},
		"http":       {"https://", "http://", "not an https:// address"},
		"a program":  {"token: token-of-the-lister", "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}", "something else than"},
		"no file":    {"token: token-of-the-lister", "client-certificate: /nowhere, client-key: /nowhere", "read a file that it names"},
		"no token":   {"token: token-of-the-lister", "tokenFile: /nowhere", "read its token"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(strings.Replace(whole, test.old, test.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			err := new(Roll).CountBy(file)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "token-of-the-lister") {
				t.Errorf("it tells the token: %v", err)
			}
		})
	}
	if err := new(Roll).CountBy(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
