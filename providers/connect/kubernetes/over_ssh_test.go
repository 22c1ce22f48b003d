package kubernetes

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const sshPassword = "canary-of-ssh"

// plane is a control plane behind SSH: a real one, whose admin.conf an SSH server
// in this process reads.
type plane struct {
	*kubetest.Cluster
	*sshtest.Server
	etc string
}

func newPlane(t *testing.T, edit ...func(*sshtest.Config)) *plane {
	t.Helper()
	p := &plane{Cluster: shared.Cluster(t), etc: t.TempDir()}
	config := sshtest.Config{Password: sshPassword, Answer: sshtest.Etc(p.etc)}
	for _, e := range edit {
		e(&config)
	}
	p.Server = sshtest.New(t, config)
	p.write(t, "admin.conf", p.Kubeconfig())
	return p
}

// write puts a kubeconfig where kubeadm does.
func (p *plane) write(t *testing.T, name, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Join(p.etc, "kubernetes"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(p.etc, "kubernetes", name), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *plane) connection() connect.Connection {
	host, port := p.Address()
	ca, _ := os.ReadFile(p.CAFile())
	return connect.Connection{ID: p.UID, Endpoint: p.Endpoint, CA: string(ca), Credential: connect.Credential{
		SSH: &connect.SSH{Hop: connect.Hop{Address: host, Port: port, User: sshtest.User, HostKey: p.HostKey()}},
	}}
}

// newPool logs in with the password.
func newPool(t *testing.T) *Pool {
	t.Helper()
	t.Setenv("STOKE_SSH_PASSWORD", sshPassword)
	settings, diags := connect.ReadSSH(t.Context(), types.ObjectNull(nil))
	if diags.HasError() {
		t.Fatal(diags)
	}
	p := &Pool{SSH: settings}
	t.Cleanup(p.Close)
	return p
}

// bind lets operators do everything until the test ends.
func (p *plane) bind(t *testing.T) {
	t.Helper()
	bindings := p.Client.RbacV1().ClusterRoleBindings()
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Operators},
		Subjects:   []rbac.Subject{{Kind: rbac.GroupKind, APIGroup: rbac.GroupName, Name: Operators}},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	allowed := func(ctx context.Context) (bool, error) {
		review, err := p.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User: "somebody", Groups: []string{Operators}, ResourceAttributes: &authorization.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
		}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := bindings.Delete(ctx, Operators, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		for ok, err := allowed(ctx); ok && err == nil; ok, err = allowed(ctx) {
			time.Sleep(50 * time.Millisecond)
		}
	})
	p.Eventually(t, "operators have rights", allowed)
}

// ask sends a request.
func ask(t *testing.T, c *Client) error {
	_, err := c.Dynamic.Resource(namespaces).Get(t.Context(), "kube-system", metav1.GetOptions{})
	return err
}

