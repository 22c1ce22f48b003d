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
