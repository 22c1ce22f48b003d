package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gossh "golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

const behindSSH = `
provider "kube" {
  ssh {
    user             = "ops"
    private_key_file = "%[1]s/key"
  }
}
resource "kube_namespace" "lab" {
  name = "lab"
  cluster = {
    endpoint   = %[2]q
    ca         = file(%[3]q)
    credential = { ssh = { address = %[4]q, port = %[5]d, host_key = %[6]q } }
  }
}
`

// remote is a real control plane behind an SSH server, whose operators may do
// everything.
type remote struct {
	*kubetest.Cluster
	*sshtest.Server
	dir string
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	c := kubetest.Start(t, kubetest.Options{})
	etc, dir := t.TempDir(), t.TempDir()
	signer, private := sshtest.NewKey(t)
	r := &remote{c, sshtest.New(t, sshtest.Config{Authorized: []gossh.PublicKey{signer.PublicKey()}, Answer: sshtest.Etc(etc)}), dir}
	admin, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	host, port := r.Address()
	for name, text := range map[string]string{
		filepath.Join(etc, "kubernetes", "admin.conf"): string(admin),
		filepath.Join(dir, "key"):                      sshtest.PEM(t, private, ""),
		filepath.Join(dir, "main.tf"):                  fmt.Sprintf(behindSSH, dir, c.Endpoint, c.CAFile(), host, port, r.HostKey()),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Kubectl(t, "", "create", "clusterrolebinding", "stoke:operators", "--clusterrole=cluster-admin", "--group=stoke:operators")
	c.Eventually(t, "operators have rights", func(context.Context) (bool, error) {
		_, err := c.TryKubectl(t, c.Kubeconfig(), "", "auth", "can-i", "*", "*", "--as=somebody", "--as-group=stoke:operators")
		return err == nil, err
	})
	return r
}

// stokeAt calls stoke, with its two streams apart. want is the exit code.
func stokeAt(t *testing.T, dir string, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "stoke", append([]string{"-chdir=" + dir}, args...)...)
	cmd.Env = append(os.Environ(), "TF_LOG=trace", "TF_LOG_PATH="+filepath.Join(dir, "log"))
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Fatalf("stoke %v ended with %d, want %d:\n%s\n%s", args, got, want, &out, &err)
	}
	return out.String(), err.String()
}

// startProxy starts stoke proxy, and returns where it listens and what ends it.
func startProxy(t *testing.T, dir string, args ...string) (at string, end func()) {
	t.Helper()
	cmd := exec.Command("stoke", append([]string{"-chdir=" + dir, "proxy"}, args...)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, at, _ = strings.Cut(line, "http://")
	at, _, ok := strings.Cut(at, " ")
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("stoke proxy: %v\n%s", err, &complaint)
		}
	}
	t.Cleanup(end)
	if !ok {
		end()
		t.Fatalf("stoke proxy says %q\n%s", line, &complaint)
	}
	return at, end
}

