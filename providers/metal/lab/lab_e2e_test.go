//go:build e2e && linux

package lab_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// steps logs how long each step of a test took.
func steps(t *testing.T) func(string) {
	last := time.Now()
	return func(what string) {
		t.Logf("%5.1f s: %s", time.Since(last).Seconds(), what)
		last = time.Now()
	}
}

func TestPower(t *testing.T) {
	step := steps(t)
	m := lab.New(t).Machine("a")
	step("up")
	if is := m.Exec("systemctl", "is-system-running", "--wait"); is != "running" {
		t.Errorf("the machine is %s: %s", is, m.Exec("systemctl", "--failed", "--no-legend"))
	}
	const bootID = "/proc/sys/kernel/random/boot_id"
	first, firstID := m.Snapshot(), m.Exec("cat", bootID)
	m.Script("sysctl -qw vm.swappiness=7 net.ipv4.ip_forward=1; nft add table inet t; echo kept > /etc/kept; sync")
	changed := lab.Diff(first, m.Snapshot())
	for _, want := range []string{"+ content /etc/kept: ", "~ sysctl vm.swappiness: 60 → 7", "~ sysctl net.ipv4.ip_forward: 0 → 1", "+ nft 00001: table inet t {"} {
		if !strings.Contains(strings.Join(changed, "\n"), want) {
			t.Errorf("%q is not among the changes:\n%s", want, strings.Join(changed, "\n"))
		}
	}
	step("snapshots")

	m.Reboot()
	step("rebooted")
	m.Crash()
	if out, err := m.Try("true"); err == nil {
		t.Errorf("without power it runs commands: %s", out)
	}
	m.PowerOn()
	step("power cut, on again")
	if id := m.Exec("cat", bootID); id == firstID || m.Boots() != 3 {
		t.Errorf("boot id %s after %s, %d boots", id, firstID, m.Boots())
	}
	// What is in memory is as at the first boot, what is on the disk stays.
	left := lab.Diff(first, m.Snapshot(), "* /etc/kept")
	if len(left) > 0 {
		t.Errorf("two boots leave:\n%s", strings.Join(left, "\n"))
	}
	if m.Exec("cat", "/etc/kept") != "kept" {
		t.Error("a file is lost")
	}
	m.Stop()
	m.PowerOn()
	step("stopped, on again")
}

func TestUsers(t *testing.T) {
	machines := lab.New(t).Machines("a", "b")
	m := machines[0]
	for user, target := range map[string]ssh.Target{"ops": m.Target(), "admin": m.AdminTarget()} {
		pool := &ssh.Pool{}
		defer pool.Close()
		remote := &host.Remote{Pool: pool, Target: target}
		if who, err := host.Run(t.Context(), remote, "id", "-un"); string(who) != "root\n" || err != nil {
			t.Errorf("%s becomes %q: %v", user, who, err)
		}
		out, err := remote.Run(t.Context(), host.Command{Args: []string{"id", "-un"}, Unprivileged: true})
		if strings.TrimSpace(string(out.Stdout)) != user || err != nil {
			t.Errorf("%s is %q: %v", user, out.Stdout, err)
		}
	}
	if out, err := m.Try("runuser", "-u", "ops", "--", "sudo", "-n", "id"); err == nil {
		t.Errorf("the sudoers file lets ops run more than a shell: %s", out)
	}
	target := m.Target()
	target.HostKey = machines[1].HostKey
	var other *ssh.HostKeyError
	if _, err := ssh.Dial(t.Context(), target, ssh.Timeouts{}); !errors.As(err, &other) || other.Got != m.HostKey {
		t.Errorf("with another machine's host key: %v", err)
	}
}

func TestNetwork(t *testing.T) {
	l := lab.New(t)
	machines := l.Machines("a", "b", "c")
	for _, m := range machines {
		for _, other := range machines {
			m.Exec("ping", "-c1", "-W2", "-q", other.Address)
		}
	}
	a, b := machines[0], machines[1]
	b.Script("nft add table inet t; nft add chain inet t in '{ type filter hook input priority 0; }'; nft add rule inet t in ip saddr \"$1\" icmp type echo-request drop", a.Address)
	if _, err := a.Try("ping", "-c1", "-W1", "-q", b.Address); err == nil {
		t.Error("nft on b drops nothing")
	}
	machines[2].Exec("ping", "-c1", "-W2", "-q", b.Address)

	d, e := l.Machine("d", lab.Private()), l.Machine("e", lab.Private())
	d.Exec("ping", "-c1", "-W2", "-q", e.PrivateAddress)
	if _, err := a.Try("ping", "-c1", "-W1", "-q", e.PrivateAddress); err == nil {
		t.Error("a private network lets others in")
	}
}

