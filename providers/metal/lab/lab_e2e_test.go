//go:build e2e && linux

package lab_test

import (
	"errors"
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
		if who, err := host.Text(t.Context(), remote, "id", "-un"); who != "root" || err != nil {
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
	machines := lab.New(t).Machines("a", "b", "c")
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
}