// TestKubeconfigOverSSH: what is printed for a cluster behind SSH serves kubectl,
// through stoke proxy, and there is nothing secret in any file.
func TestKubeconfigOverSSH(t *testing.T) {
	r := newRemote(t)
	stokeAt(t, r.dir, 0, "apply", "-auto-approve")
	stokeAt(t, r.dir, 0, "plan", "-detailed-exitcode")
	text, said := stokeAt(t, r.dir, 0, "kubeconfig", "kube_namespace.lab")
	if said != "" {
		t.Errorf("it also says %s", said)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at, end := startProxy(t, r.dir, "kube_namespace.lab")
	if !strings.Contains(text, "proxy-url: http://"+at+"\n") {
		t.Errorf("the proxy listens at %s, and the kubeconfig is\n%s", at, text)
	}
	for args, want := range map[string]string{
		"get namespace lab -o name":                           "namespace/lab",
		"auth whoami -o jsonpath={.status.userInfo.groups}":   "stoke:operators",
		"auth whoami -o jsonpath={.status.userInfo.username}": "stoke:operator:",
		"config current-context":                              "kube_namespace.lab",
	} {
		if out, err := r.TryKubectl(t, kubeconfig, "", strings.Fields(args)...); err != nil || !strings.Contains(out, want) {
			t.Errorf("kubectl %s: %v\n%s", args, err, out)
		}
	}
	refusals(t, at, strings.TrimPrefix(r.Endpoint, "https://"))
	// The connection is cut, and the next one is through another.
	r.Drop()
	if out, err := r.TryKubectl(t, kubeconfig, "", "get", "namespace", "lab", "-o", "name"); err != nil {
		t.Errorf("after a cut: %v\n%s", err, out)
	}
	if _, said := stokeAt(t, r.dir, 1, "proxy", "kube_namespace.lab"); !strings.Contains(said, "Port cannot be listened at") {
		t.Errorf("a second one: %s", said)
	}
	end()
	if conn, err := net.Dial("tcp", at); err == nil {
		conn.Close()
		t.Error("it listens after its end")
	}
	if out, err := r.TryKubectl(t, kubeconfig, "", "get", "namespaces"); err == nil {
		t.Errorf("kubectl works without the proxy: %s", out)
	}
	// Both commands may be told another port.
	text, _ = stokeAt(t, r.dir, 0, "kubeconfig", "-port=20007", "-context=lab", "kube_namespace.lab")
	if !strings.Contains(text, "proxy-url: http://127.0.0.1:20007\n") || !strings.Contains(text, "current-context: lab\n") {
		t.Errorf("with other names:\n%s", text)
	}
	stokeAt(t, r.dir, 0, "destroy", "-auto-approve")
	noKeys(t, r)
}

// refusals: the proxy leads to one address, by one method.
func refusals(t *testing.T, at, to string) {
	t.Helper()
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]int{
		"GET http://" + to + "/version HTTP/1.1\r\nHost: " + to + "\r\n\r\n":              http.StatusMethodNotAllowed,
		"CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n":                         http.StatusForbidden,
		"CONNECT " + host + ":22 HTTP/1.1\r\nHost: " + to + "\r\n\r\n":                    http.StatusForbidden,
		"CONNECT localhost:" + port + " HTTP/1.1\r\nHost: localhost:" + port + "\r\n\r\n": http.StatusForbidden,
		"CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n":                         http.StatusOK,
	} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
		if err != nil || resp.StatusCode != want {
			t.Errorf("%q: %v, %v", request, resp, err)
		}
		conn.Close()
	}
}

