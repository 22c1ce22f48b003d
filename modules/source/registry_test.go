package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	svchost "github.com/hashicorp/terraform-svchost"
)

// strictRegistry answers what the protocol has and nothing else.
func strictRegistry(t testing.TB, token string) (*httptest.Server, *counter) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/terraform.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"modules.v1": "/api/modules/v1/", "providers.v1": "/p/", "login.v1": {"client": "x"}}`)
	})
	page := func(path string, answer func(w http.ResponseWriter)) {
		mux.HandleFunc("GET /api/modules/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			answer(w)
		})
	}
	page("a/b/c/versions", func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"modules": [{"source": "a/b/c", "versions": [{"version": "1.0.0"}, {"version": "1.2.0-rc1"}, {"version": "1.1.0"}]}]}`)
	})
	page("a/b/c/1.0.0/download", func(w http.ResponseWriter) {
		w.Header().Set("X-Terraform-Get", "../../../../../../../archives/b.tar.gz//*?archive=tar.gz")
		w.WriteHeader(http.StatusNoContent)
	})
	page("a/b/c/1.1.0/download", func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"location": "git::https://example.com/b.git?ref=v1.1.0"}`)
	})
	page("a/b/c/1.2.0-rc1/download", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) })
	page("a/odd/c/versions", func(w http.ResponseWriter) { fmt.Fprint(w, `<html>`) })
	failures := 2
	page("a/tired/c/versions", func(w http.ResponseWriter) {
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, `{"modules": [{"versions": []}]}`)
	})
	page("a/broken/c/versions", func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) })
	c := &counter{Handler: mux}
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	return server, c
}

func asked(t testing.TB, server *httptest.Server, module string) (*Registry, Address) {
	t.Helper()
	a, err := Parse(strings.TrimPrefix(server.URL, "https://") + "/" + module)
	if err != nil {
		t.Fatal(err)
	}
	return &Registry{HTTP: server.Client(), Wait: time.Microsecond}, a
}

func TestRegistry(t *testing.T) {
	server, requests := strictRegistry(t, "")
	r, a := asked(t, server, "a/b/c//sub")
	versions, err := r.Versions(t.Context(), a)
	if diff := cmp.Diff([]string{"1.0.0", "1.2.0-rc1", "1.1.0"}, versions); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for version, want := range map[string]string{
		"1.0.0": server.URL + "/archives/b.tar.gz//*?archive=tar.gz",
		"1.1.0": "git::https://example.com/b.git?ref=v1.1.0",
	} {
		location, err := r.Location(t.Context(), a, version)
		if err != nil || location.Text != want {
			t.Errorf("%s: %q, %v", version, location.Text, err)
		}
	}
	if n := requests.n.Load(); n != 4 { // discovery once
		t.Errorf("%d requests", n)
	}
	r, a = asked(t, server, "a/tired/c")
	if versions, err := r.Versions(t.Context(), a); err != nil || len(versions) != 0 {
		t.Errorf("tired: %v, %v", versions, err)
	}
}

func TestRegistryErrors(t *testing.T) {
	server, _ := strictRegistry(t, "")
	for module, want := range map[string]string{"a/none/c": "has no module a/none/c", "a/odd/c": "no list of versions", "a/broken/c": "500"} {
		r, a := asked(t, server, module)
		if _, err := r.Versions(t.Context(), a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", module, err)
		}
	}
	r, a := asked(t, server, "a/b/c")
	for version, want := range map[string]string{"1.2.0-rc1": "does not say where", "9.9.9": "has no module"} {
		if _, err := r.Location(t.Context(), a, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
	documents := map[string]string{
		"not json": "not a JSON object", `{}`: "no registry of modules", `{"modules.v1": "ftp://x"}`: "not a web address",
		`{"modules.v1": "http://example.com/"}`: "not encrypted", `{"modules.v1": {}}`: "no registry of modules",
	}
	for document, want := range documents {
		odd := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, document) }))
		r, a := asked(t, odd, "a/b/c")
		if _, err := r.Versions(t.Context(), a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", document, err)
		}
		odd.Close()
		if _, err := r.Versions(t.Context(), a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, which is known: %v", document, err)
		}
		r, a = asked(t, odd, "a/b/c")
		if _, err := r.Versions(t.Context(), a); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("closed: %v", err)
		}
	}
}

func TestCredentials(t *testing.T) {
	server, _ := strictRegistry(t, "t0ken")
	r, a := asked(t, server, "a/b/c")
	if _, err := r.Versions(t.Context(), a); err == nil || !strings.HasSuffix(err.Error(), "token in a credentials block of the CLI configuration") {
		t.Error(err)
	}
	if text := tokenPlace("my-host.example.com"); !strings.Contains(text, "TF_TOKEN_my__host_example_com,") {
		t.Error(text)
	}
	r.Credentials = &Credentials{Tokens: map[svchost.Hostname]string{a.registry.Host: "t0ken"}}
	if _, err := r.Versions(t.Context(), a); err != nil {
		t.Error(err)
	}
	helper := filepath.Join(t.TempDir(), "helper")
	text := "#!/bin/sh\n[ \"$1 $2\" = '--flag get' ] || exit 2\ncase \"$3\" in bad*) echo 'no such host' >&2; exit 1;; odd*) echo odd;; *) echo '{\"token\": \"t0ken\"}';; esac\n"
	if err := os.WriteFile(helper, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Credentials{
		Environ: []string{"TF_TOKEN_example_com=old", "TF_TOKEN_example_com=new", "TF_TOKEN_my__host_example_com=dash", "TF_TOKEN_xn__80akhbyknj4f=idn"},
		Tokens:  map[svchost.Hostname]string{"example.com": "configured", "other.example.com": "configured"},
		Helper:  []string{helper, "--flag"},
	}
	for host, want := range map[svchost.Hostname]string{
		"example.com": "new", "other.example.com": "configured", "my-host.example.com": "dash", "third.example.com": "t0ken",
	} {
		if got, err := c.token(t.Context(), host); got != want || err != nil {
			t.Errorf("%s: %q, %v", host, got, err)
		}
	}
	for host, want := range map[svchost.Hostname]string{"bad.example.com": "no such host", "odd.example.com": "no JSON"} {
		if _, err := c.token(t.Context(), host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestManifest(t *testing.T) {
	// As Terraform 1.11 writes it.
	const text = `{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"a","Source":"registry.terraform.io/x/y/z","Version":"1.0.0","Dir":".terraform/modules/a/sub"},{"Key":"a.b","Source":"../other","Dir":".terraform/modules/a/other"}]}`
	m, err := DecodeManifest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(m.Encode())); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "[]", `{"Modules":[{"Key":"a","Dir":"x"},{"Key":"a","Dir":"y"}]}`, `{"Modules":[{"Key":"a"}]}`} {
		if _, err := DecodeManifest([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
