package kubetest

import (
	"context"
	"os"
	"strings"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// whoami is the user that the API server takes a kubeconfig's for.
func whoami(t *testing.T, c *Cluster, login Login) (string, error) {
	t.Helper()
	out, err := c.TryKubectl(t, c.KubeconfigFor(t, login), "", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	return out, err
}

func TestCredentials(t *testing.T) {
	c := shared.Cluster(t)
	ns := c.Namespace(t)
	account := "system:serviceaccount:" + ns + ":deploy"
	tests := []struct {
		name  string
		login Login
		want  string
	}{
		{"administrator", Login{}, "admin"},
		{"certificate", Login{User: "alice"}, "alice"},
		{"certificate in files", Login{User: "alice", With: CertificateFiles}, "alice"},
		{"plugin with a certificate", Login{User: "alice", With: Exec}, "alice"},
		{"account", Login{User: account}, account},
		{"account with a token in a file", Login{User: account, With: TokenFile}, account},
		{"account with a plugin", Login{User: account, With: Exec}, account},
		{"administrator with a token", Login{With: Token}, administrator},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := whoami(t, c, test.login)
			if err != nil || got != test.want {
				t.Errorf("got %s (%v), want %s", got, err, test.want)
			}
		})
	}
}

func TestBadCredentials(t *testing.T) {
	c := shared.Cluster(t)
	tests := []struct {
		name  string
		login Login
		want  string
	}{
		{"expired", Login{User: "alice", Expired: true}, "must be logged in"},
		{"plugin fails", Login{User: "alice", With: Exec, Script: "echo no luck >&2; exit 3"}, "exit code 3"},
		{"plugin prints garbage", Login{User: "alice", With: Exec, Script: "echo garbage"}, "decoding stdout"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if out, err := whoami(t, c, test.login); err == nil || !strings.Contains(out, test.want) {
				t.Errorf("got %v: %s, want an error with %q", err, out, test.want)
			}
		})
	}
}

// TestGrants shows that a kubeconfig may do what it was granted, and nothing
// else.
func TestGrants(t *testing.T) {
	c := shared.Cluster(t)
	mine, other := c.Namespace(t), c.Namespace(t)
	rules := []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "get"}},
		{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}},
	}
	for _, user := range []string{"carol", "system:serviceaccount:" + mine + ":reader"} {
		t.Run(user, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(c.ConfigFor(t, Login{User: user, Grants: []Grant{{Namespace: mine, Rules: rules}}}))
			if err != nil {
				t.Fatal(err)
			}
			list := func(ns string) error {
				_, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
				return err
			}
			if err := list(mine); err != nil {
				t.Errorf("list config maps in the namespace of the grant: %v", err)
			}
			if err := list(other); !apierrors.IsForbidden(err) {
				t.Errorf("list config maps in another namespace: got %v, want a refusal", err)
			}
			if err := list(""); !apierrors.IsForbidden(err) {
				t.Errorf("list all config maps: got %v, want a refusal", err)
			}
			if _, err := client.CoreV1().Secrets(mine).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("list secrets: got %v, want a refusal", err)
			}
			if asked := c.Audit(t, user); len(asked) != 4 {
				t.Errorf("the audit log has %d requests, want 4: %v", len(asked), asked)
			}
		})
	}
}

// TestGrantsEnd shows that a grant holds as long as its test.
func TestGrantsEnd(t *testing.T) {
	c := shared.Cluster(t)
	t.Run("granted", func(t *testing.T) {
		c.Grant(t, "dave", Grant{Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}}})
	})
	path := c.KubeconfigFor(t, Login{User: "dave"})
	c.Eventually(t, "dave may not list nodes", func(context.Context) (bool, error) {
		out, err := c.TryKubectl(t, path, "", "auth", "can-i", "list", "nodes")
		return err != nil && strings.Contains(out, "no"), nil
	})
}

func TestKubeconfigsAreFiles(t *testing.T) {
	c := shared.Cluster(t)
	for _, path := range []string{c.Kubeconfig(), c.KubeconfigFor(t, Login{User: "erin", With: CertificateFiles})} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", path, info.Mode(), err)
		}
		config, err := clientcmd.LoadFromFile(path)
		if err != nil || config.Clusters[entry].Server != c.Endpoint || !strings.HasPrefix(c.Endpoint, "https://127.0.0.1:") {
			t.Errorf("%s leads to %v (%v), want %s", path, config.Clusters[entry], err, c.Endpoint)
		}
	}
}
