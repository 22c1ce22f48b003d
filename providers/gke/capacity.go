package gke

import (
	"context"
	"strconv"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// machine is what a machine type has. Sources: the machine families at
// https://cloud.google.com/compute/docs/machine-resource, as of 2026-11.
type machine struct {
	cpus      int64
	memoryMiB int64
	gpu       string // type of the GPUs that come with it; "" for none
	gpus      int64
}

// families are MiB of memory for each processor, by series and class.
var families = map[string]int64{
	"n1-standard": 3840, "n1-highmem": 6656, "n1-highcpu": 922,
	"e2-standard": 4096, "e2-highmem": 8192, "e2-highcpu": 1024,
	"n2-standard": 4096, "n2-highmem": 8192, "n2-highcpu": 1024,
	"n2d-standard": 4096, "n2d-highmem": 8192, "n2d-highcpu": 1024,
	"c2-standard": 4096, "c3-standard": 4096, "c3-highmem": 8192, "c3-highcpu": 2048,
	"n4-standard": 4096, "n4-highmem": 8192, "n4-highcpu": 2048,
}

// accelerated are machine types that come with GPUs.
var accelerated = map[string]machine{
	"a2-highgpu-1g": {12, 85 << 10, "nvidia-tesla-a100", 1}, "a2-highgpu-2g": {24, 170 << 10, "nvidia-tesla-a100", 2},
	"a2-highgpu-4g": {48, 340 << 10, "nvidia-tesla-a100", 4}, "a2-highgpu-8g": {96, 680 << 10, "nvidia-tesla-a100", 8},
	"a2-megagpu-16g": {96, 1360 << 10, "nvidia-tesla-a100", 16},
	"a2-ultragpu-1g": {12, 170 << 10, "nvidia-a100-80gb", 1}, "a2-ultragpu-2g": {24, 340 << 10, "nvidia-a100-80gb", 2},
	"a2-ultragpu-4g": {48, 680 << 10, "nvidia-a100-80gb", 4}, "a2-ultragpu-8g": {96, 1360 << 10, "nvidia-a100-80gb", 8},
	"a3-highgpu-1g": {26, 234 << 10, "nvidia-h100-80gb", 1}, "a3-highgpu-2g": {52, 468 << 10, "nvidia-h100-80gb", 2},
	"a3-highgpu-4g": {104, 936 << 10, "nvidia-h100-80gb", 4}, "a3-highgpu-8g": {208, 1872 << 10, "nvidia-h100-80gb", 8},
	"a3-megagpu-8g": {208, 1872 << 10, "nvidia-h100-mega-80gb", 8}, "a3-ultragpu-8g": {224, 2952 << 10, "nvidia-h200-141gb", 8},
	"g2-standard-4": {4, 16 << 10, "nvidia-l4", 1}, "g2-standard-8": {8, 32 << 10, "nvidia-l4", 1},
	"g2-standard-12": {12, 48 << 10, "nvidia-l4", 1}, "g2-standard-16": {16, 64 << 10, "nvidia-l4", 1},
	"g2-standard-24": {24, 96 << 10, "nvidia-l4", 2}, "g2-standard-32": {32, 128 << 10, "nvidia-l4", 1},
	"g2-standard-48": {48, 192 << 10, "nvidia-l4", 4}, "g2-standard-96": {96, 384 << 10, "nvidia-l4", 8},
}

// machineOf looks a machine type up; ok is false for one that is not in the table.
func machineOf(name string) (m machine, ok bool) {
	switch name {
	case "", "e2-medium":
		return machine{cpus: 2, memoryMiB: 4096}, true
	case "e2-small":
		return machine{cpus: 2, memoryMiB: 2048}, true
	}
	if m, ok := accelerated[name]; ok {
		return m, true
	}
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return machine{}, false
	}
	each, ok := families[name[:at]]
	n, err := strconv.ParseInt(name[at+1:], 10, 64)
	return machine{cpus: n, memoryMiB: n * each}, ok && err == nil && n > 0
}

// allocatable is what pods may have, after what GKE reserves for kubelet, system
// and eviction: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
func (m machine) allocatable(name string) (cpuMilli, bytes int64) {
	reserved, left := int64(0), m.memoryMiB
	for _, part := range [][2]int64{{4 << 10, 25}, {4 << 10, 20}, {8 << 10, 10}, {112 << 10, 6}, {1 << 40, 2}} {
		n := min(left, part[0])
		reserved += n * part[1] / 100
		left -= n
	}
	bytes = (m.memoryMiB - reserved - 100) << 20
	if name == "" || name == "e2-medium" || name == "e2-small" { // shared processors
		return 940, bytes
	}
	// In tenths of thousandths: 6 % of the first, 1 % of the second, 0.5 % of the
	// next two, 0.25 % of the others.
	taken := 600 + 100*min(m.cpus-1, 1) + 50*max(min(m.cpus-2, 2), 0) + 25*max(m.cpus-4, 0)
	return m.cpus*1000 - (taken+9)/10, bytes
}

