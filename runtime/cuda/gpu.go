package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// GPU is an NVIDIA GPU of this machine.
type GPU struct {
	Index int    // its number on the machine, in the order of bus addresses
	Name  string // "NVIDIA H200"
	UUID  string // "GPU-…"
	Bus   string // "0000:00:07.0"
}

// GPUs returns the GPUs that this process may use, in CUDA's order. Each has a
// driver and a device file, and CUDA_VISIBLE_DEVICES does not hide it. A machine
// without a driver shows no GPU.
func GPUs() ([]GPU, error) { return thisMachine().listGPUs() }

func (m machine) listGPUs() ([]GPU, error) {
	all, err := m.allGPUs()
	if err != nil {
		return nil, err
	}
	if chosen, ok := m.lookup("CUDA_VISIBLE_DEVICES"); ok {
		return selectGPUs(all, chosen)
	}
	return all, nil
}

// allGPUs returns the GPUs that have a device file. A container has files only of
// its own, whatever the driver's folder shows.
func (m machine) allGPUs() ([]GPU, error) {
	const pattern = "/proc/driver/nvidia/gpus/*/information"
	files, err := filepath.Glob(m.path(pattern)) // sorted by bus address
	if err != nil {
		return nil, err
	}
	var all []GPU
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the driver's description of a GPU: %w", err)
		}
		facts := make(map[string]string)
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(line, ":")
			facts[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		gpu := GPU{Name: facts["Model"], UUID: facts["GPU UUID"], Bus: facts["Bus Location"]}
		minor, err := strconv.Atoi(facts["Device Minor"])
		if gpu.UUID == "" || gpu.Bus == "" || err != nil {
			return nil, fmt.Errorf("the driver's description of a GPU has no UUID, bus location or device minor: %s", path)
		}
		if _, err := os.Stat(m.path("/dev/nvidia" + strconv.Itoa(minor))); err == nil && facts["GPU Excluded"] != "Yes" {
			gpu.Index = len(all)
			all = append(all, gpu)
		}
	}
	if len(files) == 0 && m.sandboxVersion() != "" {
		for range m.deviceFiles() {
			all = append(all, GPU{Index: len(all), Name: "NVIDIA GPU"})
		}
	}
	return all, nil
}

// deviceFiles returns the files of GPUs in /dev.
func (m machine) deviceFiles() []string {
	files, _ := filepath.Glob(m.path("/dev/nvidia[0-9]*"))
	return files
}

// sandboxVersion returns the version of the driver in a sandbox that has the files of GPUs
// in /dev, and not the driver's folder in /proc, as gVisor has it: by the name of the
// driver's library. Elsewhere it returns "".
func (m machine) sandboxVersion() string {
	if _, err := os.Stat(m.path("/proc/driver/nvidia")); err == nil || len(m.deviceFiles()) == 0 {
		return ""
	}
	for _, path := range m.match(m.driverFolders(), []string{"libcuda.so.1"}) {
		target, err := filepath.EvalSymlinks(path)
		version, ok := strings.CutPrefix(filepath.Base(target), "libcuda.so.")
		if err == nil && ok && strings.Contains(version, ".") {
			return version
		}
	}
	return ""
}

// selectGPUs returns the GPUs that CUDA_VISIBLE_DEVICES lists, by index or by the
// beginning of a UUID, up to the first entry that is not a GPU: as CUDA does.
func selectGPUs(all []GPU, chosen string) ([]GPU, error) {
	var list []GPU
	for entry := range strings.SplitSeq(chosen, ",") {
		entry = strings.TrimSpace(entry)
		if strings.HasPrefix(entry, "MIG-") {
			return nil, fmt.Errorf("CUDA_VISIBLE_DEVICES names %s: stoke uses whole GPUs, not their MIG instances", entry)
		}
		at := slices.IndexFunc(all, func(g GPU) bool {
			return entry == strconv.Itoa(g.Index) || strings.HasPrefix(entry, "GPU-") && strings.HasPrefix(g.UUID, entry)
		})
		if at < 0 || slices.Contains(list, all[at]) {
			break
		}
		list = append(list, all[at])
	}
	return list, nil
}

// driverVersion returns the version of the driver, or "".
func (m machine) driverVersion() string {
	text, err := m.read("/proc/driver/nvidia/version")
	if err != nil {
		return m.sandboxVersion()
	}
	found := regexp.MustCompile(`NVRM version:.*?\s(\d{3,}\.\d+(?:\.\d+)?)\s`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}

// driverFolders are the folders of the system, of Google's nodes and of Windows,
// where libraries of the driver are installed.
func (m machine) driverFolders() []string {
	return append(m.systemFolders(), "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib")
}

// findDriver returns the path of libcuda.so.1, or "".
func (m machine) findDriver() string {
	for _, path := range m.match(m.driverFolders(), []string{"libcuda.so.1"}) {
		if isFile(path, false) {
			return path
		}
	}
	return ""
}

// isSystem reports whether the dynamic linker finds a library by its name.
func (m machine) isSystem(path string) bool {
	return slices.Contains(m.match(m.systemFolders(), []string{filepath.Base(path)}), path)
}

// hasNVIDIA reports whether the machine has a display controller made by NVIDIA,
// with a driver or without.
func (m machine) hasNVIDIA() bool {
	vendors, _ := filepath.Glob(m.path("/sys/bus/pci/devices/*/vendor"))
	for _, path := range vendors {
		vendor, _ := os.ReadFile(path)
		class, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "class"))
		if strings.TrimSpace(string(vendor)) == "0x10de" && strings.HasPrefix(string(class), "0x03") {
			return true
		}
	}
	return false
}
