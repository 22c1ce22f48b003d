//go:build e2e && linux

package metal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// driverProject is a machine with GPUs and the driver that is declared for it.
type driverProject struct {
	*project
	t *testing.T
	m *lab.Machine
	r *lab.Repository
	// software is what metal_host declares beside.
	software string
}

// declares writes the configuration, with more arguments for the driver.
func (d *driverProject) declares(format string, args ...any) {
	d.t.Helper()
	d.write(`resource "metal_host" "gpu" {
  address  = %q
  host_key = %q
  %[7]s
}
resource "metal_gpu_driver" "gpu" {
  host   = metal_host.gpu.ssh
  branch = "580"
  %[3]s
  driver_repository  = { url = %[4]q, key_url = %[5]q, key_fingerprint = %[6]q }
  toolkit_repository = { url = %[4]q, key_url = %[5]q, key_fingerprint = %[6]q }
}
output "gpus" { value = metal_gpu_driver.gpu.gpus[*].name }`,
		d.m.Address, d.m.HostKey, fmt.Sprintf(format, args...), d.r.URL, d.r.KeyURL, d.r.Fingerprint, d.software)
}

// refuses plans, which must fail and say why.
func (d *driverProject) refuses(parts ...string) {
	d.t.Helper()
	out, status := d.run("plan")
	if status == 0 {
		d.t.Errorf("a plan that should be refused:\n%s", out)
	}
	d.has(out, parts...)
}

// TestGPUDriver goes through a driver's life as people see it.
func TestGPUDriver(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("gpu", lab.PCI(lab.H100, lab.H100, lab.NVSwitch), lab.NoMirror())
	r := l.Repository(append(l.DriverPackages("580.126.20"), l.ToolkitPackages("1.20.0")...)...)
	d := &driverProject{project: newProject(t, l), t: t, m: m, r: r}
	before := m.Snapshot()

	// checked before anything is changed
	m.Script("printf 'Package: *nvidia*\nPin: version 570*\nPin-Priority: 1001\n' > /etc/apt/preferences.d/mine")
	m.Script("mkdir -p /run/nvidia/driver/usr/bin; touch /run/nvidia/driver/usr/bin/nvidia-smi")
	d.declares(`modules = "proprietary"`)
	d.refuses("nouveau drives the GPUs", "The driver is pinned by another program", "/etc/apt/preferences.d/mine", "GPU Operator brings the driver")
	m.Script("rm -r /etc/apt/preferences.d/mine /run/nvidia")
	if now := lab.Diff(before, m.Snapshot(), "list *"); len(now) > 0 {
		t.Errorf("a plan has changed the machine:\n%s", strings.Join(now, "\n"))
	}

	// installed, and the driver answers
	d.declares(`version = "580.126.20"
  reboot  = "if-needed"`)
	d.has(d.apply(), "580.126.20", "reboots the machine", "NVIDIA H100 80GB HBM3")
	m.Reboot()
	d.settled()

	d.drifts()
	d.upgrades(l)
	d.updates(l)
	d.imports()
	d.shares()
	d.leavesOut()

	d.ok("destroy", "-auto-approve")
	unchanged(t, m, before, "list *", "package linux-*", "folder /var/lib/dkms", "content /boot/*", "file /boot/*", "file /usr/src/linux-*", "folder /usr/src/linux-*", "file /vmlinuz", "sysctl kernel.osrelease", "file /lib/modules/*", "folder /lib/modules/*")
}

// drifts changes by hand what is declared, a kind of fact at a time.
func (d *driverProject) drifts() {
	d.t.Helper()
	d.declares(`version = "580.126.20"`)
	d.apply() // no reboots from here on
	for _, c := range []struct {
		script string
		shows  []string
	}{
		{`apt-mark unhold libcuda1 nvidia-open; apt-get -qq -y --allow-change-held-packages remove nvidia-container-toolkit
systemctl disable --now nvidia-persistenced; rm /etc/apt/sources.list.d/stoke-nvidia-driver.sources`,
			[]string{"libcuda1", "toolkit", "persistence", "nvidia-driver"}},
		{`systemctl stop nvidia-persistenced nvidia-fabricmanager; modprobe -r nvidia_uvm; modprobe -r nvidia
rm /etc/modprobe.d/blacklist-nouveau.conf /etc/containerd/conf.d/99-nvidia.toml /etc/apt/apt.conf.d/52stoke-nvidia /var/run/cdi/nvidia.yaml`,
			[]string{"fabric manager", "blacklist-nouveau.conf", "99-nvidia.toml", "52stoke-nvidia"}},
	} {
		d.m.Script(c.script)
		d.has(d.apply(), c.shows...)
	}
	d.settled()
}

