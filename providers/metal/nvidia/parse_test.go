package nvidia

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hgx is what the observing script prints on a machine with two of an HGX
// board's GPUs; nvidia-smi's and the kernel's lines are as the driver writes them.
const hgx = `format 1
os ubuntu	24.04	noble
arch amd64
running 6.8.0-51-generic
boot 9a53d1f6-8f0e-44f5-a5a5-4d0d1c9a7b11
pci 0000:1b:00.0 0x10de 0x2330 0x030200 nvidia
pci 0000:9d:00.0 0x10de 0x2330 0x030200 nvidia
pci 0000:05:00.0 0x10de 0x22a3 0x068000 nvidia-nvswitch
pci 0000:1b:00.1 0x10de 0x22ba 0x040300 snd_hda_intel
kernel 6.8.0-51-generic	y	y	n	580.95.05	Dual MIT/GPL	Canonical Ltd. Kernel Module Signing
kernel 6.8.0-52-generic	y	y	y			
grubdefault "0"
grubsaved_entry 
grublinux 6.8.0-52-generic
grublinux 6.8.0-52-generic
grublinux 6.8.0-51-generic
link vmlinuz-6.8.0-52-generic
loaded NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3-B17-02-5)  Tue Sep 23 09:55:41 UTC 2025
module 580.95.05
nouveau blacklisted
smirc 0
smi 0, 00000000:1B:00.0, NVIDIA H100 80GB HBM3, GPU-0d5b5b5c-1111-2222-3333-444444444444, 81559, 580.95.05, Enabled
smi 1, 00000000:9D:00.0, NVIDIA H100 80GB HBM3, GPU-1d5b5b5c-1111-2222-3333-444444444444, [N/A], 580.95.05, [N/A]
pkg libnvidia-compute-580-server	580.95.05-0ubuntu0.24.04.2	hi 
pkg nvidia-utils-570-server		un 
hold libnvidia-compute-580-server
pin /etc/apt/preferences.d/nvidia	nvidia-driver-pinning-580	Package: *nvidia*
free /usr 90000000
free /boot 
user 4711	python3	/dev/nvidia0	
user 800	nvidia-persiste	/dev/nvidiactl	
unit Id=nvidia-persistenced.service
unit LoadState=loaded
unit ActiveState=active
unit 
unit Id=kubelet.service
unit LoadState=not-found
unit ActiveState=inactive
enabled nvidia-persistenced.service static
enabled nvidia-fabricmanager.service 
cdi /var/run/cdi/nvidia.yaml libcuda.so.580.95.05
ctdversion 3
ctdimports /etc/containerd/conf.d/
secureboot    1
holder nvidia_uvm
holder nvidia_fs
drm 0
rival operator /run/nvidia/driver/usr/bin/nvidia-smi
rebootfor .
rebootfor linux-image-6.8.0-52-generic
nofile /etc/modprobe.d/blacklist-nouveau.conf
file /etc/apt/apt.conf.d/52stoke-nvidia aGkK
end
`

func TestParse(t *testing.T) {
	got, err := parse([]byte(hgx))
	if err != nil {
		t.Fatal(err)
	}
	want := State{
		OS: "ubuntu", Release: "24.04", Codename: "noble", Arch: "amd64",
		Devices: []Device{
			{"0000:1b:00.0", 0x2330, class3D, "nvidia"}, {"0000:9d:00.0", 0x2330, class3D, "nvidia"}, {"0000:05:00.0", 0x22a3, classBridge, "nvidia-nvswitch"},
		},
		Running: "6.8.0-51-generic", Next: "6.8.0-52-generic", NextFrom: "the first GRUB entry", BootID: "9a53d1f6-8f0e-44f5-a5a5-4d0d1c9a7b11",
		Kernels: []Kernel{
			{"6.8.0-51-generic", true, true, false, "580.95.05", "Dual MIT/GPL", "Canonical Ltd. Kernel Module Signing"},
			{"6.8.0-52-generic", true, true, true, "", "", ""},
		},
		Loaded: "580.95.05", LoadedOpen: true, NouveauOff: true,
		GPUs: []GPU{
			{0, "0000:1b:00.0", "NVIDIA H100 80GB HBM3", "GPU-0d5b5b5c-1111-2222-3333-444444444444", 81559, "580.95.05", true},
			{1, "0000:9d:00.0", "NVIDIA H100 80GB HBM3", "GPU-1d5b5b5c-1111-2222-3333-444444444444", 0, "580.95.05", false},
		},
		Users:      []User{{4711, "python3", "/dev/nvidia0", ""}, {800, "nvidia-persiste", "/dev/nvidiactl", ""}},
		Holders:    []string{"nvidia_uvm", "nvidia_fs"},
		Rivals:     []Rival{{rivalOperator, "/run/nvidia/driver/usr/bin/nvidia-smi"}},
		SecureBoot: true, RebootFor: []string{".", "linux-image-6.8.0-52-generic"},
		Packages: map[string]string{"libnvidia-compute-580-server": "580.95.05-0ubuntu0.24.04.2"},
		Held:     []string{"libnvidia-compute-580-server"},
		Pins:     []Pin{{"/etc/apt/preferences.d/nvidia", "nvidia-driver-pinning-580", "Package: *nvidia*"}},
		Free:     map[string]int64{"/usr": 90000000},
		Units: map[string]Unit{
			persistenced: {Exists: true, Active: true, File: "static"},
			kubelet:      {}, fabricmanager: {},
		},
		CDI: map[string]string{newCDIFile: "580.95.05"}, Containerd: Containerd{true, 3, true},
		Files:       map[string]string{UpgradesFile: "hi\n"},
		grubDefault: "0", grubKernels: []string{"6.8.0-52-generic", "6.8.0-52-generic", "6.8.0-51-generic"}, link: "6.8.0-52-generic",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(State{})); diff != "" {
		t.Error(diff)
	}
	if !got.Fabric() || got.Installed() != "580.95.05" || len(got.Strangers()) != 1 {
		t.Errorf("fabric %v, installed %s, strangers %v", got.Fabric(), got.Installed(), got.Strangers())
	}
}

