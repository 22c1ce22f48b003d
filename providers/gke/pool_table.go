package gke

import (
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// poolRow has the call that applies a change of an attribute. Rows of one group
// are one call: changes that recreate nodes go together, so that this happens
// once. The locations are a call of their own, because together with other
// changes GKE skips the existing nodes.
type poolRow struct {
	attribute, call, group, field string
	of                            func(*poolModel) attr.Value
	anew                          bool // makes the nodes anew
	fill                          func(m *poolModel, r *containerpb.UpdateNodePoolRequest, now *containerpb.NodePool, c *cloud.Cloud)
}

// The groups of calls, in the order in which they are made.
const (
	byNodes       = "nodes"
	byLocations   = "locations"
	byManagement  = "management"
	byAutoscaling = "autoscaling"
	bySize        = "size"
)

var poolTable = []poolRow{
	{"auto_repair", "SetNodePoolManagement", byManagement, "management", func(m *poolModel) attr.Value { return m.AutoRepair }, false, nil},
	{"auto_upgrade", "SetNodePoolManagement", byManagement, "management", func(m *poolModel) attr.Value { return m.AutoUpgrade }, false, nil},
	{"version", "UpdateNodePool", byNodes, "node_version", func(m *poolModel) attr.Value { return m.NodeVersion }, true, fillNodeVersion},
	{"machine_type", "UpdateNodePool", byNodes, "machine_type", func(m *poolModel) attr.Value { return m.MachineType }, true, fillMachine},
	{"disk_type", "UpdateNodePool", byNodes, "disk_type", func(m *poolModel) attr.Value { return m.DiskType }, true, fillMachine},
	{"disk_size_gb", "UpdateNodePool", byNodes, "disk_size_gb", func(m *poolModel) attr.Value { return m.DiskSize }, true, fillMachine},
	{"image_type", "UpdateNodePool", byNodes, "image_type", func(m *poolModel) attr.Value { return m.ImageType }, true, fillImage},
	{"labels", "UpdateNodePool", byNodes, "labels", func(m *poolModel) attr.Value { return m.Labels }, false, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Labels = &containerpb.NodeLabels{Labels: texts(m.Labels)}
	}},
	{"taints", "UpdateNodePool", byNodes, "taints", func(m *poolModel) attr.Value { return m.Taints }, false, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, now *containerpb.NodePool, _ *cloud.Cloud) {
		r.Taints = &containerpb.NodeTaints{Taints: m.taints(now.GetConfig().GetTaints())}
	}},
	{"tags", "UpdateNodePool", byNodes, "tags", func(m *poolModel) attr.Value { return m.Tags }, false, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Tags = &containerpb.NetworkTags{Tags: list(m.Tags)}
	}},
	{"resource_labels", "UpdateNodePool", byNodes, "resource_labels", func(m *poolModel) attr.Value { return m.AllLabels }, false, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, now *containerpb.NodePool, c *cloud.Cloud) {
		r.ResourceLabels = &containerpb.ResourceLabels{Labels: c.Relabel(now.GetConfig().GetResourceLabels(), texts(m.ResourceLabels))}
	}},
	{"workload_metadata", "UpdateNodePool", byNodes, "workload_metadata_config", func(m *poolModel) attr.Value { return m.WorkloadMetadata }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.WorkloadMetadataConfig = m.metadata()
	}},
	{"image_streaming", "UpdateNodePool", byNodes, "gcfs_config", func(m *poolModel) attr.Value { return m.ImageStreaming }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.GcfsConfig = &containerpb.GcfsConfig{Enabled: m.ImageStreaming.ValueBool()}
	}},
	{"gvnic", "UpdateNodePool", byNodes, "gvnic", func(m *poolModel) attr.Value { return m.GVNIC }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Gvnic = &containerpb.VirtualNIC{Enabled: m.GVNIC.ValueBool()}
	}},
	{"fast_socket", "UpdateNodePool", byNodes, "fast_socket", func(m *poolModel) attr.Value { return m.FastSocket }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.FastSocket = &containerpb.FastSocket{Enabled: m.FastSocket.ValueBool()}
	}},
	{"accelerator", "UpdateNodePool", byNodes, "accelerators", func(m *poolModel) attr.Value { return m.Accelerator }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Accelerators = m.accelerators()
	}},
	{"max_surge", "UpdateNodePool", byNodes, "upgrade_settings", func(m *poolModel) attr.Value { return m.MaxSurge }, false, fillUpgrade},
	{"max_unavailable", "UpdateNodePool", byNodes, "upgrade_settings", func(m *poolModel) attr.Value { return m.MaxUnavailable }, false, fillUpgrade},
	{"blue_green", "UpdateNodePool", byNodes, "upgrade_settings", func(m *poolModel) attr.Value { return m.BlueGreen }, false, fillUpgrade},
	{"kubelet", "UpdateNodePool", byNodes, "kubelet_config", func(m *poolModel) attr.Value { return m.Kubelet }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.KubeletConfig = m.kubelet()
	}},
	{"linux", "UpdateNodePool", byNodes, "linux_node_config", func(m *poolModel) attr.Value { return m.Linux }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.LinuxNodeConfig = m.linux()
	}},
	{"drain", "UpdateNodePool", byNodes, "node_drain_config", func(m *poolModel) attr.Value { return m.Drain }, false, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.NodeDrainConfig = m.drain()
	}},
	{"exclude_upgrades_until_end_of_support", "UpdateNodePool", byNodes, "maintenance_policy", func(m *poolModel) attr.Value { return m.Excluded }, false, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.MaintenancePolicy = m.maintenance()
	}},
	{"max_run_duration", "UpdateNodePool", byNodes, "max_run_duration", func(m *poolModel) attr.Value { return m.MaxRun }, true, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.MaxRunDuration = duration(m.MaxRun)
	}},
	{"zones", "UpdateNodePool", byLocations, "locations", func(m *poolModel) attr.Value { return m.Zones }, false, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Locations = list(m.Zones)
	}},
	{"autoscaling", "SetNodePoolAutoscaling", byAutoscaling, "autoscaling", func(m *poolModel) attr.Value { return m.Autoscaling }, false, nil},
	{"node_count", "SetNodePoolSize", bySize, "node_count", func(m *poolModel) attr.Value { return m.NodeCount }, false, nil},
}