// imports takes the driver over from a state that is lost.
func (d *driverProject) imports() {
	d.t.Helper()
	d.ok("state", "rm", "metal_gpu_driver.gpu")
	out, status := d.run("apply", "-auto-approve")
	if status == 0 {
		d.t.Error("two manage one driver")
	}
	d.has(unwrapped(out), "Driver is managed already")
	was := d.m.Exec("sh", "-c", "stat -c %Y /var/lib/dpkg/status; cat /proc/sys/kernel/random/boot_id")
	d.ok("import", "metal_gpu_driver.gpu", d.m.Address+" "+d.m.HostKey)
	d.settled()
	if is := d.m.Exec("sh", "-c", "stat -c %Y /var/lib/dpkg/status; cat /proc/sys/kernel/random/boot_id"); is != was {
		d.t.Errorf("importing changed the machine: %q, was %q", is, was)
	}
}

// upgrades goes to another version: with somebody in the way, and then not; and
// says what is wrong when the driver does not answer.
func (d *driverProject) upgrades(l *lab.Lab) {
	d.t.Helper()
	d.r.Publish(append(l.DriverPackages("580.150.10"), l.DriverPackages("580.160.5")...)...) // which nobody declares
	d.m.Script("nohup setsid sleep 1000 < /dev/nvidia0 > /dev/null 2>&1 & echo $! > /run/training")
	d.declares(`version = "580.150.10"`)
	d.refuses("Processes keep the driver loaded", "sleep (process ")
	d.m.Script("kill $(cat /run/training)")
	d.has(d.differs(), "drains the node")
	d.cut()
	d.apply()
	d.settled()
	if is := d.m.Exec("cat", "/sys/module/nvidia/version"); is != "580.150.10" {
		d.t.Errorf("the kernel has %s", is)
	}
	d.m.Script("echo 'Unable to determine the device handle for GPU0000:01:00.0: Unknown Error' > /run/machine/gpu-failure")
	out, status := d.run("apply", "-auto-approve")
	if status == 0 {
		d.t.Error("it is said to work")
	}
	d.has(unwrapped(out), "the driver is installed but does not work", "Unknown Error")
	if strings.Count(unwrapped(out), "Unknown Error") < 2 {
		d.t.Errorf("the plan does not say that the driver does not work:\n%s", out)
	}
	d.m.Script("rm /run/machine/gpu-failure")
	d.apply()
	d.settled()
}

// shares has metal_host declare NVIDIA's repository as well: whoever leaves it, the
// other one keeps it.
func (d *driverProject) shares() {
	d.t.Helper()
	const is = "version = \"580.150.10\""
	d.r.Publish(lab.Package{Name: "cuda-toolkit-13-0", Version: "13.0.1-1", All: true, Files: map[string]string{"/usr/share/cuda": "13.0\n"}})
	d.software = fmt.Sprintf("cuda_toolkit = {\n version = \"13.0\"\n repository = { url = %q, key_url = %q, key_fingerprint = %q }\n}", d.r.URL, d.r.KeyURL, d.r.Fingerprint)
	d.declares(is)
	d.apply()
	d.settled()
	d.m.Exec("dpkg", "-s", "cuda-toolkit-13-0")
	d.software = ""
	d.declares(is)
	d.apply()
	d.m.Exec("ls", "/etc/apt/sources.list.d/stoke-nvidia-driver.sources", "/etc/apt/keyrings/stoke-nvidia-driver.gpg")
	d.settled()
}

// leavesOut declares neither a toolkit nor the blacklist any more.
func (d *driverProject) leavesOut() {
	d.t.Helper()
	d.m.Exec("ls", "/etc/containerd/conf.d/99-nvidia.toml", "/etc/modprobe.d/blacklist-nouveau.conf")
	d.declares("version = \"580.150.10\"\n  toolkit = \"\"\n  blacklist_nouveau = false")
	d.apply()
	left := d.m.Exec("sh", "-c", "ls /etc/containerd/conf.d/99-nvidia.toml /etc/modprobe.d/blacklist-nouveau.conf 2>/dev/null; dpkg-query -W -f '${Package} ${Status}\n' '*nvidia-container*' | grep -v not-installed; :")
	if strings.TrimSpace(left) != "" {
		d.t.Errorf("declared no more, and still there: %s", left)
	}
	d.settled()
}