func TestRepository(t *testing.T) {
	step := steps(t)
	l := lab.New(t)
	demo := func(version string) lab.Package {
		return lab.Package{
			Name: "stoke-demo", Version: version,
			Files:     map[string]string{"/etc/stoke-demo.conf": "version = " + version + "\n", "/usr/bin/stoke-demo": "#!/bin/sh\necho " + version + "\n", "/usr/bin/sd": "-> stoke-demo"},
			Conffiles: []string{"/etc/stoke-demo.conf"},
			Scripts:   map[string]string{"postinst": "#!/bin/sh\n[ ! -e /fail ] || { echo told to fail; exit 1; }\n"},
		}
	}
	r := l.Repository(demo("1.0-1"))
	step("repository")
	m := l.Machine("a", lab.NoMirror())
	before := m.Snapshot()
	r.AddTo(m)
	if lists := m.Script("ls -d /var/lib/apt/lists/*_InRelease"); strings.Count(lists, "\n") > 0 {
		t.Errorf("without a mirror, apt knows %s", lists)
	}
	step("machine knows it")
	m.Exec("apt-get", "-qq", "install", "stoke-demo")
	if is := m.Exec("sd"); is != "1.0-1" {
		t.Errorf("installed %q", is)
	}
	r.Publish(demo("1.0-2"), lab.Package{Name: "enemy", Version: "1", Fields: map[string]string{"Conflicts": "stoke-demo"}, All: true})
	m.Exec("touch", "/fail")
	m.Exec("apt-get", "-qq", "update")
	if out, err := m.Try("apt-get", "-qq", "install", "stoke-demo"); err == nil || !strings.Contains(err.Error(), "told to fail") {
		t.Errorf("its script was told to fail: %s, %v", out, err)
	}
	m.Script("rm /fail; dpkg --configure -a")
	step("installed twice")
	if is := m.Exec("stoke-demo"); is != "1.0-2" {
		t.Errorf("installed %q", is)
	}
	if plan := m.Exec("apt-get", "--simulate", "install", "enemy"); !strings.Contains(plan, "Remv stoke-demo") {
		t.Errorf("an enemy is installed beside it:\n%s", plan)
	}
	r.NewKey()
	r.Publish(demo("1.0-3"))
	if out, err := m.Try("apt-get", "update"); !strings.Contains(out+errorText(err), "NO_PUBKEY") {
		t.Errorf("another key: %s, %v", out, err)
	}
	m.Script("apt-get -qq purge stoke-demo; rm /etc/apt/sources.list.d/gpg-1.list; rm -r /etc/apt/keyrings/gpg-1.asc")
	if left := lab.Diff(before, m.Snapshot(), "list *"); len(left) > 0 {
		t.Errorf("purged, it leaves:\n%s", strings.Join(left, "\n"))
	}
	step("purged")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestMirror(t *testing.T) {
	step := steps(t)
	m := lab.New(t).Machine("a")
	m.Exec("apt-get", "-qq", "update")
	step("updated")
	m.Exec("apt-get", "-qq", "install", "jq")
	step("installed jq")
	if is := m.Script("echo '{\"a\": 1}' | jq .a"); is != "1" {
		t.Errorf("jq says %q", is)
	}
}

// TestFolder: what a machine sees of this one is there at each of its boots, and
// it cannot write to it; containerd's state stays through them.
func TestFolder(t *testing.T) {
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "file"), []byte("from here"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := lab.New(t).Machine("a", lab.Pods(), lab.Folder(here, "/opt/here"))
	m.Exec("mkdir", "/var/lib/containerd/kept")
	for boot := range 2 {
		if got := m.Exec("cat", "/opt/here/file"); got != "from here" {
			t.Errorf("boot %d: the file has %q", boot, got)
		}
		if _, err := m.Try("touch", "/opt/here/new"); err == nil {
			t.Errorf("boot %d: the machine writes to a folder of this one", boot)
		}
		m.Script(`cd /var/lib/containerd/kept
mkdir -p l u w m
mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w m
umount m`)
		if boot == 0 {
			m.Crash()
			m.PowerOn()
		}
	}
}
