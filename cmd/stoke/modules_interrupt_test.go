package main

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A download ends with the first Ctrl-C, and leaves nothing half done. What
// lets somebody in is in none of the messages.
func TestInitInterrupted(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stoke := filepath.Join(bin, "stoke") // the test's own binary, by the name that testscript runs
	if err := os.Symlink(self, stoke); err != nil {
		t.Fatal(err)
	}
	process := make(chan *os.Process, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("\x1f\x8b\x08"))
		w.(http.Flusher).Flush()
		p := <-process
		if err := p.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	authority := filepath.Join(bin, "authority.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	address := strings.Replace(server.URL, "https://", "https://me:s3cret@", 1) + "/a.tgz?token=s3cret"
	for name, content := range map[string]string{
		authority:                     string(text),
		filepath.Join(dir, "main.tf"): "module \"a\" {\n  source = \"" + address + "\"\n}\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	cmd := exec.Command(stoke, "init")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority, "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_DATA_DIR=", "HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process <- cmd.Process
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	if out := said.String(); !strings.Contains(out, "interrupted") || !strings.Contains(out, `in module "a"`) || strings.Contains(out, "s3cret") {
		t.Error(out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".terraform", "modules", ".partial*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, ".terraform", "modules", "modules.json"))
	if err == nil && strings.Contains(string(manifest), `"a"`) {
		t.Errorf("the manifest is %s", manifest)
	}
}