// cut begins an apply, and cuts the machine's power and kills stoke while dpkg
// is at work.
func (d *driverProject) cut() {
	d.t.Helper()
	cmd := d.command("apply", "-auto-approve")
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if _, err := d.m.Try("sh", "-c", "pgrep -x dpkg"); err == nil {
			break
		}
		select {
		case err := <-ended:
			d.t.Logf("apply ended before it could be cut off: %v", err)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	d.m.Crash()
	_ = cmd.Process.Kill()
	<-ended
	d.m.PowerOn()
}

// updates installs another kernel, which has no module.
func (d *driverProject) updates(l *lab.Lab) {
	d.t.Helper()
	d.r.Publish(l.KernelPackages("6.1.0-41-amd64")...)
	d.m.Script("apt-get -qq update; apt-get -qq -y install linux-image-6.1.0-41-amd64")
	d.has(d.apply(), "kernel 6.1.0-41-amd64, which boots next", "missing")
	d.m.Reboot()
	d.settled()
	if is := d.m.Exec("uname", "-r"); is != "6.1.0-41-amd64" {
		d.t.Errorf("kernel %s runs", is)
	}
}

// TestGPUDriverUbuntu has modules that are built and signed for each kernel,
// where Secure Boot takes no others and a console keeps nouveau.
func TestGPUDriverUbuntu(t *testing.T) {
	l := lab.New(t)
	const kernel, next = "6.8.0-45-generic", "6.8.0-46-generic"
	m := l.Machine("gpu", lab.PCI(lab.T4), lab.SecureBoot(), lab.NouveauConsole(), lab.Ubuntu("24.04"), lab.Kernel(kernel, false), lab.NoMirror())
	archive := l.Repository(l.UbuntuDriverPackages("580-server", "580.126.20", kernel)...)
	// It has the headers of another kernel alone.
	archive.Publish(lab.Package{Name: "linux-headers-generic", Version: "1:6.8.0.44-1", Fields: map[string]string{"Depends": "linux-headers-6.8.0-44-generic"}})
	archive.AddTo(m)
	p := newProject(t, l)
	declares := func(more string) {
		p.write(`resource "metal_host" "gpu" {
  address  = %q
  host_key = %q
}
resource "metal_gpu_driver" "gpu" {
  host        = metal_host.gpu.ssh
  branch      = "580"
  toolkit     = ""
  persistence = false
  %s
}`, m.Address, m.HostKey, more)
	}
	refuses := func(parts ...string) {
		t.Helper()
		out, status := p.run("plan")
		if status == 0 {
			t.Errorf("a plan that should be refused:\n%s", out)
		}
		p.has(unwrapped(out), parts...)
	}
	before := m.Snapshot()
	declares(`source = "nvidia"`)
	refuses("Secure Boot refuses unsigned modules", "No headers for a kernel", "nouveau drives the GPUs")
	declares(`version = "580.150.10"`)
	refuses("The distribution has another version", "580.126.20-0ubuntu0.24.04.1")
	declares(`reboot = "if-needed"`)
	was := m.Exec("cat", "/proc/sys/kernel/random/boot_id")
	p.has(p.apply(), "distribution", "reboots the machine", "fact: host: install ")
	p.settled()
	if out := m.Exec("nvidia-smi", "-L"); !strings.Contains(out, "Tesla T4") {
		t.Errorf("the driver says %s", out)
	}
	if host := m.Exec("apt-mark", "showhold"); !strings.Contains(host, "linux-modules-nvidia-580-server-open-"+kernel) {
		t.Errorf("held: %s, boot %s", host, was)
	}

	// a kernel comes, and its modules stay behind, for they are held
	archive.Publish(append(l.KernelPackages(next), l.UbuntuDriverPackages("580-server", "580.126.20", kernel, next)...)...)
	m.Script("apt-get -qq update; apt-get -qq -y install --allow-change-held-packages linux-image-generic linux-image-" + next)
	p.has(p.apply(), "kernel "+next+", which boots next", "missing")
	m.Reboot()
	p.settled()
	if out := m.Exec("sh", "-c", "uname -r; nvidia-smi -L"); !strings.Contains(out, next) || !strings.Contains(out, "Tesla T4") {
		t.Errorf("after the update: %s", out)
	}
	p.ok("destroy", "-auto-approve")
	unchanged(t, m, before, "list *", "package linux-image-*", "content /boot/*", "file /boot/*", "file /vmlinuz", "sysctl kernel.osrelease", "file /lib/modules/*", "folder /lib/modules/*", "content /lib/modules/*", "content /usr/lib/modules/*", "file /usr/lib/modules/*", "folder /usr/lib/modules/*")
}
