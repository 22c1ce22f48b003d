//go:build e2e && linux

package metal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// The container runtime through the whole of stoke, from a machine without one.
func TestHostContainerd(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.Mirror("containerd", "runc"))
	before := m.Snapshot()
	p := newProject(t, l)
	bring := func(content string) {
		b, err := os.ReadFile(lab.ImageArchive(t, content, "registry.lan/a:1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.dir, "a.tar"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bring("one")
	config := func(more string) {
		p.write(`resource "metal_host" "node" {
  address  = %q
  host_key = %q
  packages = { containerd = {} }
%s
}`, m.Address, m.HostKey, more)
	}
	const all = `
  containerd = {
    sandbox_image    = "registry.lan/pause:3.10.1"
    cni_bin_dir      = "/usr/lib/cni"
    registry_mirrors = { "docker.io" = { endpoints = ["https://mirror.lan:5000"] } }
  }
  images = { "registry.lan/a:1" = { archive = "${path.module}/a.tar", pin = true } }`
	config(all)
	p.has(p.apply(), "reloads systemd", `"registry.lan/a:1"`)
	p.settled()
	// One after the other is in the tests of package containerd; here all at once.
	m.Script(`sed -i 's/SystemdCgroup = true/SystemdCgroup = false/' /etc/containerd/config.toml
sed -i s/mirror.lan/other.lan/ /etc/containerd/certs.d/docker.io/hosts.toml
ctr -n k8s.io images rm registry.lan/a:1
systemctl --quiet disable containerd`)
	p.has(flat(p.apply()), "- SystemdCgroup = false", "+ SystemdCgroup = true", "restarts containerd", `"https://other.lan:5000" -> "https://mirror.lan:5000"`,
		`"running, not enabled" -> "running and enabled"`, `+ "registry.lan/a:1"`)
	m.Script("touch /run/stoke-containerd-restart; ctr -n k8s.io images label registry.lan/a:1 io.cri-containerd.pinned=")
	p.has(flat(p.apply()), `"running, with a configuration that has been replaced since"`, "restarts containerd", "pin = false -> true")
	m.Reboot()
	p.settled()

	bring("two") // the same path, other content
	p.has(p.apply(), "image_archives")
	p.settled()

	config("")
	p.has(p.apply(), "restarts containerd")
	p.settled()
	if images := m.Exec("ctr", "-n", "k8s.io", "images", "ls", "-q"); images != "" {
		t.Errorf("images: %s", images)
	}
	config(all)
	p.apply()
	p.retaken("metal_host.node", m)
	p.has(flat(p.ok("plan", "-replace=metal_host.node")), "containerd gets back what it had before: restarts containerd")
	p.has(flat(p.ok("plan", "-destroy")), "containerd gets back what it had before: restarts containerd")
	p.has(p.ok("destroy", "-auto-approve"), "/var/lib/containerd: it belongs to containerd", "/etc/cni: it belongs to containerd")
	unchanged(t, m, before, "content /var/lib/containerd/...", "file /var/lib/containerd/...", "folder /var/lib/containerd/...", "folder /etc/cni/...")
}

// A configuration from the time of a containerd without a package is a configuration
// file of the package that comes. It is there again when stoke goes, whichever goes
// first, and nothing else that the package brought is.
func TestHandWrittenConfigurationStays(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.NoMirror())
	docker := l.Repository(l.ContainerdPackage("2.2.1"))
	const file, written = "/etc/containerd/config.toml", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"mine.lan/pause:3.9\"\n"
	m.Script("mkdir /etc/containerd; printf %s \"$1\" >"+file, written)
	p := newProject(t, l)
	config := func(more string) {
		p.write(`resource "metal_host" "node" {
  address  = %q
  host_key = %q
%s
}`, m.Address, m.HostKey, more)
	}
	pack := fmt.Sprintf("  containerd_package = { version = \"2.2\", repository = { url = %q, key_url = %q, key_fingerprint = %q } }\n", docker.URL, docker.KeyURL, docker.Fingerprint)
	stays := func(when string) {
		t.Helper()
		if is := m.Script("cat " + file); is != strings.TrimSpace(written) {
			t.Errorf("%s %s is\n%s", when, file, is)
		}
		if is := m.Script("dpkg-query -W -f '${db:Status-Abbrev}' containerd.io; ls /usr/bin/containerd 2>&1 || :"); !strings.HasPrefix(is, "rc ") || !strings.Contains(is, "No such file") {
			t.Errorf("%s the package is %s", when, is)
		}
	}
	config(pack + "  containerd = {}")
	p.has(flat(p.apply()), `- sandbox_image = "mine.lan/pause:3.9"`)
	p.settled()
	p.has(flat(p.ok("destroy", "-auto-approve")), "not as the package had it: "+file)
	stays("destroyed,")

	config(pack + "  containerd = {}")
	p.apply()
	config(pack)
	p.apply()
	p.settled()
	config("  timezone = \"Asia/Tokyo\"")
	p.apply()
	p.settled()
	stays("declared no more,")
	p.ok("destroy", "-auto-approve")
	stays("at the end,")
}

// One apply builds an image and loads it onto a machine; a new image takes the place
// of the one before.
func TestTrainerImageOnHost(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.Mirror("containerd", "runc"))
	p := newProject(t, l)
	p.file("train.py", "one")
	p.write(`resource "train_image" "trainer" {
  files   = { "/app/train.py" = "train.py" }
  tarball = "trainer.tar"
}
resource "metal_host" "node" {
  address    = %q
  host_key   = %q
  packages   = { containerd = {} }
  containerd = {}
  images     = { (train_image.trainer.reference) = { archive = train_image.trainer.archive } }
}
output "image" { value = train_image.trainer.reference }`, m.Address, m.HostKey)
	loaded := func() string {
		t.Helper()
		p.settled()
		image := strings.TrimSpace(p.ok("output", "-raw", "image"))
		if images := m.Script("ctr -n k8s.io images ls -q | grep -v sha256:"); images != image || !strings.HasPrefix(image, "localhost/trainer:") {
			t.Errorf("%s is to be there, and there is %s", image, images)
		}
		return image
	}
	p.has(flat(p.apply()), "archive = (known after apply)")
	first := loaded()
	p.file("train.py", "two")
	said := flat(p.apply())
	p.has(said, "- \""+first+"\"")
	if strings.Contains(said, "containerd_state") {
		t.Errorf("containerd's state is unknown while an image is: %s", said)
	}
	if second := loaded(); second == first {
		t.Errorf("another image has the same name, %s", second)
	}
	if err := os.Remove(filepath.Join(p.dir, "trainer.tar")); err != nil {
		t.Fatal(err)
	}
	p.has(flat(p.apply()), "train_image.trainer has been deleted")
	loaded()
	p.ok("destroy", "-auto-approve")
}

// flat is text with its white space made single blanks.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
