package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantFault checks that an error is a Fault that people can act on.
func wantFault(t *testing.T, err error, kind Kind, words ...string) {
	t.Helper()
	var f *Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	if f.Kind != kind {
		t.Errorf("got kind %q of %v, want %q", f.Kind, f, kind)
	}
	if n := len(strings.Fields(f.Summary)); n > 8 {
		t.Errorf("the summary %q has %d words", f.Summary, n)
	}
	if !strings.HasSuffix(f.Advice, ".") || strings.Contains(f.Error(), "%!") {
		t.Errorf("the advice %q is not a sentence", f.Advice)
	}
	for _, w := range words {
		if !strings.Contains(f.Error(), w) {
			t.Errorf("%q is not in: %s", w, f)
		}
	}
}

func TestProblemsAreNamedOneByOne(t *testing.T) {
	cu13 := site + "/nvidia/cu13/lib/"
	for name, test := range map[string]struct {
		change func(*tree)
		c      Config
		kind   Kind
		words  []string
	}{
		"no GPU": {func(r *tree) { r.remove("/proc"); r.remove("/dev") }, Config{}, NoGPU,
			[]string{"This machine has no NVIDIA GPU", "Train on the CPU"}},
		"hidden": {func(r *tree) { r.environment["CUDA_VISIBLE_DEVICES"] = "" }, Config{}, NoGPU,
			[]string{"All GPUs of this machine are hidden", `CUDA_VISIBLE_DEVICES is "", and the machine has 1`}},
		"no device file": {func(r *tree) { r.remove("/dev") }, Config{}, NoGPU,
			[]string{"The NVIDIA driver shows no GPU", "nvidia.com/gpu"}},
		"broken description": {func(r *tree) { r.write("/proc/driver/nvidia/gpus/0000:00:07.0/information", "Model: X\n") }, Config{}, NoGPU,
			[]string{"cannot be listed", "has no UUID"}},
		"MIG": {func(r *tree) { r.environment["CUDA_VISIBLE_DEVICES"] = "MIG-1234" }, Config{}, NoGPU, []string{"MIG-1234"}},
		"driver not loaded": {func(r *tree) {
			r.remove("/proc")
			r.write("/sys/bus/pci/devices/0000:00:07.0/vendor", "0x10de\n")
			r.write("/sys/bus/pci/devices/0000:00:07.0/class", "0x030200\n")
		}, Config{}, NoDriver, []string{"The NVIDIA driver is not loaded", "The machine has an NVIDIA GPU"}},
		"another card of NVIDIA's": {func(r *tree) {
			r.remove("/proc")
			r.write("/sys/bus/pci/devices/0000:00:07.0/vendor", "0x10de\n")
			r.write("/sys/bus/pci/devices/0000:00:07.0/class", "0x068000\n")
		}, Config{}, NoGPU, []string{"This machine has no NVIDIA GPU"}},
		"no version": {func(r *tree) { r.remove("/proc/driver/nvidia/version") }, Config{}, NoDriver, []string{"/proc/driver/nvidia/version"}},
		"no libcuda": {func(r *tree) { r.remove("/usr/lib64") }, Config{}, NoDriver,
			[]string{"libcuda.so.1 is missing", "/usr/lib64", "580.159.04", "container toolkit"}},
		"old driver": {func(r *tree) { r.addDriver("575.57.08") }, Config{}, OldDriver,
			[]string{"too old", "It has version 575.57.08, and CUDA 13 needs 580 or newer", "jax-cuda12-pjrt"}},
		"very old driver, no plugin": {func(r *tree) { r.addDriver("470.42.01"); r.remove(site) }, Config{}, OldDriver,
			[]string{"470.42.01, and CUDA 12 needs 525"}},
		"no plugin": {func(r *tree) { r.remove(site + "/jax_plugins") }, Config{}, NoPlugin,
			[]string{"xla_cuda_plugin.so, is missing", "/srv/venv/lib/python3*/site-packages", "/opt/stoke/gpu", "/home/ada/bin", "/usr/local/cuda",
				"jax-cuda13-pjrt", "STOKE_XLA_PLUGIN"}},
		"unknown CUDA": {func(r *tree) {
			r.remove(site + "/jax_plugins")
			r.write(site+"/jax_plugins/xla_cuda14/xla_cuda_plugin.so", "")
		}, Config{}, BadPlugin, []string{"was built for CUDA 14"}},
		"configured plugin": {func(r *tree) {}, Config{Plugin: "/data/plugin.so"}, NoPlugin, []string{"STOKE_XLA_PLUGIN names /data/plugin.so"}},
		"no cudart": {func(r *tree) { r.remove(cu13 + "libcudart.so.13") }, Config{Libraries: []string{"/data/lib"}}, NoLibrary,
			[]string{"libcudart.so.13 is missing", "/data/lib", "/usr/lib64", "CUDA 13", "STOKE_CUDA_LIBRARIES"}},
		"no cublasLt": {func(r *tree) { r.remove(cu13 + "libcublasLt.so.13") }, Config{}, NoLibrary, []string{"libcublasLt.so.13 is missing"}},
		"no cuDNN":    {func(r *tree) { r.remove(site + "/nvidia/cudnn") }, Config{}, NoLibrary, []string{"libcudnn.so.9 is missing"}},
		"half a cuDNN": {func(r *tree) { r.remove(site + "/nvidia/cudnn/lib/libcudnn_ops.so.9") }, Config{}, NoLibrary,
			[]string{"libcudnn_ops.so.9 is missing", "beside"}},
		"no ptxas": {func(r *tree) { r.remove(toolkit + "/bin") }, Config{}, NoPtxas,
			[]string{"ptxas is missing", "/usr/local/cuda", "STOKE_PTXAS"}},
		"ptxas that is no program": {func(r *tree) {
			if err := os.Chmod(r.root+toolkit+"/bin/ptxas", 0o644); err != nil {
				r.t.Fatal(err)
			}
		}, Config{}, NoPtxas, nil},
		"configured ptxas": {func(r *tree) {}, Config{Ptxas: "/data"}, NoPtxas,
			[]string{"STOKE_PTXAS names /data, which is not a file that can be executed"}},
		"no libdevice": {func(r *tree) { r.remove(toolkit + "/nvvm") }, Config{}, NoLibdevice,
			[]string{"libdevice.10.bc is missing", "nvvm/libdevice", "STOKE_LIBDEVICE"}},
		"configured libdevice": {func(r *tree) {}, Config{Libdevice: "/data/x.bc"}, NoLibdevice, []string{"STOKE_LIBDEVICE names /data/x.bc"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := whole(t)
			test.change(r)
			wantFault(t, test.c.check(r.machine()), test.kind, test.words...)
		})
	}
	if err := (Config{}).check(whole(t).machine()); err != nil {
		t.Errorf("a whole machine has the problem: %v", err)
	}
}

