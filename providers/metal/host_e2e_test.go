//go:build e2e && linux

package metal_test

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// unchanged fails unless a machine is as it was.
func unchanged(t *testing.T, m *lab.Machine, before lab.Snapshot, except ...string) {
	t.Helper()
	if diff := lab.Diff(before, m.Snapshot(), except...); len(diff) > 0 {
		t.Errorf("after destroy the machine is another one:\n%s", strings.Join(diff, "\n"))
	}
}

// TestHostPackages: installed, held, drifted, mended and gone again.
func TestHostPackages(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1")
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
	p.has(p.differs(), `"stoke-other"`, "hold")
	p.apply()
	p.settled()

	m.Reboot()
	p.settled()
	config("1.1-*")
	p.has(p.differs(), "1.1-*", "stoke-demo 1.0-1 → 1.1-1")
	p.apply()
	p.settled()
	p.ok("destroy", "-auto-approve")
	unchanged(t, m, before)
}

// TestHostSoftware: containerd and the CUDA toolkit by their versions alone,
// from mirrors of the repositories that they are known to come from.
func TestHostSoftware(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1")
	docker := l.Repository(l.ContainerdPackage("2.2.1"), l.ContainerdPackage("2.1.5"))
	cuda := l.Repository(l.CUDAPackage("12.9"))
	before := m.Snapshot()
	p := newProject(t, l)
	config := func(version string) {
		p.write(`resource "metal_host" "a" {
  address  = %q
  host_key = %q
  containerd_package = {
    version    = %q
    repository = { url = %q, key_url = %q, key_fingerprint = %q }
  }
  containerd = {}
  cuda_toolkit = {
    version    = "12.9"
    repository = { url = %q, key_url = %q, key_fingerprint = %q }
  }
}`, m.Address, m.HostKey, version, docker.URL, docker.KeyURL, docker.Fingerprint, cuda.URL, cuda.KeyURL, cuda.Fingerprint)
	}
	config("2.1")
	p.apply()
	p.settled()
	m.Exec("/usr/local/cuda-12.9/bin/nvcc")
	if held := m.Exec("apt-mark", "showhold"); !strings.Contains(held, "containerd.io") {
		t.Errorf("held: %q", held)
	}
	m.Exec("apt-get", "-y", "-q", "purge", "cuda-toolkit-12-9")
	m.Exec("apt-mark", "unhold", "containerd.io")
	p.has(p.differs(), "cuda_toolkit", "(not held)")
	p.apply()
	p.settled()
	config("2.2")
	p.has(p.differs(), `"2.1" -> "2.2"`, "restarts containerd")
	p.apply()
	p.settled()
	p.has(p.ok("destroy", "-auto-approve"), "/var/lib/containerd: it is containerd's")
	unchanged(t, m, before, "folder /var/lib/containerd/...")
}
