package gke

import (
	"context"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// machineOf looks a machine type up; ok is false if it is not in the catalogue.
func machineOf(name string) (m catalogue.Machine, ok bool) {
	return catalogue.Find(firstNonEmpty(name, catalogue.Default))
}

// allocatable is what pods may have, after what GKE reserves for kubelet, system
// and eviction: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
func allocatable(m catalogue.Machine) (cpuMilli, bytes int64) {
	reserved, left := int64(0), m.MemoryMiB
	for _, part := range [][2]int64{{4 << 10, 25}, {4 << 10, 20}, {8 << 10, 10}, {112 << 10, 6}, {1 << 40, 2}} {
		n := min(left, part[0])
		reserved += n * part[1] / 100
		left -= n
	}
	bytes = (m.MemoryMiB - reserved - 100) << 20
	if catalogue.SharesCPUs(m.Name) {
		return 940, bytes
	}
	// In tenths of thousandths: 6 % of the first, 1 % of the second, 0.5 % of the
	// next two, 0.25 % of the others.
	taken := 600 + 100*min(m.CPUs-1, 1) + 50*max(min(m.CPUs-2, 2), 0) + 25*max(m.CPUs-4, 0)
	return m.CPUs*1000 - (taken+9)/10, bytes
}

// ephemeral is what pods may have of a boot disk, in bytes.
func ephemeral(gib int64) int64 {
	if gib == 0 {
		gib = 100
	}
	disk := gib << 30
	return disk - disk/10 - min(disk/2, 6<<30+disk*35/100, 100<<30)
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
	return connect.MustConvert(connect.Capacity{Groups: []connect.NodeGroup{group}}.Object(ctx))
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
		g.CPU, g.Memory = allocatable(kind)
	}
	if name != "" {
		g.Labels["node.kubernetes.io/instance-type"] = name
	}
	for k, v := range texts(m.Labels) {
		g.Labels[k] = v
	}
	if a := m.gpus(); a != nil {
		each := int64(1)
		for _, parts := range catalogue.Partitions { // a size has one number of parts, on whichever GPU
			each = max(each, parts[a.Partition.ValueString()])
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
	if p == nil && isGiven(m.Accelerator) {
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
