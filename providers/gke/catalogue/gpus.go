package catalogue

import "strings"

// accelerated are machine types that come with GPUs. Source:
// https://cloud.google.com/compute/docs/accelerator-optimized-machines
var accelerated = []Machine{
	{"a2-highgpu-1g", 12, 85 << 10, "nvidia-tesla-a100", 1}, {"a2-highgpu-2g", 24, 170 << 10, "nvidia-tesla-a100", 2},
	{"a2-highgpu-4g", 48, 340 << 10, "nvidia-tesla-a100", 4}, {"a2-highgpu-8g", 96, 680 << 10, "nvidia-tesla-a100", 8},
	{"a2-megagpu-16g", 96, 1360 << 10, "nvidia-tesla-a100", 16},
	{"a2-ultragpu-1g", 12, 170 << 10, "nvidia-a100-80gb", 1}, {"a2-ultragpu-2g", 24, 340 << 10, "nvidia-a100-80gb", 2},
	{"a2-ultragpu-4g", 48, 680 << 10, "nvidia-a100-80gb", 4}, {"a2-ultragpu-8g", 96, 1360 << 10, "nvidia-a100-80gb", 8},
	{"a3-highgpu-1g", 26, 234 << 10, "nvidia-h100-80gb", 1}, {"a3-highgpu-2g", 52, 468 << 10, "nvidia-h100-80gb", 2},
	{"a3-highgpu-4g", 104, 936 << 10, "nvidia-h100-80gb", 4}, {"a3-highgpu-8g", 208, 1872 << 10, "nvidia-h100-80gb", 8},
	{"a3-megagpu-8g", 208, 1872 << 10, "nvidia-h100-mega-80gb", 8}, {"a3-ultragpu-8g", 224, 2952 << 10, "nvidia-h200-141gb", 8},
	{"a4-highgpu-8g", 224, 3968 << 10, "nvidia-b200", 8}, {"a4x-highgpu-4g", 140, 884 << 10, "nvidia-gb200", 4},
	{"g2-standard-4", 4, 16 << 10, "nvidia-l4", 1}, {"g2-standard-8", 8, 32 << 10, "nvidia-l4", 1},
	{"g2-standard-12", 12, 48 << 10, "nvidia-l4", 1}, {"g2-standard-16", 16, 64 << 10, "nvidia-l4", 1},
	{"g2-standard-24", 24, 96 << 10, "nvidia-l4", 2}, {"g2-standard-32", 32, 128 << 10, "nvidia-l4", 1},
	{"g2-standard-48", 48, 192 << 10, "nvidia-l4", 4}, {"g2-standard-96", 96, 384 << 10, "nvidia-l4", 8},
	{"g4-standard-48", 48, 180 << 10, "nvidia-rtx-pro-6000", 1}, {"g4-standard-96", 96, 360 << 10, "nvidia-rtx-pro-6000", 2},
	{"g4-standard-192", 192, 720 << 10, "nvidia-rtx-pro-6000", 4}, {"g4-standard-384", 384, 1440 << 10, "nvidia-rtx-pro-6000", 8},
}

// Attached are the GPUs that N1 machines can have: by how many of them, the most CPUs of the machine. Source:
// https://cloud.google.com/compute/docs/gpus#n1-gpus
var Attached = map[string]map[int64]int64{
	"nvidia-tesla-t4":   {1: 48, 2: 48, 4: 96},
	"nvidia-tesla-v100": {1: 12, 2: 24, 4: 48, 8: 96},
	"nvidia-tesla-p100": {1: 16, 2: 32, 4: 96},
	"nvidia-tesla-p4":   {1: 24, 2: 48, 4: 96},
}

// Partitions are the parts that GPUs can be cut into, by their size, each with their number. Source:
// https://cloud.google.com/kubernetes-engine/docs/how-to/gpus-multi
var Partitions = map[string]map[string]int64{
	"nvidia-tesla-a100":     {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1},
	"nvidia-a100-80gb":      {"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
	"nvidia-h100-80gb":      {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
	"nvidia-h100-mega-80gb": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
	"nvidia-h200-141gb":     {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "7g.141gb": 1},
}

// gpuQuotas are the metrics of the quotas of GPUs in a region. Source:
// https://cloud.google.com/compute/resource-usage#gpu_quota
var gpuQuotas = map[string]string{
	"nvidia-tesla-t4": "NVIDIA_T4_GPUS", "nvidia-tesla-v100": "NVIDIA_V100_GPUS", "nvidia-tesla-p100": "NVIDIA_P100_GPUS",
	"nvidia-tesla-p4": "NVIDIA_P4_GPUS", "nvidia-l4": "NVIDIA_L4_GPUS", "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
	"nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS", "nvidia-h100-80gb": "NVIDIA_H100_GPUS", "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA_GPUS",
	"nvidia-h200-141gb": "NVIDIA_H200_GPUS", "nvidia-b200": "NVIDIA_B200_GPUS", "nvidia-gb200": "NVIDIA_GB200_GPUS",
	"nvidia-rtx-pro-6000": "NVIDIA_RTX_PRO_6000_GPUS",
}

// AllGPUs is the metric of the quota of all GPUs of a project, which is 0 for new projects.
const AllGPUs = "GPUS_ALL_REGIONS"

// Spot begins the metrics of quotas for spot machines. A project without such a quota uses the others.
const Spot = "PREEMPTIBLE_"

// GPUQuota returns the metric of a type of GPU; "" where it is not known.
func GPUQuota(gpu string) string { return gpuQuotas[gpu] }

// CPUQuota returns the metric of the processors of a machine type.
func CPUQuota(machineType string) string {
	if series := Series(machineType); series != "e2" && series != "n1" {
		return strings.ToUpper(series) + "_CPUS"
	}
	return "CPUS"
}

// Zones are zones of GPUs, as of ZonesAsOf; a GPU that the table lacks is not judged. Source:
// https://cloud.google.com/compute/docs/gpus/gpu-regions-zones
var Zones = map[string][]string{
	"nvidia-tesla-a100": {"asia-northeast1-a", "asia-northeast1-c", "asia-northeast3-a", "asia-northeast3-b", "asia-southeast1-b",
		"asia-southeast1-c", "europe-west4-a", "europe-west4-b", "me-west1-a", "me-west1-c", "us-central1-a", "us-central1-b",
		"us-central1-c", "us-central1-f", "us-east1-b", "us-west1-b", "us-west3-b", "us-west4-b"},
	"nvidia-a100-80gb": {"asia-southeast1-c", "europe-west4-a", "us-central1-a", "us-central1-c", "us-east4-c", "us-east5-a", "us-east5-b"},
}

// ZonesAsOf is the month of Zones.
const ZonesAsOf = "2025-06"
