package kubeadm

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// answers is a machine that answers every command so, and keeps what they were
// given on standard input.
func answers(a hosttest.Answer, input *[]string) *hosttest.Machine {
	return &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
		if input != nil {
			*input = append(*input, string(cmd.Stdin))
		}
		return a, true
	}}
}

func TestTokensStayHidden(t *testing.T) {
	token := NewToken()
	if !tokenForm.MatchString(token.reveal()) || token.reveal() == NewToken().reveal() {
		t.Fatal("a token is none")
	}
	for _, text := range []string{token.String(), fmt.Sprintf("%v %+v %#v", token, token, token), fmt.Sprintf("%v %+v", Join{Token: token}, Join{Token: token})} {
		if strings.Contains(text, token.secret) {
			t.Errorf("printing shows the secret: %s", strings.ReplaceAll(text, token.secret, "…"))
		}
	}
	var input []string
	m := answers(hosttest.Answer{}, &input)
	if err := Grant(t.Context(), m, token, "gpu-1", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := Revoke(t.Context(), m, token); err != nil {
		t.Fatal(err)
	}
	config, err := Join{Endpoint: "192.0.2.10:6443", CAHash: someHash, Token: token}.Configuration(fullNode())
	if err != nil {
		t.Fatal(err)
	}
	if err := Enter(t.Context(), m, config); err != nil {
		t.Fatal(err)
	}
	if len(m.Ran) != 3 || strings.Contains(strings.Join(m.Ran, "\n"), token.secret) {
		t.Errorf("%d commands, and none may have the secret in its arguments", len(m.Ran))
	}
	for i, want := range []string{"token-secret: " + token.secret, "", "token: " + token.reveal()} {
		if !strings.Contains(input[i], want) {
			t.Errorf("command %d does not get the token by standard input", i)
		}
	}
}

func TestTokensLiveShortly(t *testing.T) {
	m := answers(hosttest.Answer{}, nil)
	for _, life := range []time.Duration{0, -time.Minute, MaxTokenLife + time.Second, 24 * time.Hour} {
		if err := Grant(t.Context(), m, NewToken(), "n", life); err == nil {
			t.Errorf("a token may live for %s", life)
		}
	}
	if len(m.Ran) != 0 {
		t.Errorf("%d commands ran", len(m.Ran))
	}
}

func TestNodesInLabels(t *testing.T) {
	long := strings.Repeat("a.", 60) + "b"
	if got := labelValue("gpu-1"); got != "gpu-1" {
		t.Errorf("gpu-1 is %s", got)
	}
	if got := labelValue(long); len(got) != 32 || got == labelValue(long+"c") {
		t.Errorf("a long name is %s", got)
	}
}

func TestFailureSaysWhat(t *testing.T) {
	said := "[preflight] Running pre-flight checks\n" + strings.Repeat("a line\n", 30) +
		"\t[ERROR Swap]: swap is on\n\t[ERROR Port-6443]: Port 6443 is in use\nUsing token: abcdef.0123456789abcdef\n"
	err := Begin(t.Context(), answers(hosttest.Answer{Stdout: said, Status: 1}, nil), []byte("x"))
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatalf("%T: %v", err, err)
	}
	if want := []string{"Swap", "Port-6443"}; !slices.Equal(failed.Failed, want) {
		t.Errorf("failed checks %v, want %v", failed.Failed, want)
	}
	if len(failed.Lines) != maxLines || strings.Contains(err.Error(), "0123456789abcdef") {
		t.Errorf("%d lines: %v", len(failed.Lines), err)
	}
	var command *ssh.CommandError
	if !errors.As(err, &command) {
		t.Error("the command's end is lost")
	}
	if err := Enter(t.Context(), answers(hosttest.Answer{Status: busyStatus}, nil), nil); !errors.Is(err, ErrBusy) {
		t.Errorf("busy is %v", err)
	}
	lost := &ssh.LostError{Host: "h", Begun: true, Err: errors.New("cut")}
	if err := Enter(t.Context(), answers(hosttest.Answer{Err: lost}, nil), nil); !errors.Is(err, error(lost)) {
		t.Errorf("a connection that was cut is %v", err)
	}
}

func TestInitTooSlow(t *testing.T) {
	const late = "error: error execution phase wait-control-plane: cannot obtain client without bootstrap: could not bootstrap the admin user in file admin.conf: unable to create ClusterRoleBinding: Post \"https://192.0.2.1:6443/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?timeout=10s\": context deadline exceeded\n"
	for said, want := range map[string]bool{late: true, "error: error execution phase wait-control-plane: failed while waiting for the control plane to start: kube-apiserver check failed\n": false} {
		if is := Slow(Begin(t.Context(), answers(hosttest.Answer{Stdout: said, Status: 1}, nil), []byte("x"))); is != want {
			t.Errorf("%s: slow is %v", said, is)
		}
	}
	if Slow(nil) || Slow(Phase(t.Context(), answers(hosttest.Answer{Stdout: late, Status: 1}, nil), []byte("x"), "addon", "all")) {
		t.Error("what is no init is slow")
	}
}