// ephemeral is what pods may have of a boot disk, in bytes.
func ephemeral(gib int64) int64 {
	if gib == 0 {
		gib = 100
	}
	disk := gib << 30
	return disk - disk/10 - min(disk/2, 6<<30+disk*35/100, 100<<30)
}

// partitions are how many parts GPUs are cut into, by the size of one.
var partitions = map[string]int64{
	"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1, "1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1,
	"1g.18gb": 7, "2g.35gb": 3, "3g.71gb": 2, "7g.141gb": 1,
}

// capacity is what the nodes have. p is the pool as it is, nil where it is not
// there yet. It is not known while the zones are not.
func (m *poolModel) capacity(ctx context.Context, zones []string, p *containerpb.NodePool) types.Object {
	unknown := types.ObjectUnknown(connect.CapacityAttribute("").GetType().(types.ObjectType).AttrTypes)
	if len(zones) == 0 || m.MachineType.IsUnknown() && p == nil && m.ID.ValueString() != "" {
		return unknown
	}
	group := m.nodes(p)
	group.Min, group.Max = m.count(int64(len(zones)))
	if group.Min < 0 {
		return unknown
	}
	return mustConvert(connect.Capacity{Groups: []connect.NodeGroup{group}}.Object(ctx))
}

// count is how many nodes there are, -1 where that is not known.
func (m *poolModel) count(zones int64) (least, most int64) {
	a := m.scaling()
	switch {
	case a == nil && m.NodeCount.IsUnknown():
		return -1, -1
	case a == nil:
		n := m.NodeCount.ValueInt64() * zones
		return n, n
	case a.TotalMax.ValueInt64() > 0:
		return a.TotalMin.ValueInt64(), a.TotalMax.ValueInt64()
	}
	return a.Min.ValueInt64() * zones, a.Max.ValueInt64() * zones
}

// nodes is one node of the pool.
func (m *poolModel) nodes(p *containerpb.NodePool) connect.NodeGroup {
	name := m.MachineType.ValueString()
	g := connect.NodeGroup{
		Name: m.Name.ValueString(), CPU: connect.NotKnown, Memory: connect.NotKnown, EphemeralStorage: ephemeral(m.DiskSize.ValueInt64()),
		Pods: 110, Extended: map[string]int64{}, Labels: map[string]string{"cloud.google.com/gke-nodepool": m.Name.ValueString(), "kubernetes.io/os": "linux"},
	}
	if n := m.PodsPerNode.ValueInt64(); n > 0 {
		g.Pods = n
	}
	if kind, ok := machineOf(name); ok {
		g.CPU, g.Memory = kind.allocatable(name)
	}
	if name != "" {
		g.Labels["node.kubernetes.io/instance-type"] = name
	}
	for k, v := range texts(m.Labels) {
		g.Labels[k] = v
	}
	if a := m.gpus(); a != nil {
		each := int64(1)
		if n, ok := partitions[a.Partition.ValueString()]; ok {
			each = n
		}
		g.Extended["nvidia.com/gpu"] = a.Count.ValueInt64() * each * max(a.Clients.ValueInt64(), 1)
		g.Labels["cloud.google.com/gke-accelerator"] = a.Type.ValueString()
	}
	g.Taints = m.nodeTaints(p)
	return g
}

// nodeTaints are the taints in Kubernetes' words.
func (m *poolModel) nodeTaints(p *containerpb.NodePool) []connect.Taint {
	all := m.taints(p.GetConfig().GetTaints())
	if p == nil && given(m.Accelerator) {
		all = m.taints([]*containerpb.NodeTaint{{Key: "nvidia.com/gpu", Value: "present", Effect: containerpb.NodeTaint_NO_SCHEDULE}})
	}
	var out []connect.Taint
	for _, t := range all {
		effect := map[containerpb.NodeTaint_Effect]string{containerpb.NodeTaint_NO_SCHEDULE: "NoSchedule", containerpb.NodeTaint_PREFER_NO_SCHEDULE: "PreferNoSchedule", containerpb.NodeTaint_NO_EXECUTE: "NoExecute"}[t.GetEffect()]
		if effect != "" {
			out = append(out, connect.Taint{Key: t.GetKey(), Value: t.GetValue(), Effect: effect})
		}
	}
	return out
}
