package gke

import (
	"slices"
	"strings"
)

// zonesAsOf is the month of zonesOf.
const zonesAsOf = "2025-06"

// zonesOf are zones of the GPUs, for plans that cannot ask Google; a GPU that is not
// here is not judged. Google adds zones, so that this table gives warnings alone.
// Source: https://cloud.google.com/compute/docs/gpus/gpu-regions-zones
var zonesOf = map[string][]string{
	"nvidia-tesla-a100": {"asia-northeast1-a", "asia-northeast1-c", "asia-northeast3-a", "asia-northeast3-b", "asia-southeast1-b", "asia-southeast1-c",
		"europe-west4-a", "europe-west4-b", "me-west1-a", "me-west1-c", "us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f", "us-east1-b", "us-west1-b", "us-west3-b", "us-west4-b"},
	"nvidia-a100-80gb": {"asia-southeast1-c", "europe-west4-a", "us-central1-a", "us-central1-c", "us-east4-c", "us-east5-a", "us-east5-b"},
}

// localSSDs are how many local SSDs a machine type may have; ok is false for types
// that are not known here. Source: https://cloud.google.com/compute/docs/disks/local-ssd
func localSSDs(name string) (allowed []int64, ok bool) {
	if n, ok := builtIn[name]; ok {
		return n, true
	}
	series, _, _ := strings.Cut(name, "-")
	if slices.Contains([]string{"e2", "n4"}, series) {
		return nil, true
	}
	kind, known := machineOf(name)
	if !known {
		return nil, false
	}
	for _, row := range bySeries[series] {
		if kind.cpus <= row.cpus {
			return row.counts, true
		}
	}
	return nil, false
}

// builtIn are the machine types whose GPUs say how many there are.
var builtIn = map[string][]int64{
	"a2-highgpu-1g": {1, 2, 4, 8}, "a2-highgpu-2g": {2, 4, 8}, "a2-highgpu-4g": {4, 8}, "a2-highgpu-8g": {8}, "a2-megagpu-16g": {8},
	"a2-ultragpu-1g": {1}, "a2-ultragpu-2g": {2}, "a2-ultragpu-4g": {4}, "a2-ultragpu-8g": {8},
	"a3-highgpu-1g": {2}, "a3-highgpu-2g": {4}, "a3-highgpu-4g": {8}, "a3-highgpu-8g": {16}, "a3-megagpu-8g": {16}, "a3-ultragpu-8g": {32},
	"g2-standard-4": {1}, "g2-standard-8": {1}, "g2-standard-12": {1}, "g2-standard-16": {1}, "g2-standard-24": {2}, "g2-standard-32": {1}, "g2-standard-48": {4}, "g2-standard-96": {8},
}

// bySeries are the counts for machines with at most so many processors.
var bySeries = map[string][]struct {
	cpus   int64
	counts []int64
}{
	"n1":  {{96, []int64{1, 2, 3, 4, 5, 6, 7, 8, 16, 24}}},
	"n2":  {{10, []int64{1, 2, 4, 8, 16, 24}}, {20, []int64{2, 4, 8, 16, 24}}, {40, []int64{4, 8, 16, 24}}, {80, []int64{8, 16, 24}}, {128, []int64{16, 24}}},
	"n2d": {{16, []int64{1, 2, 4, 8, 16, 24}}, {48, []int64{2, 4, 8, 16, 24}}, {80, []int64{4, 8, 16, 24}}, {224, []int64{8, 16, 24}}},
	"c2":  {{8, []int64{1, 2, 4, 8}}, {16, []int64{2, 4, 8}}, {30, []int64{4, 8}}, {60, []int64{8}}},
}