// whoami asks the API server.
func whoami(t *testing.T, c *Client) authentication.UserInfo {
	t.Helper()
	got, err := c.Dynamic.Resource(schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var review authentication.SelfSubjectReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &review); err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

// operatorOf is who a client logs in as.
func operatorOf(t *testing.T, c *Client) *operator {
	t.Helper()
	o, ok := c.http.Transport.(*retrying).next.(*operator)
	if !ok {
		t.Fatalf("%T", c.http.Transport.(*retrying).next)
	}
	return o
}

func (o *operator) now() *certified {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held
}

// TestDialOverSSH goes the whole way: a certificate of one hour that a real
// control plane signs, requests through SSH, and nothing that stays behind.
func TestDialOverSSH(t *testing.T) {
	p := newPlane(t)
	pool := newPool(t)
	_, err := pool.Get(t.Context(), p.connection())
	if summary, detail := Describe(err); !errors.As(err, new(*UnboundError)) || summary != "The operators' group has no rights" || !strings.Contains(detail, "create clusterrolebinding stoke:operators") {
		t.Errorf("without a binding: %s: %s", summary, detail)
	}
	p.bind(t)
	pool = newPool(t)
	c, err := pool.Get(t.Context(), p.connection())
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != p.UID || c.Endpoint != p.Endpoint {
		t.Errorf("cluster %s at %s", c.ID, c.Endpoint)
	}
	if who := whoami(t, c); !strings.HasPrefix(who.Username, "stoke:operator:") || len(who.Username) > 64 || !slices.Contains(who.Groups, Operators) || slices.Contains(who.Groups, "system:masters") {
		t.Errorf("it is %s of %v", who.Username, who.Groups)
	}
	leaf := operatorOf(t, c).now().Leaf
	if left := time.Until(leaf.NotAfter); left > time.Hour || left < 30*time.Minute {
		t.Errorf("the certificate ends in %v", left)
	}
	if n := p.Connections(); n != 2 { // one for each pool
		t.Errorf("%d SSH connections", n)
	}
	left, err := p.Client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("requests that are left: %v, %v", left.Items, err)
	}
	// Another connection to the same machine is another cluster's client, and goes
	// through the same SSH connection.
	other := p.connection()
	other.ID = "00000000-0000-0000-0000-000000000000"
	if _, err := pool.Get(t.Context(), other); !errors.As(err, new(*OtherClusterError)) {
		t.Errorf("another cluster: %v", err)
	}
	if n := p.Logins(); n != 2 {
		t.Errorf("%d logins over SSH", n)
	}
}

