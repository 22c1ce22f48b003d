package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// AsOf is the month of the tables.
const AsOf = "2026-11"

// Machine is a machine type.
type Machine struct {
	Name            string
	CPUs, MemoryMiB int64
	GPU             string // type of the GPUs that come with it; "" for none
	GPUs            int64
}

// Series returns the series of a machine type: n2 of n2-standard-8.
func Series(machineType string) string {
	series, _, _ := strings.Cut(machineType, "-")
	return series
}

// Arm reports whether the processors of a machine type are Arm ones.
func Arm(machineType string) bool {
	return slices.Contains([]string{"a4x", "c4a", "n4a", "t2a"}, Series(machineType))
}

// Hyperdisk reports whether machines of a type boot from Hyperdisks only. Source:
// https://cloud.google.com/compute/docs/disks/persistent-disks
func Hyperdisk(machineType string) bool {
	return strings.HasPrefix(machineType, "a3-ultragpu-") ||
		slices.Contains([]string{"a4", "a4x", "c4", "c4a", "c4d", "g4", "n4", "n4a"}, Series(machineType))
}

// family is a series and class of machine types without GPUs. Source: the machine families at
// https://cloud.google.com/compute/docs/machine-resource
type family struct {
	name   string
	perCPU int64 // MiB
	whole  bool  // memory is in whole GiB
	sizes  []int64
}

var (
	upTo32  = []int64{2, 4, 8, 16, 32}
	upTo96  = []int64{2, 4, 8, 16, 32, 48, 64, 80, 96}
	upTo128 = append(slices.Clone(upTo96), 128)
	n4Sizes = []int64{2, 4, 8, 16, 32, 48, 64, 80}
	c3Sizes = []int64{4, 8, 22, 44, 88, 176}
	c4Sizes = []int64{2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288}
	c3dAll  = []int64{4, 8, 16, 30, 60, 90, 180, 360}
	c4dAll  = []int64{2, 4, 8, 16, 32, 48, 64, 96, 192, 384}
	armAll  = []int64{1, 2, 4, 8, 16, 32, 48, 64}
)

var families = []family{
	{"n1-standard", 3840, false, []int64{1, 2, 4, 8, 16, 32, 64, 96}},
	{"n1-highmem", 6656, false, []int64{2, 4, 8, 16, 32, 64, 96}},
	{"n1-highcpu", 922, false, []int64{2, 4, 8, 16, 32, 64, 96}},
	{"e2-standard", 4096, false, upTo32}, {"e2-highmem", 8192, false, upTo32[:4]}, {"e2-highcpu", 1024, false, upTo32},
	{"n2-standard", 4096, false, upTo128}, {"n2-highmem", 8192, false, upTo128}, {"n2-highcpu", 1024, false, upTo96},
	{"n2d-standard", 4096, false, append(slices.Clone(upTo128), 224)}, {"n2d-highmem", 8192, false, upTo96},
	{"n2d-highcpu", 1024, false, append(slices.Clone(upTo128), 224)},
	{"c2-standard", 4096, false, []int64{4, 8, 16, 30, 60}},
	{"c3-standard", 4096, false, c3Sizes}, {"c3-highmem", 8192, false, c3Sizes}, {"c3-highcpu", 2048, false, c3Sizes},
	{"c3d-standard", 4096, false, c3dAll}, {"c3d-highmem", 8192, false, c3dAll}, {"c3d-highcpu", 2048, false, c3dAll},
	{"c4-standard", 3840, true, c4Sizes}, {"c4-highmem", 7936, true, c4Sizes}, {"c4-highcpu", 2048, true, c4Sizes},
	{"c4d-standard", 3968, true, c4dAll}, {"c4d-highmem", 8064, true, c4dAll}, {"c4d-highcpu", 1920, true, c4dAll},
	{"n4-standard", 4096, false, n4Sizes}, {"n4-highmem", 8192, false, n4Sizes}, {"n4-highcpu", 2048, false, n4Sizes},
	{"n4a-standard", 4096, false, armAll}, {"n4a-highmem", 8192, false, armAll}, {"n4a-highcpu", 2048, false, armAll},
	{"t2d-standard", 4096, false, []int64{1, 2, 4, 8, 16, 32, 48, 60}}, {"t2a-standard", 4096, false, armAll[:7]},
}