func TestInitRunsOnce(t *testing.T) {
	var seen []host.Command
	m := &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
		seen = append(seen, cmd)
		return hosttest.Answer{}, true
	}}
	for _, do := range []func(context.Context, host.Machine, []byte) error{Begin, Enter} {
		if err := do(t.Context(), m, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := Phase(t.Context(), m, []byte("x"), "certs", "apiserver"); err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, cmd := range seen {
		if !cmd.Once {
			t.Errorf("%v is repeated when a connection breaks", cmd.Args[4:])
		}
		ran = append(ran, strings.Join(cmd.Args[5:], " "))
	}
	if want := []string{"init --skip-phases=show-join-command", "join", "init phase certs apiserver"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

// TestInside: a proxy of the machine's is not asked for what is in the cluster, by
// kubeadm and by what it hands its environment to.
func TestInside(t *testing.T) {
	config, err := fullCluster().Init(fullNode(), NewToken())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(clusterNames(config), " "), "192.0.2.10 10.112.0.0/16 fd00:2::/112 10.64.0.0/14 fd00:1::/48 .svc .lab.example api.lab.example"; got != want {
		t.Errorf("inside the cluster are %s, want %s", got, want)
	}
	join, err := Join{Endpoint: "192.0.2.10:6443", CAHash: someHash, Token: NewToken()}.Configuration(fullNode())
	if got := clusterNames(join); err != nil || !slices.Equal(got, []string{"192.0.2.10"}) {
		t.Errorf("inside the cluster of a join are %v, %v", got, err)
	}
	for _, test := range []struct{ env, want string }{
		{"", "init|/"}, {"no_proxy=a", "init|a/"}, {"https_proxy=http://p", "init|10.0.0.0/8/10.0.0.0/8"}, {"HTTPS_PROXY=http://p NO_PROXY=a", "init|a,10.0.0.0/8/a,10.0.0.0/8"},
	} {
		cmd := exec.Command("env", append(append([]string{"-i"}, strings.Fields(test.env)...), "/bin/sh", "-c", direct+`printf %s "$*|${no_proxy-}/${NO_PROXY-}"`, "sh", "10.0.0.0/8", "init")...)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != test.want {
			t.Errorf("with %q: %s, %v", test.env, out, err)
		}
	}
}

// certificate makes one of that name, in PEM.
func certificate(t *testing.T, name string, ends time.Time) (*x509.Certificate, []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: ends, DNSNames: []string{"kubernetes"}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, public, private)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestObserve(t *testing.T) {
	ends := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	authority, authorityPEM := certificate(t, "kubernetes", ends)
	_, identity := certificate(t, "system:node:head", ends.Add(time.Hour))
	b64 := base64.StdEncoding.EncodeToString
	static := "spec:\n  containers:\n  - image: registry.k8s.io/kube-apiserver:v1.36.3\n    command: [kube-apiserver, --secure-port=6443, --v=2, --v=3]\n"
	programs := "kubeadm\tv1.36.3\nkubelet\tKubernetes v1.36.2\nactive\tactive\nenabled\tenabled\nrestart\tdue\n"
	node := "there\t/etc/kubernetes/kubelet.conf\nserver\thttps://192.0.2.10:6443\ncertificate\t" + kubeletIdentity + "\t" + b64(identity) +
		"\nfile\t" + kubeletFile + "\t" + b64([]byte("maxPods: 7\n")) + "\nfile\t" + flagsFile + "\t" + b64([]byte("KUBELET_KUBEADM_ARGS=\"--node-ip=192.0.2.10\"\n")) + "\n"
	control := "there\t" + apiServerFile + "\nthere\t" + adminConf + "\nthere\t/var/lib/etcd/member\netcd\tyes\ncertificate\t" + authorityFile + "\t" + b64(authorityPEM) + "\nfile\t" + apiServerFile + "\t" + b64([]byte(static)) + "\n"

	for _, c := range []struct {
		name, said string
		role       Role
		whole      bool
	}{
		{"nothing", "kubeadm\t\nkubelet\t\nactive\tinactive\nenabled\t\n", NoRole, false},
		{"leftovers", programs + "there\t/var/lib/etcd/member\netcd\tyes\n", NoRole, false},
		{"worker", programs + node, Worker, true},
		{"worker that only began", programs + "there\t/etc/kubernetes/bootstrap-kubelet.conf\n", Worker, false},
		{"control plane", programs + control + node, ControlPlane, true},
		{"control plane without a kubelet", programs + control + "running\tyes\n", ControlPlane, false},
	} {
		f, err := Observe(t.Context(), answers(hosttest.Answer{Stdout: c.said + "end\n"}, nil))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if f.Role != c.role || f.Whole != c.whole || (len(f.Left) > 0) != (c.name == "leftovers") {
			t.Errorf("%s: role %q, whole %v, left %v", c.name, f.Role, f.Whole, f.Left)
		}
		if f.RestartDue != (c.name != "nothing") {
			t.Errorf("%s: the kubelet is to be restarted: %v", c.name, f.RestartDue)
		}
		if c.name != "control plane" {
			continue
		}
		if f.NodeName != "head" || !f.Etcd || f.CAHash != CAHash(authority) || f.Version != "v1.36.3" || f.Kubelet != "v1.36.2" || f.Server != "https://192.0.2.10:6443" {
			t.Errorf("%+v", f)
		}
		if !slices.Equal(f.APIServer["v"], []string{"2", "3"}) || f.KubeletConfig["maxPods"] != float64(7) || f.KubeletArgs != "--node-ip=192.0.2.10" {
			t.Errorf("arguments %v, configuration %v, %s", f.APIServer, f.KubeletConfig, f.KubeletArgs)
		}
		if got := f.Certificates[authorityFile]; !got.Expires.Equal(ends) || !slices.Equal(got.Names, []string{"kubernetes"}) || len(f.Certificates) != 2 {
			t.Errorf("certificates %v", f.Certificates)
		}
	}
	if _, err := Observe(t.Context(), answers(hosttest.Answer{Stdout: programs}, nil)); err == nil {
		t.Error("half an answer is taken for a whole one")
	}
}