func TestGPUsOfAMachine(t *testing.T) {
	r := newTree(t)
	// The driver numbers device files in another order than the bus.
	r.addGPU("0000:41:00.0", 0, "NVIDIA A100")
	r.addGPU("0000:01:00.0", 3, "NVIDIA H200")
	r.addGPU("0000:61:00.0", 4, "NVIDIA H200")
	description := "proc/driver/nvidia/gpus/0000:61:00.0/information"
	text, err := os.ReadFile(filepath.Join(r.root, description))
	if err != nil {
		t.Fatal(err)
	}
	r.write(description, strings.Replace(string(text), "Excluded:\t No", "Excluded:\t Yes", 1))
	r.addGPU("0000:C1:00.0", 1, "NVIDIA H200")
	r.addGPU("0000:81:00.0", 2, "NVIDIA H200")
	all := []GPU{
		{0, "NVIDIA H200", "GPU-33333333", "0000:01:00.0"}, {1, "NVIDIA A100", "GPU-00000000", "0000:41:00.0"},
		{2, "NVIDIA H200", "GPU-22222222", "0000:81:00.0"}, {3, "NVIDIA H200", "GPU-11111111", "0000:C1:00.0"},
	}
	if got, err := r.machine().listGPUs(); err != nil || !slices.Equal(got, all) {
		t.Errorf("got %v, %v", got, err)
	}
	for visible, want := range map[string][]GPU{
		"": nil, "-1": nil, "0": {all[0]}, "2,1": {all[2], all[1]}, "3, 0": {all[3], all[0]}, "1,-1,2": {all[1]}, "4": nil,
		"GPU-2222,0": {all[2], all[0]}, "GPU-00000000": {all[1]}, "GPU-9": nil, "0,0": {all[0]}, "NoDevFiles": nil,
	} {
		r.environment["CUDA_VISIBLE_DEVICES"] = visible
		if got, err := r.machine().listGPUs(); err != nil || !slices.Equal(got, want) {
			t.Errorf("CUDA_VISIBLE_DEVICES=%q: got %v, %v", visible, got, err)
		}
	}
	delete(r.environment, "CUDA_VISIBLE_DEVICES")

	// A container has one device file, of four GPUs that the driver shows.
	for _, name := range []string{"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia3"} {
		r.remove(name)
	}
	want := []GPU{{0, "NVIDIA H200", "GPU-22222222", "0000:81:00.0"}}
	if got, err := r.machine().listGPUs(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := newTree(t).machine().listGPUs(); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestVersionsOfDrivers(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Jan  6 2026\n":                        "580.159.04",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder)  \n": "580.95.05",
		"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.26  Release Build\n":                    "570.26",
		"something else": "",
	} {
		r := newTree(t)
		r.write("/proc/driver/nvidia/version", text)
		if got := r.machine().driverVersion(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTrialsAreComputedInGo(t *testing.T) {
	product := multiply([]float64{1, 2, 3, 4, 5, 6}, []float64{7, 8, 9, 10, 11, 12}, 2, 3, 2)
	if diff := cmp.Diff([]float64{58, 64, 139, 154}, product); diff != "" {
		t.Error(diff)
	}
	// One image of 2×2 and one filter whose taps are 1 to 9: each output sums the
	// four pixels, each times the tap that meets it.
	if diff := cmp.Diff([]float64{1*5 + 2*6 + 3*8 + 4*9, 1*4 + 2*5 + 3*7 + 4*8, 1*2 + 2*3 + 3*5 + 4*6, 1*1 + 2*2 + 3*4 + 4*5},
		convolve([]float64{1, 2, 3, 4}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 2, 1, 1)); diff != "" {
		t.Error(diff)
	}
}

// A sandbox that has the files of GPUs, and not the driver's folder in /proc, is no machine
// without a GPU: the driver's version is in the name of its library.
func TestASandbox(t *testing.T) {
	r := whole(t)
	r.remove("/proc")
	r.remove("/usr/lib64/libcuda.so.1")
	r.write("/usr/local/nvidia/lib64/libcuda.so.580.159.03", "")
	r.link("/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.159.03")
	for _, name := range []string{"nvidiactl", "nvidia-uvm"} {
		r.write("/dev/"+name, "")
	}
	if err := (Config{}).check(r.machine()); err != nil {
		t.Error(err)
	}
	gpus, err := r.machine().listGPUs()
	if want := []GPU{{Name: "NVIDIA GPU"}}; err != nil || !slices.Equal(gpus, want) {
		t.Errorf("%v, %v, want %v", gpus, err, want)
	}
	if got := r.machine().driverVersion(); got != "580.159.03" {
		t.Errorf("the driver's version is %q", got)
	}
	r.remove("/dev")
	wantFault(t, (Config{}).check(r.machine()), NoGPU)
}
