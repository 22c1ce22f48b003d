//go:build e2e && linux

package nvidia_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
	"github.com/stokehq/stoke/providers/metal/nvidia"
)

// driven is a machine with GPUs and what is declared of its driver. Packages
// are installed as plainly as can be; package metal tests them with the real
// installer.
type driven struct {
	t    *testing.T
	m    *lab.Machine
	want nvidia.Spec
	// drains and reboots count.
	drains, reboots int
}

func declare(r *lab.Repository) nvidia.Spec {
	from := nvidia.Repository{URL: r.URL, KeyURL: r.KeyURL, Fingerprint: r.Fingerprint}
	return nvidia.Spec{
		Branch: "580", Version: "580.126.20", Modules: nvidia.Open, Source: nvidia.NVIDIA, FabricManager: nvidia.Auto, Toolkit: "1.20.0",
		Persistence: true, NoNouveau: true, Reboot: nvidia.Never, DriverRepository: from, ToolkitRepository: from,
	}
}

const installScript = `set -e
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
install -d /etc/apt/keyrings
curl -sSf "$2" > /etc/apt/keyrings/test.asc
echo "deb [signed-by=/etc/apt/keyrings/test.asc] $1 /" > /etc/apt/sources.list.d/test.list
shift 2
apt-get -qq update
apt-get -qq -y --allow-downgrades --allow-change-held-packages --no-install-recommends -o Dpkg::Options::=--force-confold install -- "$@"`

func (d *driven) install(ctx context.Context, w nvidia.Target) error {
	args := []string{w.Sources[0].URL, w.Sources[0].KeyURL}
	have, done := d.state().Packages, len(w.Remove) == 0
	for _, p := range w.Packages {
		done = done && have[p.Name] != "" && strings.HasPrefix(have[p.Name], strings.TrimSuffix(p.Version, "*"))
		if p.Version != "" {
			args = append(args, p.Name+"="+p.Version)
		} else {
			args = append(args, p.Name)
		}
	}
	for _, name := range w.Remove {
		args = append(args, name+"-")
	}
	if done {
		return nil
	}
	_, err := host.Script(ctx, d.m.Remote(), installScript, args...)
	return err
}

func (d *driven) hooks() nvidia.Hooks {
	return nvidia.Hooks{
		Install: d.install,
		Drain:   func(context.Context) error { d.drains++; return nil },
		Reboot: func(ctx context.Context) error {
			d.reboots++
			_, err := host.Reboot(ctx, d.m.Remote(), host.RebootLimits{})
			return err
		},
	}
}

func (d *driven) state() nvidia.State {
	d.t.Helper()
	have, err := nvidia.Observe(context.Background(), d.m.Remote(), d.want)
	if err != nil {
		d.t.Fatal(err)
	}
	return have
}

