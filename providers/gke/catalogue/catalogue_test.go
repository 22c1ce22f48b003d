package catalogue_test

import (
	"testing"

	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// TestMachines: machine types of each series have the size that the vendor's pages name.
func TestMachines(t *testing.T) {
	for _, want := range []catalogue.Machine{
		{"e2-medium", 2, 4096, "", 0}, {"n1-standard-8", 8, 30 << 10, "", 0}, {"n2-highmem-64", 64, 512 << 10, "", 0},
		{"c4-standard-2", 2, 7 << 10, "", 0}, {"c4-standard-8", 8, 30 << 10, "", 0}, {"c4-highmem-8", 8, 62 << 10, "", 0},
		{"c3d-standard-360", 360, 1440 << 10, "", 0}, {"c4d-standard-2", 2, 7 << 10, "", 0}, {"c4d-standard-384", 384, 1488 << 10, "", 0},
		{"n4a-standard-64", 64, 256 << 10, "", 0}, {"a4-highgpu-8g", 224, 3968 << 10, "nvidia-b200", 8},
		{"a4x-highgpu-4g", 140, 905216, "nvidia-gb200", 4}, {"g4-standard-384", 384, 1440 << 10, "nvidia-rtx-pro-6000", 8},
	} {
		if got, ok := catalogue.Find(want.Name); !ok || got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, name := range []string{"", "n2-standard-6", "n2-custom-6-3072", "c9-standard-4"} {
		if _, ok := catalogue.Find(name); ok {
			t.Errorf("%q is known", name)
		}
	}
}

// TestWhole: whatever one table has, the others know as well.
func TestWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range catalogue.Machines() {
		if m.CPUs <= 0 || m.MemoryMiB <= 0 || (m.GPU == "") != (m.GPUs == 0) {
			t.Errorf("%+v", m)
		}
		if m.GPU != "" && catalogue.GPUQuota(m.GPU) == "" {
			t.Errorf("%s: the quota of %s is missing", m.Name, m.GPU)
		}
		if _, ok := catalogue.SSDs(m.Name); !ok && catalogue.Series(m.Name) != "g4" {
			t.Errorf("%s: it is not known whether it has local SSDs", m.Name)
		}
		seen[m.GPU] = true
	}
	for gpu := range catalogue.Attached {
		seen[gpu] = true
		if catalogue.GPUQuota(gpu) == "" {
			t.Errorf("the quota of %s is missing", gpu)
		}
	}
	for gpu := range catalogue.Partitions {
		if !seen[gpu] {
			t.Errorf("no machine has %s", gpu)
		}
	}
	for gpu := range catalogue.Zones {
		if !seen[gpu] {
			t.Errorf("no machine has %s", gpu)
		}
	}
}
