//go:build e2e && e2evm && linux

package lab_test

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestVirtual shows what a virtual machine has that the others lack.
func TestVirtual(t *testing.T) {
	step := steps(t)
	m := lab.New(t).VM("vm")
	step("up")
	if who, err := host.Run(t.Context(), m.Remote(), "id", "-un"); string(who) != "root\n" || err != nil {
		t.Errorf("ops becomes %q: %v", who, err)
	}
	if is := m.Exec("stat", "-fc", "%T", "/sys/fs/cgroup"); is != "cgroup2fs" {
		t.Errorf("control groups are %s", is)
	}
	m.Script("modprobe vxlan; grep -q ^vxlan /proc/modules; fallocate -l 64M /swap; chmod 600 /swap; mkswap -q /swap; swapon /swap; nft add table inet t; sysctl -qw vm.swappiness=7")
	before := m.Snapshot()
	step("snapshot")
	m.Reboot()
	step("rebooted")
	after := strings.Join(lab.Diff(before, m.Snapshot()), "\n")
	for _, want := range []string{"- module vxlan", "- swap /swap", "- nft ", "~ sysctl vm.swappiness: 7 → 60"} {
		if !strings.Contains(after, want) {
			t.Errorf("%q is not among what the reboot changed:\n%s", want, after)
		}
	}
	m.Script("echo synced > /kept; sync; echo not > /lost")
	m.Crash()
	m.PowerOn()
	step("power cut, on again")
	if is := m.Exec("cat", "/kept"); is != "synced" {
		t.Errorf("a file that was synced is %q", is)
	}
}