func (d *driven) record() *host.Record {
	d.t.Helper()
	ctx := context.Background()
	rec, err := host.OpenRecord(ctx, d.m.Remote(), "gpu-driver")
	if errors.Is(err, host.ErrNoRecord) {
		rec, err = host.NewRecord(ctx, d.m.Remote(), "gpu-driver", "id", "metal_gpu_driver.test")
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return rec
}

func (d *driven) try() error {
	d.t.Helper()
	_, err := nvidia.Apply(context.Background(), d.m.Remote(), d.record(), d.want, d.state(), d.hooks())
	return err
}

// apply brings it about, and a second look finds nothing to do.
func (d *driven) apply() {
	d.t.Helper()
	if err := d.try(); err != nil {
		d.t.Fatal(err)
	}
	d.settled()
}

func (d *driven) settled() {
	d.t.Helper()
	if left := nvidia.Diff(d.want, d.state()); len(left) > 0 {
		d.t.Fatalf("left to do: %v", left)
	}
}

// differs says that exactly these facts differ.
func (d *driven) differs(facts ...string) []host.Change {
	d.t.Helper()
	changes := nvidia.Diff(d.want, d.state())
	var have []string
	for _, c := range changes {
		have = append(have, c.Fact)
	}
	if strings.Join(have, ", ") != strings.Join(facts, ", ") {
		d.t.Errorf("what differs: %v, want %q", changes, facts)
	}
	return changes
}

func (d *driven) fails(want string) {
	d.t.Helper()
	if err := d.try(); err == nil || !strings.Contains(err.Error(), want) {
		d.t.Errorf("apply: %v, want %q", err, want)
	}
}

func (d *driven) problems(summaries ...string) {
	d.t.Helper()
	var have []string
	for _, p := range nvidia.Check(d.want, d.state(), false) {
		have = append(have, p.Summary)
	}
	if strings.Join(have, ", ") != strings.Join(summaries, ", ") {
		d.t.Errorf("problems %q, want %q", have, summaries)
	}
}

// TestLife goes through a driver's life on one machine.
func TestLife(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("gpu", lab.PCI(lab.H100, lab.H100, lab.NVSwitch), lab.NoMirror())
	r := l.Repository(append(l.DriverPackages("580.126.20"), l.ToolkitPackages("1.20.0")...)...)
	m.Exec("apt-get", "-qq", "install", "curl")
	d := &driven{t: t, m: m, want: declare(r)}
	before := m.Snapshot()

	d.problems("nouveau drives the GPUs")
	d.want.Reboot = nvidia.IfNeeded
	d.problems()
	if got := host.Greatest(nvidia.Diff(d.want, d.state())); got != host.Reboots {
		t.Errorf("installing it %s", got)
	}
	d.apply()
	if s := d.state(); len(s.GPUs) != 2 || s.GPUs[0].Name != "NVIDIA H100 80GB HBM3" || s.GPUs[1].Bus != "0000:02:00.0" || s.Loaded != "580.126.20" {
		t.Errorf("the driver says %+v", s.GPUs)
	}
	if held := m.Exec("apt-mark", "showhold"); !strings.Contains(held, "libcuda1") || !strings.Contains(held, "nvidia-container-toolkit-base") {
		t.Errorf("held: %s", held)
	}
	d.reboot()
	d.settled()

	d.want.Reboot = nvidia.Never
	for _, c := range []struct {
		name, script string
		facts        []string
	}{
		{"files gone", "rm /etc/containerd/conf.d/99-nvidia.toml /etc/apt/apt.conf.d/52stoke-nvidia /etc/modprobe.d/blacklist-nouveau.conf /var/run/cdi/nvidia.yaml; apt-mark unhold libcuda1",
			[]string{"CDI specification", "packages held", "file " + nvidia.NouveauFile, "file " + nvidia.UpgradesFile, "file " + nvidia.RuntimeFile}},
		{"files changed", "echo >> /etc/containerd/conf.d/99-nvidia.toml; touch -d 2020-01-01 /boot/initrd.img-*; systemctl stop nvidia-fabricmanager; systemctl disable nvidia-persistenced",
			[]string{"fabric manager", "file " + nvidia.RuntimeFile, "initramfs", "persistence daemon"}},
		{"unloaded", "systemctl stop nvidia-persistenced nvidia-fabricmanager; modprobe -r nvidia_uvm; modprobe -r nvidia", []string{"driver in the kernel", "fabric manager", "persistence daemon"}},
	} {
		m.Script(c.script)
		t.Log(c.name)
		d.differs(c.facts...)
		d.apply()
	}

	d.upgrade(l, r)
	d.trouble()
	d.kernel(l, r)

	outcomes, err := nvidia.Restore(context.Background(), m.Remote(), d.record(), func(ctx context.Context) ([]host.Outcome, error) {
		_, err := host.Script(ctx, m.Remote(), `export LC_ALL=C DEBIAN_FRONTEND=noninteractive
apt-get -qq -y purge '*nvidia*' libcuda1 dkms && rm -f /etc/apt/keyrings/test.asc /etc/apt/sources.list.d/test.list`)
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(outcomes)
	if err := d.record().Delete(context.Background()); err != nil {
		t.Error(err)
	}
	if left := lab.Diff(before, m.Snapshot(), "list *", "package linux-*", "content /boot/*", "content /lib/modules/*", "content /usr/src/*"); len(left) > 0 {
		t.Logf("what is left:\n%s", strings.Join(left, "\n"))
	}
	for _, name := range []string{nvidia.NouveauFile, nvidia.UpgradesFile, nvidia.RuntimeFile, "/var/run/cdi/nvidia.yaml", "/var/lib/stoke"} {
		if out, err := m.Try("ls", "-d", name); err == nil {
			t.Errorf("%s is left", out)
		}
	}
}

// upgrade goes to another version, with and without somebody in the way.
func (d *driven) upgrade(l *lab.Lab, r *lab.Repository) {
	d.t.Helper()
	r.Publish(l.DriverPackages("580.150.10")...)
	d.want.Version = "580.150.10"
	d.drains = 0
	if got := host.Greatest(nvidia.Diff(d.want, d.state())); got != host.Drains {
		d.t.Errorf("an upgrade %s", got)
	}
	// somebody trains: the driver cannot go
	d.m.Script("nohup setsid sleep 1000 < /dev/nvidia0 > /dev/null 2>&1 & echo $! > /run/training")
	d.problems("The driver is held by a user", "Processes keep the driver loaded")
	d.fails("uses /dev/nvidia0")
	if d.drains != 0 || d.m.Exec("nvidia-smi", "-L") == "" {
		d.t.Error("something was changed")
	}
	d.m.Script("kill $(cat /run/training); modprobe nvidia-modeset")
	d.apply()
	if out, err := d.m.Try("sh", "-c", "ls -d /sys/module/nvidia_modeset && ! ls /run/stoke-gpu-modules 2>/dev/null"); err != nil {
		d.t.Errorf("what was loaded beside the driver is not again: %s", out)
	}
	if s := d.state(); s.Loaded != "580.150.10" || d.drains != 1 || d.reboots > 1 {
		d.t.Errorf("loaded %s, %d drains, %d reboots", s.Loaded, d.drains, d.reboots)
	}
	// somebody upgrades the libraries beneath the module, back and forth
	d.m.Script("apt-mark -q unhold nvidia-smi libcuda1; apt-get -qq -y --allow-downgrades --allow-change-held-packages install nvidia-driver-pinning-580.150.10- libcuda1=580.126.20-1 nvidia-smi=580.126.20-1 nvidia-open- cuda-drivers-")
	d.t.Log(nvidia.Diff(d.want, d.state()))
	d.apply()
	// the branch alone is content with what is there
	d.want.Version = ""
	d.settled()
}

// trouble has a driver that is installed and does not work.
func (d *driven) trouble() {
	d.t.Helper()
	d.m.Script("echo 'Unable to determine the device handle for GPU0000:01:00.0: Unknown Error' > /run/machine/gpu-failure")
	d.differs("nvidia-smi")
	d.fails("Unknown Error")
	d.want.Reboot = nvidia.IfNeeded
	before := d.reboots
	d.apply() // which a reboot fixes
	if d.reboots != before+1 {
		d.t.Errorf("%d reboots", d.reboots-before)
	}
	d.want.Reboot = nvidia.Never
	d.m.Script("touch /run/machine/pci/0000:02:00.0/fallen-off")
	d.differs("GPUs that the driver lists")
	d.fails("nvidia-smi lists 1 of the 2 GPUs on the PCI bus: missing H100 SXM5 80GB at 0000:02:00.0")
	d.m.Script("rm /run/machine/pci/0000:02:00.0/fallen-off")
	d.apply()
}

// kernel updates the kernel alone.
func (d *driven) kernel(l *lab.Lab, r *lab.Repository) {
	d.t.Helper()
	r.Publish(l.KernelPackages("6.1.0-41-amd64")...)
	d.m.Script("apt-get -qq update; apt-mark -q hold linux-headers-amd64; apt-get -qq -y install linux-image-amd64 linux-image-6.1.0-41-amd64; apt-mark -q unhold linux-headers-amd64")
	d.differs("module of kernel 6.1.0-41-amd64, which boots next")
	reboots := d.reboots
	d.apply()
	if d.reboots != reboots || d.state().Kernel.Running != lab.DefaultKernel {
		d.t.Error("it rebooted for that")
	}
	d.reboot()
	d.settled()
	if s := d.state(); s.Kernel.Running != "6.1.0-41-amd64" {
		d.t.Errorf("kernel %s runs", s.Kernel.Running)
	}
}

// reboot is somebody's, behind our back.
func (d *driven) reboot() {
	d.m.Reboot()
	host.Forget(d.m.Remote())
}
