package gke

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// poolRow says which call brings a change of an attribute about. Rows of one group
// are one call: what makes nodes anew goes together, so that it happens once, and
// the locations go alone, because together with anything else they skip the nodes
// that are there.
type poolRow struct {
	attribute, call, group, field string
	of                            func(*poolModel) any
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
	{"auto_repair", "SetNodePoolManagement", byManagement, "management", func(m *poolModel) any { return m.AutoRepair }, nil},
	{"auto_upgrade", "SetNodePoolManagement", byManagement, "management", func(m *poolModel) any { return m.AutoUpgrade }, nil},
	{"machine_type", "UpdateNodePool", byNodes, "machine_type", func(m *poolModel) any { return m.MachineType }, fillMachine},
	{"disk_type", "UpdateNodePool", byNodes, "disk_type", func(m *poolModel) any { return m.DiskType }, fillMachine},
	{"disk_size_gb", "UpdateNodePool", byNodes, "disk_size_gb", func(m *poolModel) any { return m.DiskSize }, fillMachine},
	{"image_type", "UpdateNodePool", byNodes, "image_type", func(m *poolModel) any { return m.ImageType }, fillImage},
	{"labels", "UpdateNodePool", byNodes, "labels", func(m *poolModel) any { return m.Labels }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Labels = &containerpb.NodeLabels{Labels: texts(m.Labels)}
	}},
	{"taints", "UpdateNodePool", byNodes, "taints", func(m *poolModel) any { return m.Taints }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, now *containerpb.NodePool, _ *cloud.Cloud) {
		r.Taints = &containerpb.NodeTaints{Taints: m.taints(now.GetConfig().GetTaints())}
	}},
	{"tags", "UpdateNodePool", byNodes, "tags", func(m *poolModel) any { return m.Tags }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Tags = &containerpb.NetworkTags{Tags: list(m.Tags)}
	}},
	{"resource_labels", "UpdateNodePool", byNodes, "resource_labels", func(m *poolModel) any { return m.ResourceLabels }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, now *containerpb.NodePool, c *cloud.Cloud) {
		r.ResourceLabels = &containerpb.ResourceLabels{Labels: c.Relabel(now.GetConfig().GetResourceLabels(), texts(m.ResourceLabels))}
	}},
	{"workload_metadata", "UpdateNodePool", byNodes, "workload_metadata_config", func(m *poolModel) any { return m.WorkloadMetadata }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.WorkloadMetadataConfig = m.metadata()
	}},
	{"image_streaming", "UpdateNodePool", byNodes, "gcfs_config", func(m *poolModel) any { return m.ImageStreaming }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.GcfsConfig = &containerpb.GcfsConfig{Enabled: m.ImageStreaming.ValueBool()}
	}},
	{"gvnic", "UpdateNodePool", byNodes, "gvnic", func(m *poolModel) any { return m.GVNIC }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Gvnic = &containerpb.VirtualNIC{Enabled: m.GVNIC.ValueBool()}
	}},
	{"fast_socket", "UpdateNodePool", byNodes, "fast_socket", func(m *poolModel) any { return m.FastSocket }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.FastSocket = &containerpb.FastSocket{Enabled: m.FastSocket.ValueBool()}
	}},
	{"accelerator", "UpdateNodePool", byNodes, "accelerators", func(m *poolModel) any { return m.Accelerator }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Accelerators = m.accelerators()
	}},
	{"max_surge", "UpdateNodePool", byNodes, "upgrade_settings", func(m *poolModel) any { return m.MaxSurge }, fillUpgrade},
	{"max_unavailable", "UpdateNodePool", byNodes, "upgrade_settings", func(m *poolModel) any { return m.MaxUnavailable }, fillUpgrade},
	{"zones", "UpdateNodePool", byLocations, "locations", func(m *poolModel) any { return m.Zones }, func(m *poolModel, r *containerpb.UpdateNodePoolRequest, _ *containerpb.NodePool, _ *cloud.Cloud) {
		r.Locations = list(m.Zones)
	}},
	{"autoscaling", "SetNodePoolAutoscaling", byAutoscaling, "autoscaling", func(m *poolModel) any { return m.Autoscaling }, nil},
	{"node_count", "SetNodePoolSize", bySize, "node_count", func(m *poolModel) any { return m.NodeCount }, nil},
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

func (r poolRow) changed(plan, prior *poolModel) bool {
	if r.group == bySize && plan.Autoscaling != nil {
		return false // its size is the autoscaler's
	}
	if v, ok := r.of(plan).(attr.Value); ok {
		return changed(v, r.of(prior).(attr.Value))
	}
	return !reflect.DeepEqual(r.of(plan), r.of(prior))
}

// update is that of model. What an apply left unfinished is finished first: a
// pool that is in error after a create goes on with the next step of its fallback.
// One that has been whole keeps what it got: it may be full of work.
func (m *poolModel) update(ctx context.Context, j job, prior *poolModel) error {
	where, err := m.at(j)
	if err != nil {
		return err
	}
	if err := j.cloud.Settle(ctx, where.pool, where.location, "finishing the node pool "+m.Name.ValueString()); err != nil && cloud.KindOf(err) != cloud.StockOut && cloud.KindOf(err) != cloud.Quota {
		return err
	}
	now, err := getPool(ctx, j.cloud, where.pool)
	switch {
	case err != nil:
		return err
	case now == nil:
		return errors.New("the node pool is gone; the next plan makes it anew")
	case failed(now) != nil && j.begun == begunCreate:
		return m.walk(ctx, j, where, now, now.GetConfig().GetResourceLabels()[cloud.Mark], stepOf(now), func() {})
	}
	// The step that the pool runs by is the one that was declared then: another
	// fallback is for other creates.
	declared := *m
	declared.Fallback = prior.Fallback
	wanted := declared.step(stepOf(now))
	was := prior.step(stepOf(now))
	var done []string
	for _, row := range poolTable {
		if slices.Contains(done, row.group) || !row.changed(wanted, was) {
			continue
		}
		done = append(done, row.group)
		op, err := wanted.change(ctx, j, where, row.group, was, now)
		if err == nil {
			err = j.cloud.Wait(ctx, op, "changing "+row.attribute)
		}
		if err != nil {
			return fmt.Errorf("change %s: %w", row.attribute, err)
		}
	}
	m.relieve(ctx, j, where)
	return nil
}

// change makes the one call of a group.
func (m *poolModel) change(ctx context.Context, j job, where at, group string, prior *poolModel, now *containerpb.NodePool) (*containerpb.Operation, error) {
	c := j.cloud
	return cloud.Repeat(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
		switch group {
		case byManagement:
			return c.Clusters.SetNodePoolManagement(ctx, &containerpb.SetNodePoolManagementRequest{Name: where.pool, Management: m.management()})
		case byAutoscaling:
			return c.Clusters.SetNodePoolAutoscaling(ctx, &containerpb.SetNodePoolAutoscalingRequest{Name: where.pool, Autoscaling: m.Autoscaling.wanted()})
		case bySize:
			return c.Clusters.SetNodePoolSize(ctx, &containerpb.SetNodePoolSizeRequest{Name: where.pool, NodeCount: int32(m.NodeCount.ValueInt64())}) //nolint:gosec // nodes
		}
		r := &containerpb.UpdateNodePoolRequest{Name: where.pool}
		for _, row := range poolTable {
			if row.group == group && row.changed(m, prior) {
				row.fill(m, r, now, c)
			}
		}
		return c.Clusters.UpdateNodePool(ctx, r)
	})
}
