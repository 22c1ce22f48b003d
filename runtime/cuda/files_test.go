package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// found returns the files that a machine has, relative to its root.
func found(t *testing.T, r *tree, c Config) Files {
	t.Helper()
	f, err := c.find(r.machine())
	if err != nil {
		t.Fatal(err)
	}
	cut := func(path string) string { return strings.TrimPrefix(path, r.root) }
	f.Plugin, f.Ptxas, f.Libdevice = cut(f.Plugin), cut(f.Ptxas), cut(f.Libdevice)
	for i := range f.Libraries {
		f.Libraries[i] = cut(f.Libraries[i])
	}
	return f
}

func TestFilesOfWheels(t *testing.T) {
	r := whole(t)
	cu13 := site + "/nvidia/cu13/lib/"
	want := Files{
		Plugin: site + "/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		Libraries: []string{
			cu13 + "libcudart.so.13", cu13 + "libnvJitLink.so.13", cu13 + "libcublasLt.so.13", cu13 + "libcublas.so.13", cu13 + "libnvrtc.so.13",
			cu13 + "libcusparse.so.12", cu13 + "libcusolver.so.12", cu13 + "libcufft.so.12", cu13 + "libcupti.so.13",
			site + "/nvidia/cudnn/lib/libcudnn.so.9", site + "/nvidia/nccl/lib/libnccl.so.2", site + "/nvidia/nvshmem/lib/libnvshmem_host.so.3",
		},
		Ptxas: toolkit + "/bin/ptxas", Libdevice: toolkit + "/nvvm/libdevice/libdevice.10.bc",
	}
	if diff := cmp.Diff(want, found(t, r, Config{})); diff != "" {
		t.Errorf("-want +found:\n%s", diff)
	}

	// Triton's files count only where there are no others.
	triton := site + "/triton/backends/nvidia"
	r.write(triton+"/bin/ptxas", "")
	r.write(triton+"/lib/libdevice.10.bc", "")
	if diff := cmp.Diff(want, found(t, r, Config{})); diff != "" {
		t.Errorf("beside Triton: -want +found:\n%s", diff)
	}

	// Libraries that XLA can do without are left out where they are missing, and
	// files of the configuration win.
	for _, name := range []string{"nvidia/cu13/lib/libcupti.so.13", "nvidia/nvshmem", "nvidia/cu13/lib/libcufft.so.12"} {
		r.remove(filepath.Join(site, name))
	}
	want.Libraries = append(want.Libraries[:7:7], want.Libraries[9:11]...)
	want.Libraries[0] = "/data/lib/libcudart.so.13"
	want.Plugin, want.Ptxas, want.Libdevice = "/data/plugin.so", "/data/ptxas", "/data/device.bc"
	for _, path := range []string{"/data/lib/libcudart.so.13", "/data/plugin.so", "/data/ptxas", "/data/device.bc"} {
		r.write(path, "")
	}
	got := found(t, r, Config{Plugin: "/data/plugin.so", Libraries: []string{"/data/lib"}, Ptxas: "/data/ptxas", Libdevice: "/data/device.bc"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +found:\n%s", diff)
	}
}