// noKeys: neither the administrator's key nor one that was made is in anything
// that stoke wrote.
func noKeys(t *testing.T, r *remote) {
	t.Helper()
	admin, err := clientcmd.LoadFromFile(r.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	key := admin.AuthInfos[admin.Contexts[admin.CurrentContext].AuthInfo].ClientKeyData
	secrets := []string{string(key), strings.Split(string(key), "\n")[1], base64.StdEncoding.EncodeToString(key), "PRIVATE KEY", "client-key-data"}
	files := 0
	err = filepath.WalkDir(r.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(name) == "key" {
			return err
		}
		files++
		text, err := os.ReadFile(name)
		for _, secret := range secrets {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s has a key", name)
			}
		}
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
	if log, err := os.ReadFile(filepath.Join(r.dir, "log")); err != nil || len(log) == 0 {
		t.Errorf("nothing was logged: %v", err)
	}
}

// TestKubeconfigDirect: a cluster that is reached directly needs no proxy, and
// each kind of credential is handed out as it is needed.
func TestKubeconfigDirect(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	for name, login := range map[string]kubetest.Login{
		"certificate": {}, "files": {With: kubetest.CertificateFiles}, "token": {With: kubetest.Token}, "token file": {With: kubetest.TokenFile}, "plugin": {With: kubetest.Exec},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from := c.KubeconfigFor(t, login)
			object := strings.ReplaceAll(name, " ", "-")
			main := fmt.Sprintf("provider \"kube\" {\n  config_path = %q\n}\nresource \"kube_namespace\" \"lab\" {\n  name = %q\n}\n", from, object)
			if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o600); err != nil {
				t.Fatal(err)
			}
			stokeAt(t, dir, 0, "apply", "-auto-approve")
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			text, _ := stokeAt(t, dir, 0, "kubeconfig", "kube_namespace.lab")
			if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"proxy-url", "client-key-data", "token:"} {
				if strings.Contains(text, secret) {
					t.Errorf("it has %s:\n%s", secret, text)
				}
			}
			if out, err := c.TryKubectl(t, kubeconfig, "", "get", "namespace", object, "-o", "name"); err != nil || strings.TrimSpace(out) != "namespace/"+object {
				t.Errorf("%v\n%s", err, out)
			}
			if _, said := stokeAt(t, dir, 1, "proxy", "kube_namespace.lab"); !strings.Contains(said, "No proxy needed") {
				t.Errorf("a proxy: %s", said)
			}
			merged := filepath.Join(t.TempDir(), "merged")
			t.Setenv("KUBECONFIG", merged)
			if out, _ := stokeAt(t, dir, 0, "kubeconfig", "-merge", "-context=lab", "kube_namespace.lab"); !strings.Contains(out, "the context lab now") {
				t.Errorf("it says %s", out)
			}
			if out, err := c.TryKubectl(t, merged, "", "--context=lab", "get", "namespace", object, "-o", "name"); err != nil {
				t.Errorf("merged: %v\n%s", err, out)
			}
			wrongAsks(t, dir, from, text)
			// Where the configuration is gone nobody knows where the cluster is.
			if err := os.Remove(filepath.Join(dir, "main.tf")); err != nil {
				t.Fatal(err)
			}
			if out, said := stokeAt(t, dir, 1, "kubeconfig", "-credential", "kube_namespace.lab"); out != "" || !strings.Contains(said, "No cluster") {
				t.Errorf("without a configuration: %s%s", out, said)
			}
		})
	}
}

