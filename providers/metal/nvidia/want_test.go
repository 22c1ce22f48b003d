package nvidia

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// spec is what most people would declare.
func spec(branch string, change ...func(*Spec)) Spec {
	s := Spec{Branch: branch, Modules: Open, Source: Distribution, Server: true, FabricManager: Auto, Toolkit: "1.20.0", Persistence: true, NoNouveau: true, Reboot: Never}
	for _, c := range change {
		c(&s)
	}
	return s
}

func fromNVIDIA(s *Spec)  { s.Source, s.Server = NVIDIA, false }
func proprietary(s *Spec) { s.Modules = Proprietary }
func mayReboot(s *Spec)   { s.Reboot = IfNeeded }
func noToolkit(s *Spec)   { s.Toolkit = "" }
func exactly(v string) func(*Spec) {
	return func(s *Spec) { s.Version = v }
}

// hwe gives a machine Ubuntu's kernel packages.
func (b *box) with(packages ...string) *box {
	for _, p := range packages {
		name, version, _ := strings.Cut(p, "=")
		b.packages[name] = first(version, "1")
	}
	return b
}

// sees tells apt what there is.
func (b *box) sees(packages ...string) *box {
	for _, p := range packages {
		name, version, _ := strings.Cut(p, "=")
		b.archive[name] = first(version, "1")
	}
	return b
}

