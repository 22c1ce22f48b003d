package cuda

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Files are the files that XLA needs, by their absolute paths.
type Files struct {
	Plugin    string
	Libraries []string // to load before the plugin, in order
	Ptxas     string
	Libdevice string
}

// library is a library of CUDA.
type library struct {
	name     string
	versions map[int]int // of the file's name, by the version of CUDA
	needed   bool
}

// libraries returns CUDA's libraries in the order of loading. A client starts
// with the four needed ones. Training was run with all of them, and not with four
// only; it was run with CUDA 13, and not with CUDA 12.
func libraries() []library {
	same := map[int]int{12: 12, 13: 13}
	return []library{
		{"libcudart", same, true},
		{"libnvJitLink", same, false},
		{"libcublasLt", same, true},
		{"libcublas", same, true},
		{"libnvrtc", same, false},
		{"libcusparse", map[int]int{12: 12, 13: 12}, false},
		{"libcusolver", map[int]int{12: 11, 13: 12}, false},
		{"libcufft", map[int]int{12: 11, 13: 12}, false},
		{"libcupti", same, false},
		{"libcudnn", map[int]int{12: 9, 13: 9}, true},
		{"libnccl", map[int]int{12: 2, 13: 2}, false},
		{"libnvshmem_host", map[int]int{12: 3, 13: 3}, false},
	}
}

// isNeeded reports whether XLA does not start without a library.
func isNeeded(path string) bool {
	name, _, _ := strings.Cut(filepath.Base(path), ".so")
	return !slices.ContainsFunc(libraries(), func(l library) bool { return l.name == name && !l.needed })
}

// cudnnParts returns the files that libcudnn.so.9 loads from its own folder.
func cudnnParts() []string {
	var names []string
	for _, part := range []string{"graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled"} {
		names = append(names, "libcudnn_"+part+".so.9")
	}
	return names
}

// Find returns the files, or a Fault that names the first missing one, where it
// was looked for, and the setting that names it.
func (c Config) Find() (Files, error) { return c.find(thisMachine()) }

func (c Config) find(m machine) (Files, error) {
	var f Files
	var err error
	if f.Plugin, err = c.findPlugin(m); err != nil {
		return Files{}, err
	}
	if f.Libraries, err = c.findLibraries(m, f.Plugin); err != nil {
		return Files{}, err
	}
	if f.Ptxas, err = c.findPtxas(m); err != nil {
		return Files{}, err
	}
	f.Libdevice, err = c.findLibdevice(m)
	return f, err
}

// search describes one file that XLA needs, and its places.
type search struct {
	kind       Kind
	name       string // for people
	setting    string
	configured string
	executable bool
	folders    []string
	patterns   []string
	last       []string // patterns that are tried after all folders
	source     string   // where people get it
}

func (w search) find(m machine) (string, error) {
	if w.configured != "" {
		configured, err := filepath.Abs(w.configured)
		if err != nil {
			return "", err
		}
		if path := m.path(configured); isFile(path, w.executable) {
			return path, nil
		}
		what := "is not a file"
		if w.executable {
			what = "is not a file that can be executed"
		}
		return "", &Fault{Kind: w.kind, Summary: w.name + " is missing",
			Advice: fmt.Sprintf("%s names %s, which %s. Correct the setting, or remove it and have the file found.",
				w.setting, configured, what)}
	}
	for _, path := range slices.Concat(m.match(w.folders, w.patterns), m.match(w.folders, w.last)) {
		if isFile(path, w.executable) {
			return path, nil
		}
	}
	return "", &Fault{Kind: w.kind, Summary: w.name + " is missing",
		Advice: fmt.Sprintf("It was looked for below %s. %s, or name the file by %s.", inWords(w.folders), w.source, w.setting)}
}

// Below a folder, files may have the layout of wheels, of a toolkit, or of one
// folder with all files.

func (c Config) findPlugin(m machine) (string, error) {
	return search{
		kind: NoPlugin, name: "XLA's plugin for CUDA, xla_cuda_plugin.so,", setting: pluginSetting, configured: c.Plugin,
		folders:  m.folders(),
		patterns: []string{"jax_plugins/xla_cuda1[0-9]/xla_cuda_plugin.so", "xla_cuda_plugin.so", "lib/xla_cuda_plugin.so"},
		source:   "Install the Python package jax-cuda13-pjrt",
	}.find(m)
}

// Triton's wheel has a ptxas and a libdevice too: they are used where no folder has
// others, as XLA was not run with them.

