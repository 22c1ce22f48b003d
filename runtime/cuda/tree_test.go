package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a machine in a folder.
type tree struct {
	t           testing.TB
	root        string
	environment map[string]string
}

func newTree(t testing.TB) *tree {
	return &tree{t, t.TempDir(), map[string]string{}}
}

func (r *tree) machine() machine {
	return machine{root: r.root, executable: "/home/ada/bin/stoke-trainer-gpu", lookup: func(name string) (string, bool) {
		value, ok := r.environment[name]
		return value, ok
	}}
}

func (r *tree) write(path, text string) {
	r.t.Helper()
	path = filepath.Join(r.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// link makes a link whose target is a path of the machine.
func (r *tree) link(path, target string) {
	r.t.Helper()
	path = filepath.Join(r.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		r.t.Fatal(err)
	}
}

func (r *tree) remove(path string) {
	r.t.Helper()
	if _, err := os.Lstat(filepath.Join(r.root, path)); err != nil {
		r.t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(r.root, path)); err != nil {
		r.t.Fatal(err)
	}
}

// addGPU adds a GPU as the driver describes it.
func (r *tree) addGPU(bus string, minor int, model string) {
	r.write("proc/driver/nvidia/gpus/"+bus+"/information", fmt.Sprintf("Model: \t\t %s\nIRQ:   \t\t 27\n"+
		"GPU UUID: \t GPU-%s\nVideo BIOS: \t 96.00\n"+
		"Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t %s\nDevice Minor: \t %d\n"+
		"GPU Firmware: \t 580.159.04\nGPU Excluded:\t No\n", model, strings.Repeat(fmt.Sprint(minor), 8), bus, minor))
	r.write(fmt.Sprintf("dev/nvidia%d", minor), "")
}

// addDriver adds a driver with its library.
func (r *tree) addDriver(version string) {
	r.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  "+version+
		"  Tue Jan  6 01:00:00 UTC 2026\nGCC version:  gcc 13\n")
	r.write("usr/lib64/libcuda.so.1", "")
}

// addLibraries adds CUDA's libraries of a version, in the folders of wheels.
func (r *tree) addLibraries(site string, version int) {
	for _, l := range libraries() {
		dir := map[int]string{12: "nvidia/" + strings.TrimPrefix(l.name, "lib") + "/lib", 13: "nvidia/cu13/lib"}[version]
		switch l.name {
		case "libcudnn":
			dir = "nvidia/cudnn/lib"
			for _, part := range cudnnParts() {
				r.write(filepath.Join(site, dir, part), "")
			}
		case "libnccl", "libnvshmem_host":
			dir = "nvidia/" + strings.TrimPrefix(strings.TrimSuffix(l.name, "_host"), "lib") + "/lib"
		}
		r.write(filepath.Join(site, dir, fmt.Sprintf("%s.so.%d", l.name, l.versions[version])), "")
	}
}

const (
	site    = "/srv/venv/lib/python3.12/site-packages"
	toolkit = "/usr/local/cuda"
)

// whole returns a machine on which nothing is missing: wheels of CUDA 13 in a
// Python environment, and a toolkit.
func whole(t testing.TB) *tree {
	r := newTree(t)
	r.addGPU("0000:00:07.0", 0, "NVIDIA H200")
	r.addDriver("580.159.04")
	r.environment["VIRTUAL_ENV"] = "/srv/venv"
	r.write(site+"/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "")
	r.addLibraries(site, 13)
	r.write(toolkit+"/bin/ptxas", "")
	r.write(toolkit+"/nvvm/libdevice/libdevice.10.bc", "")
	return r
}