// state observes the machine.
func (b *box) state(t *testing.T, want Spec) State {
	t.Helper()
	s, err := Observe(context.Background(), b, want)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noble580 is what Ubuntu's archive has for a kernel.
func noble580(kernel string) []string {
	return []string{
		"nvidia-headless-no-dkms-580-server-open=580.173.02-0ubuntu0.24.04.1", "nvidia-utils-580-server=580.173.02-0ubuntu0.24.04.1",
		"libnvidia-compute-580-server=580.173.02-0ubuntu0.24.04.1", "nvidia-fabricmanager-580=580.173.02-0ubuntu0.24.04.1",
		"linux-modules-nvidia-580-server-open-" + kernel + "=6.8.0-51.52+1",
	}
}

type machineCase struct {
	name    string
	box     *box
	want    Spec
	managed bool
}

func machineCases() []machineCase {
	generic := "6.8.0-51-generic"
	u := func(pci ...string) *box {
		return ubuntu(generic, pci...).with("linux-image-generic", "linux-image-"+generic).sees(noble580(generic)...)
	}
	d := func(release string, pci ...string) *box {
		return debian(release, pci...).sees("linux-headers-6.1.0-40-amd64")
	}
	next := u(a100)
	next.next = "6.8.0-52-generic"
	next.kernels[next.next] = ""
	nouveau := u(r4090)
	nouveau.nouveau = true
	gone := u(a100)
	gone.kernels = map[string]string{}
	busy := u(a100).with("libnvidia-compute-535-server=535.261.03-0ubuntu1", "nvidia-utils-535-server=535.261.03-0ubuntu1", "linux-modules-nvidia-535-server-"+generic)
	busy.loaded, busy.kernels[generic], busy.users = "535.261.03", "535.261.03", []string{"4711\tpython3\t/dev/nvidia0\t", "800\tnvidia-persiste\t/dev/nvidiactl\t"}
	odd := u(a100).with("nvidia-utils-570=570.1.1-1")
	odd.held = []string{"nvidia-utils-570", "vim"}
	odd.extra = []string{
		"pin /etc/apt/preferences.d/nvidia\t\tPackage: *nvidia*", "runfile /usr/bin/nvidia-uninstall", "secureboot 1",
		"free /usr 1000000", "free /boot 1000", "ctdversion 2",
	}
	secure := d("12", a100)
	secure.extra = []string{"secureboot 1"}
	enrolled := d("12", a100)
	enrolled.extra = []string{"secureboot 1", "mok enrolled"}
	other := u(a100)
	other.os, other.release = "rocky", "9"
	gcp := ubuntu("6.8.0-1021-gcp", a100).with("linux-image-gcp", "linux-image-6.8.0-1021-gcp").sees(noble580("6.8.0-1021-gcp")...)
	hwe := ubuntu("6.14.0-27-generic", r4090).with("linux-image-generic-hwe-24.04", "linux-image-6.14.0-27-generic").sees(noble580("6.14.0-27-generic")...)
	jammy := ubuntu("5.15.0-160-generic", t4).with("linux-image-generic").sees(noble580("5.15.0-160-generic")...)
	jammy.release, jammy.codename = "22.04", "jammy"
	late := u(h100, nvsw).sees("nvidia-fabricmanager-580=580.159.03-0ubuntu0.24.04.1")
	older := u(h100, nvsw).sees("nvidia-fabricmanager-580=580.159.03-0ubuntu0.24.04.1")
	published := []string{"580.173.02-0ubuntu0.24.04.1", "580.159.03-0ubuntu0.24.04.1", "580.95.05-0ubuntu0.24.04.1"}
	older.versions = map[string][]string{"libnvidia-compute-580-server": published, "nvidia-utils-580-server": published, "nvidia-headless-no-dkms-580-server-open": published}
	installed := u(h100, nvsw).with("libnvidia-compute-580-server=580.95.05-0ubuntu1", "nvidia-utils-580-server=580.95.05-0ubuntu1", "nvidia-headless-no-dkms-580-server-open=580.95.05-0ubuntu1")
	installed.loaded, installed.loadedOpen, installed.open, installed.kernels[generic] = "580.95.05", true, true, "580.95.05"
	rivals := u(a100)
	rivals.extra = []string{"rival operator /run/nvidia/driver/usr/bin/nvidia-smi", "rival vgpu-host /usr/bin/nvidia-vgpu-mgr", "rival vgpu-guest /usr/bin/nvidia-gridd"}
	jetson := u()
	jetson.extra = []string{"rival tegra /etc/nv_tegra_release"}
	split := u(a100).with("libnvidia-compute-535-server=535.261.03-0ubuntu1", "nvidia-utils-535-server=535.261.03-0ubuntu1")
	split.loaded, split.kernels[generic], split.mig, split.extra = "535.261.03", "535.261.03", "Enabled", []string{"holder nvidia_uvm", "holder acme_rdma"}
	docker := u(a100).with("libnvidia-compute-535-server=535.261.03-0ubuntu1", "nvidia-utils-535-server=535.261.03-0ubuntu1")
	docker.loaded, docker.kernels[generic], docker.users, docker.extra = "535.261.03", "535.261.03", []string{"4711\tpython3\t/dev/nvidia0\t", "4712\tdcgm\t/dev/nvidia0\t" + strings.Repeat("ab", 32)}, []string{"drm 2"}
	vfio := u(a100)
	vfio.bound = "vfio-pci"
	return []machineCase{
		{"Ubuntu 24.04, A100", u(a100), spec("580"), false},
		{"Ubuntu 24.04, A100, exact", u(a100), spec("580", exactly("580.173.02")), false},
		{"Ubuntu 24.04, A100, exact and not there", u(a100), spec("580", exactly("580.126.20")), false},
		{"Ubuntu 24.04, A100, a branch that is not there", u(a100), spec("570"), false},
		{"Ubuntu 24.04, HGX H100", u(h100, h100, nvsw), spec("580"), false},
		{"Ubuntu 24.04, HGX B200 from NVIDIA", u(b200).sees("linux-headers-" + generic), spec("580", fromNVIDIA, exactly("580.126.20")), false},
		{"Ubuntu 24.04, B200, too old a branch", u(b200), spec("550", proprietary), false},
		{"Ubuntu 24.04 on gcp", gcp, spec("580"), false},
		{"Ubuntu 24.04 HWE, RTX 4090", hwe, spec("580"), false},
		{"Ubuntu 22.04, T4", jammy, spec("580"), false},
		{"Ubuntu 24.04, P100, open", u(p100), spec("580"), false},
		{"Ubuntu 24.04, P100, too new", u(p100), spec("595", proprietary, fromNVIDIA), false},
		{"Ubuntu 24.04, P100 beside B200", u(p100, b200), spec("580"), false},
		{"Ubuntu 24.04, GH200, proprietary", u(gh200), spec("580", proprietary), false},
		{"Ubuntu 24.04, a GPU of tomorrow", u(unheard), spec("580"), false},
		{"Ubuntu 24.04, no GPU", u(), spec("580"), false},
		{"Ubuntu 24.04, next kernel without modules", next, spec("580"), false},
		{"Ubuntu 24.04, nouveau, no reboot", nouveau, spec("580"), false},
		{"Ubuntu 24.04, nouveau, may reboot", nouveau, spec("580", mayReboot), false},
		{"Ubuntu 24.04, kernel without modules", gone, spec("580"), false},
		{"Ubuntu 24.04, busy driver, no reboot", busy, spec("580"), true},
		{"Ubuntu 24.04, busy driver, may reboot", busy, spec("580", mayReboot), true},
		{"Ubuntu 24.04, much is wrong", odd, spec("580"), false},
		{"Debian 12, A100 from NVIDIA", d("12", a100), spec("580", fromNVIDIA), false},
		{"Debian 12, A100, an old branch from NVIDIA", d("12", a100), spec("570", fromNVIDIA, proprietary), false},
		{"Debian 13, RTX 4090 from NVIDIA", d("13", r4090), spec("580", fromNVIDIA, noToolkit), false},
		{"Debian 12, own driver not there", d("12", t4), spec("535"), false},
		{"Debian 12, own driver", d("12", t4).sees("nvidia-open-kernel-dkms=535.247.01-1~deb12u1", "nvidia-smi=535.247.01-1~deb12u1", "libcuda1=535.247.01-1~deb12u1", "nvidia-persistenced=535.171.04-1~deb12u1", "firmware-nvidia-gsp=535.247.01-1~deb12u1"), spec("535"), false},
		{"Debian 12, own driver with NVSwitches", d("12", h100, nvsw), spec("535"), false},
		{"Debian 12, Secure Boot", secure, spec("580", fromNVIDIA), false},
		{"Debian 12, Secure Boot, key enrolled", enrolled, spec("580", fromNVIDIA), false},
		{"Debian 12, no headers", debian("12", a100), spec("580", fromNVIDIA), false},
		{"Rocky", other, spec("580"), false},
		{"HGX, the fabric manager lags behind", late, spec("580"), false},
		{"HGX, the fabric manager lags behind, an older driver is there", older, spec("580"), false},
		{"HGX, an older driver is to be declared", older, spec("580", exactly("580.159.03")), false},
		{"HGX, a driver without its fabric manager", installed, spec("580"), true},
		{"HGX, not the server packages", u(h100, nvsw), spec("580", func(s *Spec) { s.Server = false }), false},
		{"Rivals", rivals, spec("580"), false},
		{"Jetson", jetson, spec("580"), false},
		{"MIG, and a module of others", split, spec("580"), true},
		{"MIG, and a module of others, may reboot", split, spec("580", mayReboot), true},
		{"A container of docker's, a display", docker, spec("580"), true},
		{"A GPU of a virtual machine", vfio, spec("580"), false},
		{"Ubuntu 24.04, B300, too old a branch", u(b300), spec("570"), false},
	}
}

// TestWant shows, for each machine, what is wrong, what is wanted and what would
// change.
func TestWant(t *testing.T) {
	var b strings.Builder
	list := hosttest.NewChecks(t, "driver")
	for _, c := range machineCases() {
		have := c.box.state(t, c.want)
		fmt.Fprintf(&b, "## %s\n", c.name)
		list.Case("%s", c.name)
		for _, p := range Check(c.want, have, c.managed) {
			kind := "problem"
			if p.Warning {
				kind = "warning"
			}
			fmt.Fprintf(&b, "%s: %s: %s\n", kind, p.Summary, p.Detail)
			list.Say("%s: %s: %s", kind, p.Summary, p.Detail)
			if n := len(strings.Fields(p.Summary)); n > 8 {
				t.Errorf("%q has %d words", p.Summary, n)
			}
		}
		w, err := c.want.Want(have)
		if err != nil {
			fmt.Fprintf(&b, "no packages: %v\n", err)
		}
		for _, s := range w.Sources {
			fmt.Fprintf(&b, "source %s: %s %s %s key %s (%s)\n", s.Name, s.URL, s.Suite, strings.Join(s.Components, " "), s.KeyURL, s.Fingerprint)
		}
		for _, p := range w.Packages {
			fmt.Fprintf(&b, "package %s %s\n", p.Name, p.Version)
		}
		for _, p := range w.Pinned {
			fmt.Fprintf(&b, "pinned %s %s\n", p.Name, p.Version)
		}
		for _, r := range w.Remove {
			fmt.Fprintf(&b, "remove %s\n", r)
		}
		list.Changes(Diff(c.want, have))
		list.Say("may reboot: %v", MayReboot(c.want, have))
		for _, ch := range Diff(c.want, have) {
			fmt.Fprintf(&b, "change %s: %q -> %q (%s)\n", ch.Fact, ch.Have, ch.Want, ch.Disruption)
		}
		b.WriteByte('\n')
	}
	golden(t, "want.golden", b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