func (c Config) findPtxas(m machine) (string, error) {
	return search{
		kind: NoPtxas, name: "CUDA's assembler ptxas", setting: ptxasSetting, configured: c.Ptxas, executable: true,
		folders:  slices.Concat(m.folders(), m.list("PATH"), []string{"/usr"}),
		patterns: []string{"nvidia/cu1[0-9]/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas", "bin/ptxas", "ptxas"},
		last:     []string{"triton/backends/nvidia/bin/ptxas"},
		source:   "Install it from a CUDA toolkit, in the version of the libraries",
	}.find(m)
}

func (c Config) findLibdevice(m machine) (string, error) {
	return search{
		kind: NoLibdevice, name: "CUDA's library libdevice.10.bc", setting: libdeviceSetting, configured: c.Libdevice,
		folders: append(m.folders(), "/usr/lib/nvidia-cuda-toolkit/libdevice"),
		patterns: []string{"nvidia/cu1[0-9]/nvvm/libdevice/libdevice.10.bc", "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
			"nvvm/libdevice/libdevice.10.bc", "libdevice.10.bc"},
		last:   []string{"triton/backends/nvidia/lib/libdevice.10.bc"},
		source: "Install it from a CUDA toolkit, where it is in nvvm/libdevice",
	}.find(m)
}

// findLibraries returns the libraries of one version of CUDA: the version of the
// plugin, or else the first version whose needed libraries are all installed.
func (c Config) findLibraries(m machine, plugin string) ([]string, error) {
	versions := []int{13, 12}
	if v := cudaVersion(plugin); slices.Contains(versions, v) {
		versions = []int{v}
	} else if v != 0 {
		return nil, &Fault{Kind: BadPlugin, Summary: "XLA's plugin is for an unknown CUDA",
			Advice: fmt.Sprintf("%s was built for CUDA %d, and stoke loads CUDA 12 and 13. "+
				"Install jax-cuda13-pjrt, or a newer stoke.", plugin, v)}
	}
	var first error
	for _, version := range versions {
		found, err := c.findVersion(m, version)
		if err == nil {
			return found, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (c Config) findVersion(m machine, version int) ([]string, error) {
	var configured []string
	for _, dir := range c.Libraries {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		configured = append(configured, dir)
	}
	folders := slices.Concat(configured, m.folders(), m.systemFolders())
	places := m.match(folders, []string{"nvidia/cu1[0-9]/lib", "nvidia/*/lib", ".", "lib", "lib64",
		"targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "extras/CUPTI/lib64"})
	locate := func(name string) string {
		for _, place := range places {
			if path := filepath.Join(place, name); isFile(path, false) {
				return path
			}
		}
		return ""
	}
	missing := func(name, where string) error {
		return &Fault{Kind: NoLibrary, Summary: "CUDA's library " + name + " is missing",
			Advice: fmt.Sprintf("It was looked for %s. Install CUDA %d and cuDNN 9, or name the folders of the libraries by %s.",
				where, version, librariesSetting)}
	}
	var found []string
	if driver := m.findDriver(); driver != "" && !m.isSystem(driver) {
		found = append(found, driver) // XLA would not find it by its name
	}
	for _, l := range libraries() {
		name := fmt.Sprintf("%s.so.%d", l.name, l.versions[version])
		path := locate(name)
		switch {
		case path != "":
			found = append(found, path)
		case l.needed:
			return nil, missing(name, "below "+inWords(folders))
		}
		if l.name == "libcudnn" {
			for _, part := range cudnnParts() {
				if !isFile(filepath.Join(filepath.Dir(path), part), false) {
					return nil, missing(part, "beside "+path)
				}
			}
		}
	}
	return found, nil
}

// cudaVersion returns the major version of CUDA that a plugin was built for: by
// the folder of its wheel, or by the folders of wheels that its file names. It
// is 0 where neither names one.
func cudaVersion(plugin string) int {
	if m := regexp.MustCompile(`/xla_cuda(\d+)/`).FindStringSubmatch(plugin); m != nil {
		version, _ := strconv.Atoi(m[1])
		return version
	}
	file, err := elf.Open(plugin)
	if err != nil {
		return 0
	}
	defer file.Close()
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		paths, _ := file.DynString(tag)
		text := strings.Join(paths, ":")
		if m := regexp.MustCompile(`nvidia/cu(\d+)/`).FindStringSubmatch(text); m != nil {
			version, _ := strconv.Atoi(m[1])
			return version
		}
		if strings.Contains(text, "nvidia/cublas/lib") { // the layout of the wheels of CUDA 12
			return 12
		}
	}
	return 0
}
