//go:build e2e && linux

package metal_test

import (
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// A life on Debian 13, whose systemd wants a reload for every unit once one was
// enabled without: a second plan has nothing to do, and restarts nothing.
func TestTrixie(t *testing.T) {
	l := lab.Of(t, lab.Trixie)
	m := l.Machine("node-1", lab.Mirror("containerd", "runc"), lab.With("/etc/fstab", "/swapfile none swap sw,nofail 0 0\n"))
	before := m.Snapshot()
	p := newProject(t, l)
	p.write(`resource "metal_host" "a" {
  address        = %q
  host_key       = %q
  hostname       = "gpu-1"
  timezone       = "Etc/UTC"
  swap           = "off"
  kernel_modules = ["overlay"]
  sysctl         = { "net.ipv4.ip_forward" = 1 }
  packages       = { containerd = {} }
  containerd     = { sandbox_image = "registry.lan/pause:3.10.1" }
}

resource "metal_firewall" "a" {
  host     = metal_host.a.ssh
  role     = "none"
  ssh_from = ["0.0.0.0/0"]
}`, m.Address, m.HostKey)
	p.apply()
	p.settled()
	m.Reboot()
	p.settled()
	p.ok("destroy", "-auto-approve")
	unchanged(t, m, before, "content /var/lib/containerd/...", "file /var/lib/containerd/...", "folder /var/lib/containerd/...", "folder /etc/cni/...")
}