// fillMachine sends the machine and its disk together: a series may not have the
// disk of another.
func fillMachine(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
	r.MachineType, r.DiskType, r.DiskSizeGb = m.MachineType.ValueString(), m.DiskType.ValueString(), m.DiskSize.ValueInt64()
}

func fillImage(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
	r.ImageType = m.ImageType.ValueString()
}

func fillUpgrade(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
	r.UpgradeSettings = m.upgrade()
}

// wholeVersion is in versions that are given in full, such as 1.35.2-gke.1000.
const wholeVersion = "-gke."

// fillNodeVersion brings nodes to the version of the control plane, which is at
// least the declared one, or to that one where it is given in full.
func fillNodeVersion(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
	r.NodeVersion = "-"
	if strings.Contains(m.Version.ValueString(), wholeVersion) {
		r.NodeVersion = m.Version.ValueString()
	}
}

func (r poolRow) changed(plan, prior *poolModel) bool {
	switch {
	case r.group == bySize && isGiven(plan.Autoscaling):
		return false // its size is the autoscaler's
	case r.attribute == "version":
		return outdated(prior.NodeVersion, plan.Version)
	}
	if r.attribute == "accelerator" {
		return !sameGPUs(plan.gpus(), prior.gpus())
	}
	return changed(r.of(plan), r.of(prior))
}

// sameGPUs compares GPUs as far as it is known what they are to be.
func sameGPUs(plan, prior *acceleratorModel) bool {
	if plan == nil || prior == nil {
		return plan == prior
	}
	for _, of := range []func(*acceleratorModel) attr.Value{
		func(a *acceleratorModel) attr.Value { return a.Type }, func(a *acceleratorModel) attr.Value { return a.Count },
		func(a *acceleratorModel) attr.Value { return a.Partition }, func(a *acceleratorModel) attr.Value { return a.Sharing },
		func(a *acceleratorModel) attr.Value { return a.Clients }, func(a *acceleratorModel) attr.Value { return a.Driver },
	} {
		if changed(of(plan), of(prior)) {
			return false
		}
	}
	return true
}