// A certificate is renewed before it ends, and nobody waits for that; one that
// has ended or is refused is replaced by the request that finds out.
func TestOperatorRenews(t *testing.T) {
	p := newPlane(t)
	p.bind(t)
	c, err := newPool(t).Get(t.Context(), p.connection())
	if err != nil {
		t.Fatal(err)
	}
	o := operatorOf(t, c)
	watch, err := c.Dynamic.Resource(namespaces).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	first := o.now()
	age := func(d time.Duration) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.held.since = time.Now().Add(-d)
	}
	age(50 * time.Minute)
	p.Eventually(t, "the certificate is another one", func(context.Context) (bool, error) {
		if err := ask(t, c); err != nil {
			t.Fatal(err)
		}
		return o.now() != first, nil
	})
	second := o.now()
	if second.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) == 0 || second.Leaf.Subject.CommonName == first.Leaf.Subject.CommonName {
		t.Error("the new certificate is the old one")
	}
	// What was begun with the old one goes on.
	name := p.Namespace(t)
	for event := range watch.ResultChan() {
		if u, ok := event.Object.(*unstructured.Unstructured); ok && u.GetName() == name {
			break
		}
	}
	age(2 * time.Hour)
	if err := ask(t, c); err != nil || o.now() == second {
		t.Errorf("one that has ended: %v", err)
	}
	pair, err := readAdministrator([]byte(mustRead(t, p.KubeconfigFor(t, kubetest.Login{User: "old", Expired: true}))))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.take(pair.certificate); err != nil {
		t.Fatal(err)
	}
	third := o.now()
	third.since = time.Now()
	if err := ask(t, c); err != nil || o.now() == third {
		t.Errorf("one that is refused: %v", err)
	}
	c.Close()
	o.mu.Lock()
	o.held.refused = true
	o.mu.Unlock()
	if err := ask(t, c); err == nil {
		t.Error("a client that was closed renews its certificate")
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Where a certificate is renewed and that fails, the one there is serves on.
func TestOperatorOutlivesAFailedRenewal(t *testing.T) {
	p := newPlane(t)
	p.bind(t)
	c, err := newPool(t).Get(t.Context(), p.connection())
	if err != nil {
		t.Fatal(err)
	}
	admin := filepath.Join(p.etc, "kubernetes", "admin.conf")
	if err := os.Remove(admin); err != nil {
		t.Fatal(err)
	}
	o := operatorOf(t, c)
	o.mu.Lock()
	o.held.since = time.Now().Add(-50 * time.Minute)
	o.mu.Unlock()
	p.Eventually(t, "a renewal has failed", func(context.Context) (bool, error) {
		if err := ask(t, c); err != nil {
			t.Fatal(err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return !o.failed.IsZero(), nil
	})
	if err := ask(t, c); err != nil {
		t.Error(err)
	}
	o.mu.Lock()
	o.held.since = time.Now().Add(-2 * time.Hour)
	o.mu.Unlock()
	if err := ask(t, c); !errors.As(err, new(*ControlPlaneError)) || !strings.Contains(err.Error(), "admin.conf") {
		t.Errorf("without a certificate and without a new one: %v", err)
	}
}

// An SSH connection that is cut is dialled again; requests go on.
func TestTunnelIsCut(t *testing.T) {
	p := newPlane(t)
	p.bind(t)
	c, err := newPool(t).Get(t.Context(), p.connection())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := c.Dynamic.Resource(namespaces).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		logins := p.Logins()
		p.Drop()
		for range 5 {
			if err := ask(t, c); err != nil {
				t.Fatal(err)
			}
		}
		if p.Logins() != logins+1 {
			t.Errorf("%d logins after %d", p.Logins(), logins)
		}
	}
	for range watch.ResultChan() { // it ends, and says so
		continue
	}
}

// TestWhyNotOverSSH: each failure is one error that says what to do, and shows
// no secret.
func TestWhyNotOverSSH(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := closed.Addr().(*net.TCPAddr)
	closed.Close()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	signer, _ := sshtest.NewKey(t)
	conf := func(edit func(*clientapi.Config)) func(*testing.T, *plane) {
		return func(t *testing.T, p *plane) {
			p.write(t, "admin.conf", p.KubeconfigFor(t, kubetest.Login{Edit: edit}))
		}
	}
	type to = *connect.Connection
	for name, tt := range map[string]struct {
		server          func(*sshtest.Config)
		prepare         func(*testing.T, *plane)
		edit            func(to)
		summary, detail string
	}{
		"no SSH server":     {edit: func(c to) { c.Credential.SSH.Port = nowhere.Port }, summary: "The control plane cannot be reached", detail: "connection refused"},
		"says nothing":      {edit: func(c to) { c.Credential.SSH.Port = deaf.Addr().(*net.TCPAddr).Port }, summary: "The control plane cannot be reached", detail: "no answer for 8s"},
		"another host key":  {edit: func(c to) { c.Credential.SSH.HostKey = sshtest.Line(signer.PublicKey()) }, summary: "Host key does not match", detail: "an attacker intercepts the connection"},
		"another user":      {edit: func(c to) { c.Credential.SSH.User = "eve" }, summary: "No credential from the control plane", detail: "does not let eve in"},
		"no such login":     {edit: func(c to) { c.Credential.SSH.Credential = "lab" }, summary: "No credential for the cluster", detail: `credential "lab" does not exist`},
		"no sudo":           {server: func(c *sshtest.Config) { c.Answer, c.Sudo = nil, sshtest.SudoUnlisted }, summary: "No credential from the control plane", detail: "cannot become root by sudo"},
		"password for sudo": {server: func(c *sshtest.Config) { c.Answer, c.SudoPassword = nil, "x" }, summary: "No credential from the control plane", detail: "set sudo_password"},
		"no admin.conf": {prepare: func(t *testing.T, p *plane) {
			if err := os.Remove(filepath.Join(p.etc, "kubernetes", "admin.conf")); err != nil {
				t.Fatal(err)
			}
		}, summary: "No credential from the control plane", detail: "neither /etc/kubernetes/admin.conf"},
		"unreadable": {prepare: func(t *testing.T, p *plane) {
			name := filepath.Join(p.etc, "kubernetes", "admin.conf")
			if err := errors.Join(os.Remove(name), os.Symlink("/proc/self/mem", name)); err != nil {
				t.Fatal(err)
			}
		}, summary: "No credential from the control plane", detail: "cannot be read (exit status 4)"},
		"garbage": {prepare: func(t *testing.T, p *plane) {
			if err := os.WriteFile(filepath.Join(p.etc, "kubernetes", "admin.conf"), []byte("canary: ["), 0o600); err != nil {
				t.Fatal(err)
			}
		}, summary: "No credential from the control plane", detail: "is no kubeconfig"},
		"paths of this computer": {prepare: conf(func(c *clientapi.Config) {
			for _, user := range c.AuthInfos {
				user.ClientCertificateData, user.ClientKeyData = nil, nil
				user.ClientCertificate, user.ClientKey, user.TokenFile = "/etc/passwd", "/etc/passwd", "/etc/passwd"
			}
		}), summary: "No credential from the control plane", detail: "no certificate with its key in it"},
		"a plugin to run here": {prepare: conf(func(c *clientapi.Config) {
			for _, user := range c.AuthInfos {
				user.ClientCertificateData, user.ClientKeyData = nil, nil
				user.Exec = &clientapi.ExecConfig{Command: "/bin/false", APIVersion: execV1, InteractiveMode: clientapi.NeverExecInteractiveMode}
			}
		}), summary: "No credential from the control plane", detail: "no certificate with its key in it"},
		"an administrator of old": {prepare: func(t *testing.T, p *plane) {
			p.write(t, "admin.conf", p.KubeconfigFor(t, kubetest.Login{User: "old", Expired: true}))
		}, summary: "The API server refuses the credential", detail: "kubeadm certs renew admin.conf"},
		"no API server":      {edit: func(c to) { c.Endpoint = "https://" + nowhere.String() }, summary: "The API server cannot be reached", detail: "from 127.0.0.1"},
		"says nothing there": {edit: func(c to) { c.Endpoint = "https://" + deaf.Addr().String() }, summary: "The API server cannot be reached", detail: "no answer within"},
		"no forwarding":      {server: func(c *sshtest.Config) { c.NoForwarding = true }, summary: "The API server cannot be reached", detail: "AllowTcpForwarding"},
		"another authority":  {edit: func(c to) { c.CA = "" }, summary: "Unknown authority of the API server", detail: "Give the cluster's own CA"},
		"no endpoint":        {edit: func(c to) { c.Endpoint = "" }, summary: "No credential for the cluster", detail: "give endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			var edits []func(*sshtest.Config)
			if tt.server != nil {
				edits = append(edits, tt.server)
			}
			p := newPlane(t, edits...)
			if tt.prepare != nil {
				tt.prepare(t, p)
			}
			connection := p.connection()
			if tt.edit != nil {
				tt.edit(&connection)
			}
			_, err := newPool(t).Get(t.Context(), connection)
			if err == nil {
				t.Fatal("it works")
			}
			summary, detail := Describe(err)
			if summary != tt.summary || !strings.Contains(detail, tt.detail) {
				t.Errorf("%s: %s\nwant %s: … %s", summary, detail, tt.summary, tt.detail)
			}
			if words := len(strings.Fields(summary)); words > 8 || !strings.HasSuffix(detail, ".") {
				t.Errorf("%q: %q", summary, detail)
			}
			for _, text := range []string{detail, err.Error()} {
				if strings.Contains(text, "canary") || strings.Contains(text, "PRIVATE") || strings.Contains(text, "client-key-data") {
					t.Errorf("it shows what is secret: %s", text)
				}
			}
		})
	}
}

// A dial without a pool has the environment to log in with.
func TestDialOverSSHByEnvironment(t *testing.T) {
	p := newPlane(t)
	p.bind(t)
	t.Setenv("STOKE_SSH_PASSWORD", sshPassword)
	c, err := Dial(t.Context(), p.connection(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(t, c); err != nil {
		t.Error(err)
	}
	c.Close()
	p.Eventually(t, "the SSH connection is closed", func(context.Context) (bool, error) { return p.Connections() == 0, nil })
}
