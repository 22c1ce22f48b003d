//go:build e2e && linux

package metal_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// unchanged fails unless a machine is as it was.
func unchanged(t *testing.T, m *lab.Machine, before lab.Snapshot, except ...string) {
	t.Helper()
	except = append([]string{"file /var/backups/...", "content /var/backups/..."}, except...) // Debian's own, every midnight
	if diff := lab.Diff(before, m.Snapshot(), except...); len(diff) > 0 {
		t.Errorf("after destroy the machine is another one:\n%s", strings.Join(diff, "\n"))
	}
}

// TestHostPackages: installed, held, drifted, fixed and gone again.
func TestHostPackages(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.NoMirror())
	r := l.Repository(lab.Package{Name: "stoke-demo", Version: "1.0-1"}, lab.Package{Name: "stoke-demo", Version: "1.1-1"}, lab.Package{Name: "stoke-other", Version: "3"})
	before := m.Snapshot()
	p := newProject(t, l)
	config := func(version string) {
		p.write(`resource "metal_host" "a" {
  address  = %q
  host_key = %q
  apt_repositories = {
    demo = { uris = [%q], suites = ["/"], key_url = %q, key_fingerprints = [%q] }
  }
  packages = {
    stoke-demo  = { version = %q, hold = true }
    stoke-other = {}
  }
}`, m.Address, m.HostKey, r.URL, r.KeyURL, r.Fingerprint, version)
	}
	config("1.0-*")
	p.apply()
	p.settled()
	if v := strings.TrimSpace(m.Exec("dpkg-query", "-W", "-f", "${Version}", "stoke-demo")); v != "1.0-1" {
		t.Errorf("installed is %q", v)
	}

	m.Exec("apt-mark", "unhold", "stoke-demo")
	m.Exec("apt-get", "-y", "-q", "purge", "stoke-other")
	p.has(p.apply(), `"stoke-other"`, "hold")
	m.Reboot()
	p.settled()
	config("1.1-*")
	p.has(p.apply(), "1.1-*", "stoke-demo 1.0-1 → 1.1-1")
	p.settled()
	p.ok("destroy", "-auto-approve")
	unchanged(t, m, before)
}

// proxyTo is a proxy to one repository, which it knows by a URL that leads nowhere.
// Whatever else it is asked for, it refuses.
func proxyTo(t *testing.T, r *lab.Repository, base string) (address string) {
	t.Helper()
	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(at.Hostname(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		path, known := strings.CutPrefix("http://"+q.URL.Host+q.URL.Path, base)
		if q.Method != http.MethodGet || !known {
			t.Errorf("the proxy is asked to %s %s", q.Method, q.URL)
			http.Error(w, "not through here", http.StatusForbidden)
			return
		}
		if path == "/gpg" {
			path = "/key.asc"
		}
		q.URL.Path = path
		r.ServeHTTP(w, q)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}

// TestHostSoftware: containerd and the CUDA toolkit by their versions alone,
// containerd through a proxy from the provider's mirror of the repository that it
// is known to come from, the toolkit from a mirror of its own, past the proxy.
func TestHostSoftware(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.NoMirror())
	docker := l.Repository(l.ContainerdPackage("2.2.1"), l.ContainerdPackage("2.1.5"))
	cuda := l.Repository(l.CUDAPackage("12.9"))
	before := m.Snapshot()
	p := newProject(t, l)
	const mirror = "http://packages.example/docker"
	p.file("provider.tf", fmt.Sprintf(`terraform {
  required_providers {
    metal = { source = "stokehq/metal" }
  }
}
provider "metal" {
  ssh {
    user             = "ops"
    private_key_file = "${path.module}/id"
  }
  mirrors = { "https://download.docker.com" = %q }
  proxy {
    http     = %q
    no_proxy = [%q]
  }
}
`, mirror, proxyTo(t, docker, mirror+"/linux/debian"), m.Address[:strings.LastIndexByte(m.Address, '.')]+".0/24"))
	config := func(version string) {
		p.write(`resource "metal_host" "a" {
  address  = %q
  host_key = %q
  containerd_package = {
    version    = %q
    repository = { key_fingerprint = %q }
  }
  containerd = {}
  cuda_toolkit = {
    version    = "12.9"
    repository = { url = %q, key_url = %q, key_fingerprint = %q }
  }
}`, m.Address, m.HostKey, version, docker.Fingerprint, cuda.URL, cuda.KeyURL, cuda.Fingerprint)
	}
	config("2.1")
	p.apply()
	m.Exec("/usr/local/cuda-12.9/bin/nvcc")
	if held := m.Exec("apt-mark", "showhold"); !strings.Contains(held, "containerd.io") {
		t.Errorf("held: %q", held)
	}
	m.Exec("apt-get", "-y", "-q", "purge", "cuda-toolkit-12-9")
	m.Exec("apt-mark", "unhold", "containerd.io")
	p.has(p.apply(), "cuda_toolkit", "(not held)")
	p.settled()
	config("2.2.1")
	p.has(p.apply(), `"2.1" -> "2.2.1"`, `containerd_package["version"]: package containerd.io: restarts containerd`)
	p.settled()
	p.has(p.ok("destroy", "-auto-approve"), "/var/lib/containerd: it belongs to containerd", "; package containerd.io, cuda-toolkit-12-9 — left: ")
	unchanged(t, m, before, "folder /var/lib/containerd/...")
}
