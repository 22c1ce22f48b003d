package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestModuleScripts runs scripts beside a server that is a registry and has
// archives, with a certificate of its own. In files that the command subst
// names, $REGISTRY is its host.
func TestModuleScripts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	testscript.Run(t, testscript.Params{
		Files: scripts(t, "testdata/modules"), UpdateScripts: *rewrite,
		Setup: func(env *testscript.Env) error {
			server := moduleServer(t)
			authority := filepath.Join(env.WorkDir, "authority.pem")
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			if err := os.WriteFile(authority, text, 0o600); err != nil {
				return err
			}
			for _, pair := range [][2]string{
				{"REGISTRY", strings.TrimPrefix(server.URL, "https://")}, {"SSL_CERT_FILE", authority}, {"TF_CLI_CONFIG_FILE", os.DevNull},
				{"GIT_CONFIG_NOSYSTEM", "1"}, {"GIT_AUTHOR_NAME", "a"}, {"GIT_AUTHOR_EMAIL", "a@example.com"},
				{"GIT_COMMITTER_NAME", "a"}, {"GIT_COMMITTER_EMAIL", "a@example.com"},
			} {
				env.Setenv(pair[0], pair[1])
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"subst": substitute},
	})
}

// substitute replaces variables of the environment in files.
func substitute(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), func(name string) string {
			if value := ts.Getenv(name); value != "" {
				return value
			}
			return "${" + name + "}"
		})
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// moduleServer is a registry with module a/b/c in three versions, of which
// each says what it is, with a private one, and with bare archives.
func moduleServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/terraform.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"modules.v1": "/v1/"}`)
	})
	for _, module := range []string{"a/b/c", "secret/b/c"} {
		allowed := func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(module, "secret") && r.Header.Get("Authorization") != "Bearer t0ken" {
				w.WriteHeader(http.StatusUnauthorized)
				return false
			}
			return true
		}
		mux.HandleFunc("GET /v1/"+module+"/versions", func(w http.ResponseWriter, r *http.Request) {
			if allowed(w, r) {
				fmt.Fprint(w, `{"modules": [{"versions": [{"version": "1.0.0"}, {"version": "2.0.0"}, {"version": "1.1.0"}, {"version": "3.0.0-rc1"}]}]}`)
			}
		})
		mux.HandleFunc("GET /v1/"+module+"/{version}/download", func(w http.ResponseWriter, r *http.Request) {
			if allowed(w, r) {
				w.Header().Set("X-Terraform-Get", "/archives/"+r.PathValue("version")+".tar.gz//top-x")
				w.WriteHeader(http.StatusNoContent)
			}
		})
	}
	mux.HandleFunc("GET /archives/{name}", func(w http.ResponseWriter, r *http.Request) {
		version := strings.TrimSuffix(r.PathValue("name"), ".tar.gz")
		_, _ = w.Write(moduleArchive(t, version))
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	return server
}

// moduleArchive is a package with a module, one within, and a relative call
// from the one to the other. Version "evil" writes where it must not.
func moduleArchive(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	files := map[string]string{
		"top-x/main.tf":       "module \"inner\" {\n  source = \"./sub\"\n}\noutput \"version\" {\n  value = \"" + version + " with ${module.inner.text}\"\n}\n",
		"top-x/sub/sub.tf":    "output \"text\" {\n  value = \"inner\"\n}\n",
		"top-x/leave/main.tf": "module \"out\" {\n  source = \"../../../../..\"\n}\n",
	}
	if version == "evil" {
		files["../../../../evil.tf"] = "locals {}\n"
	}
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte(text))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := z.Close(); err != nil {
		t.Error(err)
	}
	return b.Bytes()
}

// Terraform and stoke install the same, and each uses what the other has
// installed.
func TestModulesAsTerraform(t *testing.T) {
	t.Parallel()
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	dir := t.TempDir()
	server := moduleServer(t)
	host := strings.TrimPrefix(server.URL, "https://")
	environ := append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "cli.hcl"), "SSL_CERT_FILE="+filepath.Join(dir, "authority.pem"), "CHECKPOINT_DISABLE=1", "TF_DATA_DIR=",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "HOME="+dir)
	run := func(in, program string, args ...string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = in, environ
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
		}
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("authority.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	put("cli.hcl", "credentials \""+host+"\" {\n  token = \"t0ken\"\n}\n")
	put("repository/main.tf", "module \"o\" {\n  source = \"./sub/../other\"\n}\n")
	put("repository/sub/s.tf", "module \"o\" {\n  source = \"../other\"\n}\n")
	put("repository/other/o.tf", "output \"x\" {\n  value = 1\n}\n")
	put("plain/p.tf", "output \"x\" {\n  value = 1\n}\n")
	repository := filepath.Join(dir, "repository")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "one"}, {"tag", "v1"}} {
		run(repository, "git", args...)
	}
	const config = `
module "whole" { source = "git::file://%[1]s/repository" }
module "tag"   { source = "git::file://%[1]s/repository//sub?ref=v1" }
module "same"  { source = "git::file://%[1]s/repository//./sub/?ref=v1" }
module "path"  { source = "%[1]s/plain" }
module "local" { source = "./a/../local" }
module "newest" { source = "%[2]s/a/b/c" }
module "within" { source = "%[2]s/a/b/c//sub" }
module "secret" { source = "%[2]s/secret/b/c" }
module "packed" { source = "https://%[2]s/archives/7.tar.gz//top-x" }
module "again"  { source = "https::https://%[2]s/archives/7.tar.gz//top-x/sub" }
`
	for _, name := range []string{"one", "two"} {
		put(name+"/main.tf", fmt.Sprintf(config, dir, host))
		put(name+"/local/l.tf", "module \"deeper\" {\n  source = \"./deeper\"\n}\n")
		put(name+"/local/deeper/l.tf", "output \"x\" {\n  value = 1\n}\n")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stoke := filepath.Join(t.TempDir(), "stoke") // the test's own binary, by the name that testscript runs
	if err := os.Symlink(self, stoke); err != nil {
		t.Fatal(err)
	}
	run(filepath.Join(dir, "one"), stoke, "init")
	run(filepath.Join(dir, "two"), terraform, "init")
	var texts [2]string
	for i, name := range []string{"one", "two"} {
		text, err := os.ReadFile(filepath.Join(dir, name, ".terraform/modules/modules.json"))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if diff := cmp.Diff(texts[1], texts[0]); diff != "" {
		t.Error(diff)
	}
	run(filepath.Join(dir, "one"), terraform, "validate")
	run(filepath.Join(dir, "two"), stoke, "validate")
	run(filepath.Join(dir, "two"), stoke, "init")
}
