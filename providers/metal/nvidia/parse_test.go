package nvidia

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hgx is what the observing script prints on a machine with two of an HGX
// board's GPUs; nvidia-smi's and the kernel's lines are as the driver writes them.
const hgx = `kernel 6.8.0-51-generic	y	y	n	580.95.05	Dual MIT/GPL
kernel 6.8.0-52-generic	y	y	y		
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
holder nvidia_uvm
holder nvidia_fs
drm 0
rival operator /run/nvidia/driver/usr/bin/nvidia-smi
file /etc/apt/apt.conf.d/52stoke-nvidia aGkK
end
`

// lined makes a look of lines in which blanks stand between fields.
func lined(text string) string {
	var out, units strings.Builder
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case word == "unit":
			units.WriteString(rest + "\n")
			continue
		case word == "enabled":
			name, file, _ := strings.Cut(rest, " ")
			units.WriteString("\nId=" + name + "\nUnitFileState=" + file + "\n")
			continue
		case word == "end":
			out.WriteString("units\t" + base64.StdEncoding.EncodeToString([]byte(units.String())) + "\nend\n")
			continue
		case slices.Contains([]string{"rival", "free", "cdi", "file"}, word):
			rest = strings.Replace(rest, " ", "\t", 1)
		}
		out.WriteString(word + "\t" + rest + "\n")
	}
	return out.String()
}

func parse(out []byte) (State, error) {
	r := newReader()
	err := r.lines().Read(out)
	return r.finish(), err
}

func TestParse(t *testing.T) {
	got, err := parse([]byte(lined(hgx)))
	if err != nil {
		t.Fatal(err)
	}
	want := State{
		Kernels: []Kernel{
			{"6.8.0-51-generic", true, true, false, "580.95.05", "Dual MIT/GPL"},
			{"6.8.0-52-generic", true, true, true, "", ""},
		},
		Loaded: "580.95.05", LoadedOpen: true, NouveauOff: true,
		GPUs: []GPU{
			{0, "0000:1b:00.0", "NVIDIA H100 80GB HBM3", "GPU-0d5b5b5c-1111-2222-3333-444444444444", 81559, "580.95.05", true},
			{1, "0000:9d:00.0", "NVIDIA H100 80GB HBM3", "GPU-1d5b5b5c-1111-2222-3333-444444444444", 0, "580.95.05", false},
		},
		Users:    []User{{4711, "python3", "/dev/nvidia0", ""}, {800, "nvidia-persiste", "/dev/nvidiactl", ""}},
		Holders:  []string{"nvidia_uvm", "nvidia_fs"},
		Rivals:   []Rival{{rivalOperator, "/run/nvidia/driver/usr/bin/nvidia-smi"}},
		Packages: map[string]string{"libnvidia-compute-580-server": "580.95.05-0ubuntu0.24.04.2"},
		Held:     []string{"libnvidia-compute-580-server"},
		Pins:     []Pin{{"/etc/apt/preferences.d/nvidia", "nvidia-driver-pinning-580", "Package: *nvidia*"}},
		Free:     map[string]int64{"/usr": 90000000},
		Units: map[string]Unit{
			persistenced: {Exists: true, Active: true, File: "static"},
			kubelet:      {}, fabricmanager: {},
		},
		CDI: map[string]string{newCDIFile: "580.95.05"}, Containerd: Containerd{true, 3, true},
		Files: map[string]string{UpgradesFile: "hi\n"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(State{})); diff != "" {
		t.Error(diff)
	}
	if got.Installed() != "580.95.05" || len(got.ForeignProcesses()) != 1 {
		t.Errorf("installed %s, strangers %v", got.Installed(), got.ForeignProcesses())
	}
}

func TestParseBad(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"empty":        {hgx, "", "only a part"},
		"cut off":      {"\nend\n", "\n", "only a part"},
		"a version":    {"module 580.95.05", "module rm -rf", "not a version of the driver"},
		"kernel":       {"\t580.95.05\tDual", "\t$(id)\tDual", "not a version of the driver"},
		"user":         {"user 4711", "user x", "invalid syntax"},
		"file":         {"aGkK", "a?", "illegal base64"},
		"unknown line": {"drm 0", "drn 0", "not a requested one"},
		"too much":     {"hold libnvidia-compute-580-server", strings.Repeat("hold x\n", 100_001), "not a requested one"},
	} {
		if _, err := parse([]byte(lined(strings.Replace(hgx, c.old, c.new, 1)))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
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
	f.Add([]byte(lined(hgx)))
	f.Add([]byte("units\t\nend\n"))
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
