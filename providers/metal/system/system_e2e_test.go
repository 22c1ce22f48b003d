//go:build e2e && linux

package system_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
	"github.com/stokehq/stoke/providers/metal/system"
)

// chronyUnit stands for chrony: systemd-timesyncd does not run in containers, and
// a true chronyd would set the clock of the machine that all of them share.
const chronyUnit = "[Unit]\nDescription=stand-in\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

// swapUnit is swap that somebody declared by hand. The condition keeps it from
// being had here, where the kernel is everybody's.
const swapUnit = "[Unit]\nDescription=by hand\nConditionPathExists=/nonexistent\n[Swap]\nWhat=/extra\n[Install]\nWantedBy=swap.target\n"

func file(content, salt, mode string) system.File {
	f := system.File{Content: []byte(content), Salt: salt, Sensitive: salt != "", Digest: system.Digest(salt, []byte(content)), Mode: 0o644, Owner: "root", Group: "root"}
	if mode == "0600" {
		f.Mode = 0o600
	}
	return f
}

func declared() system.Spec {
	return system.Spec{
		Hostname: "gpu-1.lab.example",
		SwapOff:  true,
		Modules:  []string{"br_netfilter", "overlay"},
		Sysctl: map[string]string{
			"net.ipv4.ip_forward": "1", "net.ipv4.ip_local_port_range": "30000 61000", "vm.swappiness": "10", "kernel.panic": "10",
			"net/ipv4/conf/lo/rp_filter": "2",
		},
		Time:     &system.Time{Servers: []string{"ntp1.example.com", "ntp2.example.com"}},
		Timezone: "Etc/GMT+3",
		Files: map[string]system.File{
			"/etc/app/deep/conf":  file("one\n", "", ""),
			"/etc/app/token":      file("canary-4711", "pepper", "0600"),
			"/etc/motd":           file("hello\n", "", ""),
			"/usr/local/bin/tool": {Content: []byte("#!/bin/sh\n"), Digest: system.Digest("", []byte("#!/bin/sh\n")), Mode: 0o755, Owner: "ops", Group: "ops"},
		},
	}
}

// world is one machine with what a test says about it.
type world struct {
	*testing.T
	m      *lab.Machine
	remote *host.Remote
	rec    *host.Record
}

// patient is a machine that may be away for a while.
func patient(t *testing.T, m *lab.Machine) *host.Remote {
	pool := &ssh.Pool{Patience: time.Minute}
	t.Cleanup(pool.Close)
	return &host.Remote{Pool: pool, Target: m.Target()}
}

func (w world) observe(want system.Spec) []host.Change {
	w.Helper()
	have, err := system.Observe(w.Context(), w.remote, want)
	if err != nil {
		w.Fatal(err)
	}
	return system.Table.Diff(want, have)
}

func (w world) apply(want system.Spec) {
	w.Helper()
	have, err := system.Observe(w.Context(), w.remote, want)
	if err != nil {
		w.Fatal(err)
	}
	if wrong := system.Problems(want, have); len(wrong) > 0 {
		w.Fatal(wrong)
	}
	if err := system.Apply(w.Context(), w.remote, w.rec, want, have); err != nil {
		w.Fatal(err)
	}
	if left := w.observe(want); len(left) > 0 {
		w.Errorf("after it was applied there is: %v", left)
	}
}

func (w world) drift(want system.Spec, fact, script string) {
	w.Helper()
	began := time.Now()
	w.m.Script(script)
	changes := w.observe(want)
	if len(changes) == 0 {
		w.Errorf("%s: %q is not seen", fact, script)
	}
	for _, c := range changes {
		if !strings.Contains(c.Fact, fact) {
			w.Errorf("%s: %q shows as %+v", fact, script, c)
		}
		w.Logf("%s: %q instead of %q", c.Fact, c.Have, c.Want)
	}
	w.apply(want)
	w.Logf("%s: %s", script, time.Since(began).Round(time.Millisecond))
}