// shared are machine types that share their processors.
var shared = []Machine{
	{Name: "e2-micro", CPUs: 2, MemoryMiB: 1024}, {Name: "e2-small", CPUs: 2, MemoryMiB: 2048}, {Name: Default, CPUs: 2, MemoryMiB: 4096},
}

// Default is the machine type of nodes without a declared one.
const Default = "e2-medium"

// SharesCPUs reports whether machines of a type share their processors.
func SharesCPUs(machineType string) bool {
	return slices.ContainsFunc(shared, func(m Machine) bool { return m.Name == machineType })
}

var byName = sync.OnceValue(func() map[string]Machine {
	all := map[string]Machine{}
	for _, f := range families {
		for _, cpus := range f.sizes {
			memory := cpus * f.perCPU
			if f.whole {
				memory -= memory % 1024
			}
			name := fmt.Sprintf("%s-%d", f.name, cpus)
			all[name] = Machine{Name: name, CPUs: cpus, MemoryMiB: memory}
		}
	}
	for _, m := range slices.Concat(shared, accelerated) {
		all[m.Name] = m
	}
	return all
})

// Find returns a machine type; ok is false for an unknown name.
func Find(machineType string) (m Machine, ok bool) {
	m, ok = byName()[machineType]
	return m, ok
}

// Machines returns all machine types, by name.
func Machines() []Machine {
	var all []Machine
	for _, m := range byName() {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// SSDs returns the numbers of local SSDs that a machine type may have, none for an empty list; ok is false
// where the number is not known. Source: https://cloud.google.com/compute/docs/disks/local-ssd
func SSDs(machineType string) (allowed []int64, ok bool) {
	if n, ok := builtIn[machineType]; ok {
		return n, true
	}
	series := Series(machineType)
	m, known := Find(machineType)
	if slices.Contains(withoutSSDs, series) && (known || series == "e2" || series == "n4") {
		return nil, true
	}
	if !known {
		return nil, false
	}
	for _, row := range bySeries[series] {
		if m.CPUs <= row.cpus {
			return row.counts, true
		}
	}
	return nil, false
}

// withoutSSDs are series without local SSDs. C3, C3D, C4 and C4D have other machine types with local SSDs,
// such as c3-standard-8-lssd.
var withoutSSDs = []string{"c3", "c3d", "c4", "c4d", "e2", "n4", "n4a", "t2a", "t2d"}

// builtIn are the machine types whose GPUs say how many there are.
var builtIn = map[string][]int64{
	"a2-highgpu-1g": {1, 2, 4, 8}, "a2-highgpu-2g": {2, 4, 8}, "a2-highgpu-4g": {4, 8}, "a2-highgpu-8g": {8}, "a2-megagpu-16g": {8},
	"a2-ultragpu-1g": {1}, "a2-ultragpu-2g": {2}, "a2-ultragpu-4g": {4}, "a2-ultragpu-8g": {8},
	"a3-highgpu-1g": {2}, "a3-highgpu-2g": {4}, "a3-highgpu-4g": {8}, "a3-highgpu-8g": {16},
	"a3-megagpu-8g": {16}, "a3-ultragpu-8g": {32}, "a4-highgpu-8g": {32}, "a4x-highgpu-4g": {4},
	"g2-standard-4": {1}, "g2-standard-8": {1}, "g2-standard-12": {1}, "g2-standard-16": {1},
	"g2-standard-24": {2}, "g2-standard-32": {1}, "g2-standard-48": {4}, "g2-standard-96": {8},
}

// bySeries are the counts for machines with at most so many processors.
var bySeries = map[string][]struct {
	cpus   int64
	counts []int64
}{
	"n1": {{96, []int64{1, 2, 3, 4, 5, 6, 7, 8, 16, 24}}},
	"n2": {{10, []int64{1, 2, 4, 8, 16, 24}}, {20, []int64{2, 4, 8, 16, 24}}, {40, []int64{4, 8, 16, 24}},
		{80, []int64{8, 16, 24}}, {128, []int64{16, 24}}},
	"n2d": {{16, []int64{1, 2, 4, 8, 16, 24}}, {48, []int64{2, 4, 8, 16, 24}}, {80, []int64{4, 8, 16, 24}}, {224, []int64{8, 16, 24}}},
	"c2":  {{8, []int64{1, 2, 4, 8}}, {16, []int64{2, 4, 8}}, {30, []int64{4, 8}}, {60, []int64{8}}},
}