// wrongAsks: a credential is printed for the cluster that is meant alone, not by
// a stoke that asks itself, and nothing goes into the cluster's own kubeconfig.
func wrongAsks(t *testing.T, dir, from, text string) {
	t.Helper()
	entry, err := clientcmd.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !entry.AuthInfos["kube_namespace.lab"].Exec.ProvideClusterInfo {
		t.Error("the entry does not have kubectl say which cluster it asks for")
	}
	to := entry.Clusters["kube_namespace.lab"]
	ca := to.CertificateAuthorityData
	if len(ca) == 0 {
		if ca, err = os.ReadFile(to.CertificateAuthority); err != nil {
			t.Fatal(err)
		}
	}
	credential := []string{"kubeconfig", "-credential", "kube_namespace.lab"}
	for _, ask := range []struct {
		server, ca string
		want       int
	}{
		{to.Server, string(ca), 0}, {"https://other:6443", string(ca), 1}, {to.Server, "another", 1},
	} {
		t.Setenv("KUBERNETES_EXEC_INFO", fmt.Sprintf(`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false,"cluster":{"server":%q,"certificate-authority-data":%q}}}`,
			ask.server, base64.StdEncoding.EncodeToString([]byte(ask.ca))))
		out, said := stokeAt(t, dir, ask.want, credential...)
		if (out == "") != (ask.want != 0) || ask.want != 0 && !(strings.Contains(said, "Another cluster") && strings.Contains(said, ask.server) && strings.Contains(said, to.Server)) {
			t.Errorf("asked for %s: %s", ask.server, said)
		}
	}
	t.Setenv("KUBERNETES_EXEC_INFO", "")
	t.Setenv("STOKE_CREDENTIAL", "1")
	if out, said := stokeAt(t, dir, 1, credential...); out != "" || !strings.Contains(said, "Credential asks for itself") {
		t.Errorf("asked by itself: %s", said)
	}
	t.Setenv("STOKE_CREDENTIAL", "")
	t.Setenv("KUBECONFIG", from)
	before, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if _, said := stokeAt(t, dir, 1, "kubeconfig", "-merge", "kube_namespace.lab"); !strings.Contains(said, "cluster's own") {
		t.Errorf("merged into its own: %s", said)
	}
	if after, err := os.ReadFile(from); err != nil || string(after) != string(before) {
		t.Errorf("it changed: %v", err)
	}
	// The state means another cluster than the one that is there now.
	path := filepath.Join(dir, "terraform.tfstate")
	state, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`("cluster_id": *")[^"]*`).ReplaceAll(state, []byte("${1}elsewhere"))
	if string(other) == string(state) {
		t.Fatalf("no cluster_id in\n%s", state)
	}
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{credential, {"kubeconfig", "kube_namespace.lab"}} {
		if out, said := stokeAt(t, dir, 1, args...); out != "" || !strings.Contains(said, "elsewhere") {
			t.Errorf("%v for another cluster: %s", args, said)
		}
	}
	if err := os.WriteFile(path, state, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKubeconfigMerge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "config")
	entry := func(name, object string) *clientapi.Config {
		plugin := &clientapi.ExecConfig{Command: "stoke", APIVersion: "client.authentication.k8s.io/v1", Args: []string{"kubeconfig", object}, InteractiveMode: clientapi.NeverExecInteractiveMode}
		mark, err := markOf(plugin)
		if err != nil {
			t.Fatal(err)
		}
		config := clientapi.NewConfig()
		config.Clusters[name] = clientapi.NewCluster()
		config.Clusters[name].Server = "https://" + object
		config.AuthInfos[name] = &clientapi.AuthInfo{Exec: plugin}
		config.Contexts[name] = &clientapi.Context{Cluster: name, AuthInfo: name}
		for _, e := range []*map[string]runtime.Object{&config.Clusters[name].Extensions, &config.AuthInfos[name].Extensions, &config.Contexts[name].Extensions} {
			*e = map[string]runtime.Object{entryMark: mark}
		}
		return config
	}
	read := func() *clientapi.Config {
		all, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	current, err := mergeInto(t.Context(), path, entry("lab", "a"), "lab")
	if err != nil || current != "lab" {
		t.Fatal(current, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// Others keep theirs, and what they chose of ours.
	all := read()
	all.Contexts["lab"].Namespace = "training"
	all.Clusters["kind"], all.Contexts["kind"], all.CurrentContext = &clientapi.Cluster{Server: "https://kind"}, &clientapi.Context{Cluster: "kind"}, "kind"
	if err := clientcmd.WriteToFile(*all, path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	newer := entry("lab", "a")
	newer.Clusters["lab"].Server = "https://newer"
	if current, err = mergeInto(t.Context(), path, newer, "lab"); err != nil || current != "kind" {
		t.Errorf("%q, %v", current, err)
	}
	all = read()
	got := []string{all.Clusters["lab"].Server, all.Contexts["lab"].Namespace, all.Clusters["kind"].Server}
	if diff := cmp.Diff([]string{"https://newer", "training", "https://kind"}, got); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// What is not ours, or is of another object, stays.
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []*clientapi.Config{entry("kind", "a"), entry("lab", "b")} {
		if _, err := mergeInto(t.Context(), path, other, map[bool]string{true: "kind", false: "lab"}[other.Contexts["kind"] != nil]); err == nil {
			t.Error("an entry of somebody else is replaced")
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("it changed: %v\n%s", err, after)
	}
	// A link to it stays one, and what cannot be read is not replaced.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := mergeInto(t.Context(), link, entry("two", "c"), "two"); err != nil || read().Contexts["two"] == nil {
		t.Error(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link is a file")
	}
	if err := os.WriteFile(path, []byte("canary: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := mergeInto(t.Context(), path, entry("lab", "a"), "lab"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(path + ".lock"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
