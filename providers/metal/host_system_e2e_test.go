//go:build e2e && linux

package metal_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// What an operating system is set to, through the whole of stoke: drift of
// every kind of fact shows as the attribute that differs, and is repaired.
func TestHostSystem(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.With("/etc/systemd/system/chrony.service", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"),
		lab.With("/etc/fstab", "/swapfile none swap sw,nofail 0 0\n"))
	m.Script("systemctl daemon-reload")
	before := m.Snapshot()
	p := newProject(t, l)
	config := func(more string) {
		p.write(`variable "token" {
  default   = "canary-4711"
  ephemeral = true
  sensitive = true
}
resource "metal_host" "node" {
  address  = %q
  host_key = %q
%s
}`, m.Address, m.HostKey, more)
	}
	const all = `  hostname       = "gpu-1"
  swap           = "off"
  kernel_modules = ["br_netfilter", "overlay"]
  sysctl = {
    "net.ipv4.ip_forward" = 1
    "vm.swappiness"       = 10
  }
  time_sync = { servers = ["ntp1.example.com"] }
  timezone  = "Etc/GMT+3"
  files = {
    "/etc/app/conf"  = { content = "one\ntwo\n" }
    "/etc/app/token" = { sensitive_content = var.token, mode = "0600", group = "ops" }
  }`
	config(all)
	p.has(p.apply(), `+ hostname`, `"/etc/app/token"`, "swap: reloads systemd")
	p.settled()

	// One after the other is in the tests of package system; here all at once.
	m.Script(`echo 127.0.0.2 other >>/etc/hosts; hostname other
echo '/swap2 none swap sw 0 0' >>/etc/fstab
sysctl -qw net.ipv4.ip_forward=0
sed -i '/swappiness/s/10/11/' /etc/sysctl.d/99-stoke.conf
systemctl --quiet disable --now chrony; rm /etc/chrony/sources.d/stoke.sources
ln -sf /usr/share/zoneinfo/UTC /etc/localtime
echo three >>/etc/app/conf
echo other >/etc/app/token; chmod 0644 /etc/app/token; chgrp root /etc/app/token`)
	out := p.apply() // with its plan
	p.has(out, "1 to change", `"other (gpu-1 after the next boot)" -> "gpu-1"`, `"off until the next boot (/etc/fstab)" -> "off"`,
		`"net.ipv4.ip_forward" = "0 (1 after the next boot)" -> "1"`, `"vm.swappiness"`, `"10 (11 after the next boot)" -> "10"`,
		`"chrony is inactive and disabled" -> null`, `+ "ntp1.example.com"`, `"UTC" -> "Etc/GMT+3"`, "- three",
		"sensitive_digests", `"0644" -> "0600"`, `"root" -> "ops"`)
	if strings.Contains(out, "canary") {
		t.Errorf("the secret is in:\n%s", out)
	}
	m.Script("rm /etc/sysctl.d/99-stoke.conf /etc/app/token")
	p.has(p.apply(), `"10 until the next boot" -> "10"`, `+ "/etc/app/token"`)
	m.Reboot()
	p.settled()

	config(strings.Replace(all, "var.token", `"canary-0815"`, 1))
	p.has(p.apply(), "sensitive_digests")
	p.settled()
	if got := m.Exec("cat", "/etc/app/token"); got != "canary-0815" {
		t.Errorf("token: %s", got)
	}
	p.nowhere("canary-4711")

	m.Script("rm -r /etc/app/conf; mkdir /etc/app/conf")
	out, status := p.run("plan")
	if status == 0 {
		t.Errorf("a folder in the way of a file is no error:\n%s", out)
	}
	p.has(out, "there is a directory")
	m.Script("rmdir /etc/app/conf")

	config("") // nothing is declared any more, the machine is still a host
	p.apply()
	p.settled()
	if got := m.Exec("hostname"); got != "node-1" {
		t.Errorf("hostname: %s", got)
	}
	config(all)
	p.apply()
	p.retaken("metal_host.node", m)
	p.ok("destroy", "-auto-approve")
	m.Script("sed -i /127.0.0.2/d /etc/hosts; sed -i /swap2/d /etc/fstab; systemctl daemon-reload")
	unchanged(t, m, before)
}

// nowhere fails where a secret is in a file that stoke wrote; main.tf is ours.
func (p *project) nowhere(secret string) {
	p.t.Helper()
	err := filepath.WalkDir(p.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || e.Name() == "main.tf" {
			return err
		}
		b, err := os.ReadFile(name)
		if bytes.Contains(b, []byte(secret)) {
			p.t.Errorf("the secret is in %s", e.Name())
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
}
