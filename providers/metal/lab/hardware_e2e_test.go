//go:build e2e && linux

package lab_test

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestDriver goes the way of a driver by hand: what the stand-ins refuse is what
// the real ones refuse.
func TestDriver(t *testing.T) {
	step := steps(t)
	l := lab.New(t)
	m := l.Machine("gpu", lab.PCI(lab.H100, lab.H100, lab.NVSwitch), lab.NoMirror())
	step("up")
	expect := func(what, want string, args ...string) {
		t.Helper()
		out, err := m.Try(args...)
		if !strings.Contains(out+errorText(err), want) {
			t.Errorf("%s: want %q, got %s, %v", what, want, out, err)
		}
	}
	expect("the kernel", lab.DefaultKernel, "uname", "-r")
	expect("the GPUs", "0x2330\n0x2330", "sh", "-c", "cat /sys/bus/pci/devices/*/device")
	expect("who has the GPUs at first", "nouveau", "readlink", "/sys/bus/pci/devices/0000:01:00.0/driver")
	expect("a module that is not there", "not found", "modprobe", "nvidia")

	r := l.Repository(append(l.DriverPackages("580.126.20"), l.ToolkitPackages("1.20.0")...)...)
	r.AddTo(m)
	m.Exec("apt-get", "-qq", "install", "nvidia-open", "nvidia-fabricmanager", "nvidia-container-toolkit")
	step("installed")
	expect("the module", "580.126.20", "modinfo", "-k", lab.DefaultKernel, "-F", "version", "nvidia")
	expect("dkms", "nvidia/580.126.20, "+lab.DefaultKernel+", x86_64: installed", "dkms", "status")
	expect("beside nouveau", "No such device", "modprobe", "nvidia")
	expect("without a module", "couldn't communicate with the NVIDIA driver", "nvidia-smi")
	m.Script("printf 'blacklist nouveau\noptions nouveau modeset=0\n' > /etc/modprobe.d/blacklist-nouveau.conf; modprobe -r nouveau; modprobe nvidia; modprobe nvidia-uvm")
	expect("two GPUs", "0, 00000000:01:00.0, NVIDIA H100 80GB HBM3, GPU-00000000-0000-0000-0000-000000000000, 81559, 580.126.20\n1, ",
		"nvidia-smi", "--query-gpu=index,pci.bus_id,name,uuid,memory.total,driver_version", "--format=csv,noheader,nounits")
	expect("the kernel's word", "NVIDIA UNIX Open Kernel Module for x86_64  580.126.20", "cat", "/proc/driver/nvidia/version")
	m.Exec("systemctl", "restart", "nvidia-persistenced", "nvidia-fabricmanager")
	expect("in use", "Module nvidia is in use", "sh", "-c", "modprobe -r nvidia-uvm; modprobe -r nvidia")
	m.Reboot()
	expect("nouveau comes back from the initramfs", "nouveau", "readlink", "/sys/bus/pci/devices/0000:01:00.0/driver")
	m.Exec("update-initramfs", "-u")
	m.Reboot()
	expect("nvidia comes up", "GPU 1: NVIDIA H100", "nvidia-smi")
	expect("its daemon, too", "active", "systemctl", "is-active", "nvidia-persistenced")
	step("loaded")

	r.Publish(l.DriverPackages("580.150.10")...)
	m.Script("apt-get -qq update; apt-get -qq upgrade")
	expect("an upgrade beneath a loaded module", "Driver/library version mismatch", "nvidia-smi")
	m.Script("systemctl stop nvidia-persistenced nvidia-fabricmanager; modprobe -r nvidia-uvm; modprobe -r nvidia; modprobe nvidia")
	expect("the new one", "580.150.10", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
	m.Script("echo 'Unable to determine the device handle for GPU0000:01:00.0: Unknown Error' > /run/machine/gpu-failure")
	expect("installed but not working", "Unknown Error", "nvidia-smi")

	r.Publish(l.KernelPackages("6.1.0-41-amd64")...)
	m.Script("apt-get -qq update; apt-get -qq install linux-image-amd64")
	expect("the kernel that boots next", "boot/vmlinuz-6.1.0-41-amd64", "readlink", "/vmlinuz")
	m.Reboot()
	expect("the kernel that booted", "6.1.0-41-amd64", "uname", "-r")
	expect("without headers it has no module", "couldn't communicate", "nvidia-smi")
	m.Exec("apt-get", "-qq", "install", "linux-headers-amd64")
	expect("with them it has", "GPU 0", "nvidia-smi")
	step("another kernel")
}

func TestSecureBoot(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("gpu", lab.PCI(lab.T4), lab.SecureBoot(), lab.NouveauConsole(), lab.Ubuntu("24.04"), lab.Kernel("6.8.0-45-generic", false), lab.NoMirror())
	l.Repository(append(l.UbuntuDriverPackages("580-server", "580.126.20", "6.8.0-45-generic"), l.DriverPackages("580.126.20")...)...).AddTo(m)
	if is := m.Script(". /etc/os-release; echo $ID $VERSION_CODENAME"); is != "ubuntu noble" {
		t.Errorf("it says it is %q", is)
	}
	if out, err := m.Try("modprobe", "-r", "nouveau"); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a console on it: %s, %v", out, err)
	}
	m.Script("apt-get -qq install linux-modules-nvidia-580-server-open-generic nvidia-utils-580-server; echo blacklist nouveau > /etc/modprobe.d/n.conf; update-initramfs -u")
	m.Reboot()
	if out := m.Exec("nvidia-smi", "-L"); !strings.Contains(out, "Tesla T4") {
		t.Errorf("signed modules: %s", out)
	}
}