// TestForwarding: the kernel makes values its own with ip_forward, when it is set and
// when it is given back. What is declared of them holds, and what was there comes back.
func TestForwarding(t *testing.T) {
	m := lab.New(t).Machine("f")
	w := world{T: t, m: m, remote: patient(t, m)}
	const values = "cd /proc/sys/net/ipv4; grep . ip_forward conf/*/forwarding conf/*/accept_redirects; cd ../ipv6/conf; grep . */forwarding"
	m.Script(`sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
sysctl -qw net.ipv4.conf.host0.forwarding=1 net.ipv4.conf.all.accept_redirects=0 net.ipv6.conf.host0.forwarding=1`)
	before := m.Script(values)
	var err error
	if w.rec, err = host.NewRecord(t.Context(), w.remote, "host", "id-1", "metal_host.f"); err != nil {
		t.Fatal(err)
	}
	all := system.Spec{Sysctl: map[string]string{"net.ipv4.conf.all.accept_redirects": "1", "net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}}
	w.apply(all)
	w.drift(all, "ip_forward", "sysctl -qw net.ipv4.ip_forward=0") // the kernel makes accept_redirects 1, as declared, and then 0
	w.apply(system.Spec{Sysctl: map[string]string{"net.ipv4.conf.all.accept_redirects": "1"}})
	if _, err := system.Restore(t.Context(), w.remote, w.rec); err != nil {
		t.Fatal(err)
	}
	if after := m.Script(values); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

func TestSystem(t *testing.T) {
	m := lab.New(t).Machine("a", lab.With("/etc/systemd/system/chrony.service", chronyUnit), lab.With("/etc/systemd/system/extra.swap", swapUnit),
		lab.With("/etc/fstab", "# mine\n/swapfile none swap sw,nofail 0 0\n"), lab.With("/etc/motd", "Debian\n"))
	m.Script("systemctl daemon-reload; systemctl enable extra.swap; mkdir -p /etc/chrony; printf '#\n' >/etc/chrony/chrony.conf; systemctl show -p LoadState swapfile.swap")
	w := world{T: t, m: m, remote: patient(t, m)}
	before := m.Snapshot()
	rec, err := host.NewRecord(t.Context(), w.remote, "host", "id-1", "metal_host.a")
	if err != nil {
		t.Fatal(err)
	}
	w.rec = rec
	want := declared()
	if err := want.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.observe(want) {
		t.Logf("%s: %q → %q (%s)", c.Fact, c.Have, c.Want, c.Disruption)
	}
	w.apply(want)
	if got := m.Exec("hostname", "-f"); got != want.Hostname {
		t.Errorf("hostname -f: %s", got)
	}
	if got := m.Exec("cat", "/etc/app/token"); got != "canary-4711" {
		t.Errorf("token: %s", got)
	}
	if out, err := m.Try("grep", "-rl", "canary-4711", "/var/lib/stoke", "/var/log", "/run"); err == nil {
		t.Errorf("the secret is in %s", out)
	}

	for _, d := range []struct{ fact, script string }{
		// sudo asks DNS, which there is none, for a name that is not in /etc/hosts
		{"host name", "echo 127.0.0.2 other >>/etc/hosts; hostname other"},
		{"host name", "echo other >/etc/hostname"},
		{"host name", "echo 127.0.1.1 ghost >>/etc/hosts"},
		{"swap", "echo '/swap2 none swap sw 0 0' >>/etc/fstab"},
		{"swap", "rm /etc/systemd/system/extra.swap; printf '[Swap]\nWhat=/x\n[Install]\nWantedBy=swap.target\n' >/etc/systemd/system/x.swap; systemctl enable x.swap"},
		{"sysctl net.ipv4.ip_forward", "sysctl -qw net.ipv4.ip_forward=0"},
		{"sysctl net.ipv4.ip_local_port_range", "sed -i '/port_range/s/30000/30001/' /etc/sysctl.d/99-stoke.conf"},
		{"sysctl", "rm /etc/sysctl.d/99-stoke.conf"},
		{"time service", "systemctl stop chrony"},
		{"time service", "systemctl disable chrony"},
		{"time servers", "rm /etc/chrony/sources.d/stoke.sources"},
		{"time zone", "ln -sf /usr/share/zoneinfo/UTC /etc/localtime"},
		{"content of /etc/app/deep/conf", "echo two >/etc/app/deep/conf"},
		{"content of /etc/app/token", "echo guess >/etc/app/token"},
		{"mode of /etc/app/token", "chmod 0644 /etc/app/token"},
		{"owner of /usr/local/bin/tool", "chown root /usr/local/bin/tool"},
		{"group of /usr/local/bin/tool", "chgrp 0 /usr/local/bin/tool"},
		{"file /etc/app/deep/conf", "rm -r /etc/app/deep"},
	} {
		w.drift(want, d.fact, d.script)
	}

	m.Reboot()
	if left := w.observe(want); len(left) > 0 {
		t.Errorf("after a reboot there is: %v", left)
	}
	w.release(want)

	outcomes, err := system.Restore(t.Context(), w.remote, rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		t.Logf("%s: %s %s", o.Fact, o.Fate, o.Why)
	}
	if err := rec.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	// what the test did by hand, and systemd's own answer to a hand-made unit
	m.Script("sed -i /127.0.0.2/d /etc/hosts; rm -f /etc/systemd/system/x.swap /etc/systemd/system/swap.target.wants/x.swap; sed -i /swap2/d /etc/fstab; systemctl daemon-reload")
	if diff := lab.Diff(before, m.Snapshot()); len(diff) > 0 {
		t.Errorf("not as before:\n%s", strings.Join(diff, "\n"))
	}
}

// release takes one fact after the other out of what is declared.
func (w world) release(want system.Spec) {
	w.Helper()
	delete(want.Sysctl, "kernel.panic")
	delete(want.Files, "/etc/motd")
	want.Time = &system.Time{}
	want.Timezone = ""
	w.apply(want)
	for cmd, is := range map[string]string{"sysctl -n kernel.panic": "1", "cat /etc/motd": "Debian", "readlink -f /etc/localtime": "/usr/share/zoneinfo/Etc/UTC"} {
		if got := w.m.Exec(strings.Fields(cmd)...); got != is {
			w.Errorf("%s: %q, want %q", cmd, got, is)
		}
	}
	if _, err := w.m.Try("test", "-e", "/etc/chrony/sources.d/stoke.sources"); err == nil {
		w.Error("the time servers are still there")
	}
}

// What stoke cannot do anything about is told at plan time.
func TestProblems(t *testing.T) {
	m := lab.New(t).Machine("a")
	m.Script("echo net.ipv4.ip_forward=0 >/etc/sysctl.d/99-zz.conf; mkdir -p /etc/dir; ln -s /etc/passwd /etc/link")
	strange := file("x", "", "")
	strange.Owner, strange.Group = "nosuchuser", "nosuchgroup"
	want := system.Spec{
		Timezone: "Mars/Olympus",
		Modules:  []string{"nosuchmodule"},
		Sysctl:   map[string]string{"net.ipv4.ip_forward": "1", "net.bridge.nothing": "1", "kernel.osrelease": "1"},
		Files:    map[string]system.File{"/etc/dir": file("x", "", ""), "/etc/link": file("x", "", ""), "/etc/passwd/x": file("x", "", ""), "/etc/strange": strange},
	}
	have, err := system.Observe(t.Context(), m.Remote(), want)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, err := range slices.Concat(system.Problems(system.Spec{Sysctl: want.Sysctl, Files: want.Files}, have), system.Doubts(want, have), system.UnknownNames(want, have)) {
		all = append(all, err.Error())
	}
	text := strings.Join(all, "\n")
	t.Log(text)
	for _, says := range []string{"nosuchmodule", "99-zz.conf", "br_netfilter", "read-only", "/etc/dir: there is a directory", "/etc/link: there is a symbolic link", "not a folder", "time zone Mars/Olympus does not exist", "user nosuchuser", "group nosuchgroup"} {
		if !strings.Contains(text, says) {
			t.Errorf("nothing of %q in:\n%s", says, text)
		}
	}
	rec, err := host.NewRecord(t.Context(), m.Remote(), "host", "id-1", "")
	if err != nil {
		t.Fatal(err)
	}
	before := m.Snapshot()
	for _, s := range []system.Spec{{Files: want.Files}, {Modules: want.Modules}, {Sysctl: want.Sysctl}} {
		if err := system.Apply(t.Context(), m.Remote(), rec, s, have); err == nil {
			t.Errorf("%+v is applied", s)
		}
	}
	if diff := lab.Diff(before, m.Snapshot(), "* /var/lib/stoke*", "* /var/lib/stoke/host/record.json"); len(diff) > 0 { // a record of what was there before is kept
		t.Errorf("refusing left:\n%s", strings.Join(diff, "\n"))
	}
}
