package kubeadm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestLogsAreKept runs what keeps the last lines: they are there, and nothing
// secret is. Others cannot read them.
func TestLogsAreKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "failure.log")
	said := `E1124 12:00:00.1 kubelet.go:1] cannot pull registry.example/a:1
token abcdef.0123456789abcdef and "token": "s3cretA", Authorization: Bearer s3cretB
I1124 password=s3cretC client-key-data: s3cretD, eyJhbGciOiJSUzI1NiIsImtpZCI6.s3cretE
-----BEGIN RSA PRIVATE KEY-----
s3cretF
-----END RSA PRIVATE KEY-----
and on`
	journal := "#!/bin/sh\necho \"of $*\"\ncat <<'E'\n" + said + "\nE\n"
	if err := os.WriteFile(filepath.Join(dir, "journalctl"), []byte(journal), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", keepLogs, "sh", file)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"== kubelet\n", "== containerd\n", "--unit=containerd.service", "cannot pull registry.example/a:1", "(private key)", "and on"} {
		if !strings.Contains(string(kept), want) {
			t.Errorf("the file has nothing of %q:\n%s", want, kept)
		}
	}
	if strings.Contains(string(kept), "s3cret") || tokenForm.Match(kept) {
		t.Errorf("the file has a secret:\n%s", kept)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	errors, err := exec.Command("sh", "-c", lastErrors, "sh", file, "3").Output()
	if err != nil || strings.Count(string(errors), "\n") != 2 || !strings.HasPrefix(string(errors), "E1124") {
		t.Errorf("the last errors are %q, %v", errors, err)
	}
	if got := LastErrors(t.Context(), answers(hosttest.Answer{Status: 1}, nil), file); got != "" {
		t.Errorf("no errors are %q", got)
	}
}

// TestHalvesAreDropped runs what removes certificates that were half written.
func TestHalvesAreDropped(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"pki/ca.crt": "c", "pki/ca.key": "k", "pki/apiserver.key": "k", "pki/front-proxy-ca.crt": "", "pki/front-proxy-ca.key": "k",
		"pki/etcd/ca.crt": "c", "pki/etcd/ca.key": "k", "pki/etcd/server.crt": "c", "pki/etcd/server.key": "", "pki/sa.key": "k",
		"admin.conf": "", "kubelet.conf": "c",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.Replace(dropHalves, "/etc/kubernetes", dir, 1)
	if out, err := exec.Command("sh", "-c", script, "sh").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var left []string
	for _, pattern := range []string{"*.conf", "pki/*.*", "pki/etcd/*"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range files {
			name, _ := filepath.Rel(dir, f)
			left = append(left, name)
		}
	}
	if got, want := strings.Join(left, " "), "kubelet.conf pki/ca.crt pki/ca.key pki/etcd/ca.crt pki/etcd/ca.key"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
}

// TestEtcdIsFound runs what finds the data of etcd: where its pod has them, which a
// patch may have put elsewhere.
func TestEtcdIsFound(t *testing.T) {
	const pod = `spec:
  containers:
  - name: etcd
    livenessProbe:
      httpGet:
        path: /livez
    volumeMounts:
    - mountPath: /var/lib/etcd
      name: etcd-data
  volumes:
  - hostPath:
      path: /etc/kubernetes/pki/etcd
      type: DirectoryOrCreate
    name: etcd-certs
  - hostPath:
      path: DATA
      type: DirectoryOrCreate
    name: etcd-data
status: {}
`
	dir := t.TempDir()
	file := filepath.Join(dir, "etcd.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(pod, "DATA", dir+"/data")), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func() string {
		_, script, _ := strings.Cut(observe, "# A patch may have")
		script, _, _ = strings.Cut(script, "\n[ ! -f /etc/kubernetes/kubelet.conf")
		out, err := exec.Command("sh", "-c", "#"+strings.Replace(script, etcdFile, file, 1), "sh").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := look(); got != "" {
		t.Errorf("data that are not there: %q", got)
	}
	if err := os.MkdirAll(filepath.Join(dir, "data", "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != "etcd\tyes\n" {
		t.Errorf("data elsewhere: %q", got)
	}
}