func TestPlacesOfFiles(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*tree)
		c      Config
		want   map[string]string // what is found, by a name
	}{
		"CUDA 12": {func(r *tree) {
			r.remove(site)
			r.write(site+"/jax_plugins/xla_cuda12/xla_cuda_plugin.so", "")
			r.addLibraries(site, 12)
		}, Config{}, map[string]string{
			"libcublas":   site + "/nvidia/cublas/lib/libcublas.so.12",
			"libcusolver": site + "/nvidia/cusolver/lib/libcusolver.so.11",
			"libcudnn":    site + "/nvidia/cudnn/lib/libcudnn.so.9",
		}},
		"a plugin that names no version, and libraries of CUDA 12": {func(r *tree) {
			r.remove(site)
			r.write("/opt/stoke/gpu/xla_cuda_plugin.so", "")
			r.addLibraries(site, 12)
		}, Config{}, map[string]string{"plugin": "/opt/stoke/gpu/xla_cuda_plugin.so", "libcudart": site + "/nvidia/cudart/lib/libcudart.so.12"}},
		"one folder": {func(r *tree) {
			r.remove("/srv")
			r.remove(toolkit)
			for _, l := range libraries() {
				r.write("/opt/stoke/gpu/lib/"+l.name+".so.13", "")
			}
			for _, name := range append(cudnnParts(), "libcudnn.so.9") {
				r.write("/opt/stoke/gpu/lib/"+name, "")
			}
			for _, name := range []string{"xla_cuda_plugin.so", "ptxas", "libdevice.10.bc"} {
				r.write("/opt/stoke/gpu/"+name, "")
			}
		}, Config{}, map[string]string{
			"plugin": "/opt/stoke/gpu/xla_cuda_plugin.so", "ptxas": "/opt/stoke/gpu/ptxas", "libdevice": "/opt/stoke/gpu/libdevice.10.bc",
			"libcudart": "/opt/stoke/gpu/lib/libcudart.so.13", "libcudnn": "/opt/stoke/gpu/lib/libcudnn.so.9",
		}},
		"beside the program": {func(r *tree) {
			r.remove(site + "/jax_plugins")
			r.remove(toolkit)
			r.write("/home/ada/bin/xla_cuda_plugin.so", "")
			r.write("/home/ada/bin/ptxas", "")
			r.write("/home/ada/bin/nvvm/libdevice/libdevice.10.bc", "")
		}, Config{}, map[string]string{
			"plugin": "/home/ada/bin/xla_cuda_plugin.so", "ptxas": "/home/ada/bin/ptxas",
			"libdevice": "/home/ada/bin/nvvm/libdevice/libdevice.10.bc",
		}},
		"packages of the system": {func(r *tree) {
			delete(r.environment, "VIRTUAL_ENV")
			r.write("/usr/local/lib/python3.12/dist-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "")
			r.addLibraries("/opt/train/lib/python3.11/site-packages", 13)
		}, Config{}, map[string]string{
			"plugin":    "/usr/local/lib/python3.12/dist-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
			"libcudart": "/opt/train/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13",
		}},
		"an environment whose python3 is in PATH": {func(r *tree) {
			r.remove("/srv")
			delete(r.environment, "VIRTUAL_ENV")
			const there = "/data/.venv/lib/python3.12/site-packages"
			r.write("/data/.venv/bin/python3", "")
			r.write(there+"/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "")
			r.addLibraries(there, 13)
			r.environment["PATH"] = "/usr/bin:/data/.venv/bin"
		}, Config{}, map[string]string{
			"plugin":   "/data/.venv/lib/python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
			"libcudnn": "/data/.venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
		}},
		"a link in PATH to an environment's python3": {func(r *tree) {
			r.remove("/srv/venv/lib/python3.12/site-packages/jax_plugins")
			delete(r.environment, "VIRTUAL_ENV")
			const there = "/data/env/lib/python3.12/site-packages"
			r.write("/data/env/bin/python3", "")
			r.link("/usr/local/bin/python3", "/data/env/bin/python3")
			r.write(there+"/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "")
			r.addLibraries(there, 13)
			r.environment["PATH"] = "/usr/local/bin:/usr/bin"
		}, Config{}, map[string]string{
			"plugin": "/data/env/lib/python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		}},
		"an environment below a folder of /opt": {func(r *tree) {
			r.remove("/srv")
			delete(r.environment, "VIRTUAL_ENV")
			const there = "/opt/torch/.venv/lib/python3.12/site-packages"
			r.write(there+"/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "")
			r.addLibraries(there, 13)
		}, Config{}, map[string]string{
			"plugin": "/opt/torch/.venv/lib/python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		}},
		"libraries of the system, a newer toolkit": {func(r *tree) {
			r.remove(site + "/nvidia/cu13/lib/libcudart.so.13")
			r.remove(toolkit)
			r.write("/usr/lib64/libcudart.so.13", "")
			for _, version := range []string{"12.8", "13.0"} {
				r.write("/usr/local/cuda-"+version+"/bin/ptxas", "")
				r.write("/usr/local/cuda-"+version+"/nvvm/libdevice/libdevice.10.bc", "")
			}
		}, Config{}, map[string]string{
			"libcudart": "/usr/lib64/libcudart.so.13", "ptxas": "/usr/local/cuda-13.0/bin/ptxas",
			"libdevice": "/usr/local/cuda-13.0/nvvm/libdevice/libdevice.10.bc",
		}},
		"tools by PATH and of Debian": {func(r *tree) {
			r.remove(toolkit)
			r.write("/snap/tools/ptxas", "")
			r.environment["PATH"] = "bin:/snap/tools:"
			r.write("/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc", "")
		}, Config{}, map[string]string{"ptxas": "/snap/tools/ptxas", "libdevice": "/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc"}},
		"a driver that the linker does not find": {func(r *tree) {
			r.remove("/usr/lib64/libcuda.so.1")
			r.write("/usr/local/nvidia/lib64/libcuda.so.1", "")
		}, Config{}, map[string]string{"libcuda": "/usr/local/nvidia/lib64/libcuda.so.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := whole(t)
			test.change(r)
			f := found(t, r, test.c)
			got := map[string]string{"plugin": f.Plugin, "ptxas": f.Ptxas, "libdevice": f.Libdevice}
			for _, path := range f.Libraries {
				name, _, _ := strings.Cut(filepath.Base(path), ".so")
				got[name] = path
			}
			for name, want := range test.want {
				if got[name] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
			if err := test.c.check(r.machine()); err != nil {
				t.Errorf("Problem reports %v", err)
			}
		})
	}
}

func TestFromEnvironment(t *testing.T) {
	for _, name := range []string{pluginSetting, librariesSetting, ptxasSetting, libdeviceSetting, cacheSetting, fractionSetting} {
		t.Setenv(name, "")
	}
	if got, err := FromEnvironment(); err != nil || !cmp.Equal(got, Config{}) {
		t.Errorf("got %v, %v", got, err)
	}
	t.Setenv(pluginSetting, "/p")
	t.Setenv(librariesSetting, "/a::/b")
	t.Setenv(ptxasSetting, "/x")
	t.Setenv(libdeviceSetting, "/d")
	t.Setenv(cacheSetting, "/c")
	t.Setenv(fractionSetting, "0.5")
	want := Config{"/p", []string{"/a", "/b"}, "/x", "/d", "/c", 0.5}
	if got, err := FromEnvironment(); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"0", "1.5", "-1", "half", "NaN"} {
		t.Setenv(fractionSetting, bad)
		if _, err := FromEnvironment(); err == nil || !strings.Contains(err.Error(), fractionSetting) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

func TestToolkitFolders(t *testing.T) {
	dir := t.TempDir()
	whole := Files{Ptxas: toolkit + "/bin/ptxas", Libdevice: toolkit + "/nvvm/libdevice/libdevice.10.bc"}
	if got, err := makeToolkit(dir, whole); err != nil || got != toolkit {
		t.Errorf("got %s, %v", got, err)
	}
	f := Files{Ptxas: "/a/ptxas", Libdevice: "/usr/local/cuda/nvvm/libdevice/libdevice.10.bc"}
	made := ""
	for range 2 { // made once, and used again
		got, err := makeToolkit(dir, f)
		if err != nil || (made != "" && got != made) {
			t.Fatalf("got %s, %v", got, err)
		}
		made = got
		for name, want := range map[string]string{"bin/ptxas": f.Ptxas, "nvvm/libdevice/libdevice.10.bc": f.Libdevice} {
			if target, err := os.Readlink(filepath.Join(got, name)); err != nil || target != want {
				t.Errorf("%s is a link to %s, %v", name, target, err)
			}
		}
	}
	if other, err := makeToolkit(dir, Files{Ptxas: "/b/ptxas", Libdevice: f.Libdevice}); err != nil || other == made {
		t.Errorf("got %s, %v", other, err)
	}
	link := filepath.Join(made, "bin/ptxas")
	if err := errors.Join(os.Remove(link), os.Symlink("/evil", link)); err != nil {
		t.Fatal(err)
	}
	if _, err := makeToolkit(dir, f); err == nil || !strings.Contains(err.Error(), "is not a link to /a/ptxas") {
		t.Errorf("got %v", err)
	}
}