func TestParseBad(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"empty":        {hgx, "", `begins with ""`},
		"a banner":     {"format 1", "Welcome!", "Welcome!"},
		"cut off":      {"\nend\n", "\n", "ends too early"},
		"no kernel":    {"running 6.8.0-51-generic", "running ", "kernel is missing"},
		"no system":    {"os ubuntu\t24.04\tnoble", "os ubuntu", "fields, want 3"},
		"PCI":          {"0x22a3", "22a3", "hexadecimal"},
		"a version":    {"module 580.95.05", "module rm -rf", "no version of the driver"},
		"kernel":       {"\t580.95.05\tDual", "\t$(id)\tDual", "no version of the driver"},
		"user":         {"user 4711", "user x", "user of a GPU"},
		"unit":         {"unit LoadState=loaded", "unit LoadState", "no property"},
		"file":         {"aGkK", "a?", "illegal base64"},
		"unknown line": {"nofile", "nofyle", "not known"},
		"too much":     {"hold libnvidia-compute-580-server", strings.Repeat("hold x\n", mostLines), "lines are more"},
	} {
		if _, err := parse([]byte(strings.Replace(hgx, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestNextKernel(t *testing.T) {
	for _, c := range []struct{ lines, want, from string }{
		{"", "6.8.0-52-generic", "the newest image in /boot"},
		{"link vmlinuz-6.8.0-51-generic", "6.8.0-51-generic", "the link vmlinuz"},
		{"link vmlinuz-6.8.0-51-generic\ngrublinux 6.8.0-52-generic", "6.8.0-52-generic", "the first GRUB entry"},
		{"grubdefault 0\ngrubsaved_entry gnulinux-6.8.0-51-generic-advanced-1\ngrublinux 6.8.0-52-generic", "6.8.0-52-generic", "the first GRUB entry"},
		{"grubdefault saved\ngrubsaved_entry gnulinux-advanced-1>gnulinux-6.8.0-51-generic-advanced-1\ngrublinux 6.8.0-52-generic", "6.8.0-51-generic", "the saved GRUB entry"},
		{"grubdefault 'Advanced options for Ubuntu>Ubuntu, with Linux 6.8.0-51-generic'\ngrublinux 6.8.0-52-generic", "6.8.0-51-generic", "GRUB_DEFAULT"},
		{"grubdefault 1>2\ngrublinux 6.8.0-52-generic\ngrublinux 6.8.0-52-generic\ngrublinux 6.8.0-52-generic\ngrublinux 6.8.0-51-generic\ngrublinux 6.8.0-51-generic", "6.8.0-51-generic", "GRUB_DEFAULT"},
		{"grubdefault 0\ngrubnext_entry gnulinux-6.8.0-51-generic-advanced-1\ngrublinux 6.8.0-52-generic", "6.8.0-51-generic", "the saved GRUB entry"},
	} {
		s, err := parse([]byte("format 1\nos u\tx\ty\narch a\nrunning 6.8.0-51-generic\nboot b\nkernel 6.8.0-51-generic\ty\ty\tn\t\t\t\nkernel 6.8.0-52-generic\ty\ty\tn\t\t\t\n" + c.lines + "\nend\n"))
		if err != nil || s.Next != c.want || s.NextFrom != c.from {
			t.Errorf("%q: %s by %s, %v; want %s by %s", c.lines, s.Next, s.NextFrom, err, c.want, c.from)
		}
	}
}

func TestSmi(t *testing.T) {
	for _, c := range []struct {
		lines string
		rc    int
		why   string
	}{
		{"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126", 18, "Failed to initialize NVML: Driver/library version mismatch NVML library version: 580.126 (exit status 18)"},
		{"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. (exit status 9)"},
		{"", 124, "it did not answer within two minutes"},
		{"No devices were found", 0, ""},
		{"odd", 0, `it said "odd"`},
		{"x, 00000000:1B:00.0, N, G, 1, 580.1, Disabled", 0, `it said "x, 00000000:1B:00.0, N, G, 1, 580.1, Disabled"`},
	} {
		gpus, why := parseSmi(strings.Split(c.lines, "\n"), c.rc)
		if why != c.why || len(gpus) > 0 {
			t.Errorf("%q: %v %q", c.lines, gpus, why)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(hgx))
	f.Add([]byte("format 1\nend"))
	f.Fuzz(func(t *testing.T, out []byte) {
		s, err := parse(out)
		if err != nil {
			return
		}
		for _, modules := range []string{Open, Proprietary} {
			want := Spec{Branch: "580", Modules: modules, Source: NVIDIA, FabricManager: Auto, Reboot: Never, Toolkit: "1.20.0", NoNouveau: true, Persistence: true}
			Check(want, s, false)
			Diff(want, s)
			want.Want(s)
		}
	})
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte("vim:\n  Installed: (none)\n  Candidate: 2:9.0\n"))
	f.Fuzz(func(t *testing.T, out []byte) { parsePolicy(out) })
}