func TestContainerd(t *testing.T) {
	l := lab.New(t)
	r := l.Repository(l.ContainerdPackage("2.2.1"), l.ContainerdPackage("1.7.29"), lab.DemoPackage("1.0-1"), lab.RivalPackage(), l.CUDAPackage("12.9"))
	m := l.Machine("a", lab.NoMirror())
	before := m.Snapshot()
	r.AddTo(m)
	m.Exec("apt-get", "-qq", "install", "containerd.io=1.7.*", "stoke-demo", "cuda-toolkit-12-9")
	if is := m.Exec("containerd", "--version"); !strings.Contains(is, " v1.7.29 ") {
		t.Errorf("containerd is %q", is)
	}
	m.Script("containerd config default > /etc/containerd/config.toml; echo 'imports = [\"/etc/containerd/conf.d/*.toml\"]' >> /etc/containerd/config.toml; systemctl restart containerd")
	m.Exec("apt-get", "-qq", "-o", "Dpkg::Options::=--force-confold", "install", "containerd.io")
	if is := m.Exec("containerd", "--version"); !strings.Contains(is, " v2.2.1 ") {
		t.Errorf("containerd is %q", is)
	}
	m.Script("mkdir /etc/containerd/conf.d; echo 'this is no TOML' > /etc/containerd/conf.d/99-x.toml")
	if out, err := m.Try("systemctl", "restart", "containerd"); err == nil {
		t.Errorf("it starts with a broken file: %s", out)
	}
	m.Script("rm -r /etc/containerd/conf.d; systemctl reset-failed containerd; systemctl restart containerd; systemctl is-active containerd")
	m.Reboot()
	if is := m.Script("systemctl is-system-running --wait >/dev/null; systemctl is-active containerd"); is != "active" {
		t.Errorf("after a reboot it is %s", is)
	}
	m.Script("apt-get -qq purge containerd.io stoke-demo cuda-toolkit-12-9; rm -f /etc/apt/sources.list.d/gpg-1.list /etc/apt/keyrings/gpg-1.asc")
	if left := lab.Diff(before, m.Snapshot(), "list *", "folder /var/lib/containerd"); len(left) > 0 {
		t.Errorf("purged, it leaves:\n%s", strings.Join(left, "\n"))
	}
}
