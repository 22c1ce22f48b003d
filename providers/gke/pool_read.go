package gke

import (
	"context"
	"slices"
	"strconv"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// stepOf is the step that made a pool.
func stepOf(p *containerpb.NodePool) int {
	n, _ := strconv.Atoi(p.GetConfig().GetResourceLabels()[cloud.Step])
	return n
}

// read is that of model. What a step of the fallback chose in place of an argument
// is no difference of the argument.
func (m *poolModel) read(ctx context.Context, j job) (bool, string, error) {
	where, err := m.at(j)
	if err != nil {
		return false, "", err
	}
	p, err := getPool(ctx, j.cloud, where.pool)
	if p == nil || err != nil {
		return false, "", err
	}
	project, _, _, _ := m.place(j)
	m.ID, m.Project, m.Status = types.StringValue(where.pool), types.StringValue(project), types.StringValue(p.GetStatus().String())
	step := stepOf(p)
	m.Step, m.Version = types.Int64Value(int64(step)), types.StringValue(p.GetVersion())
	declared := *m
	m.readNodes(j, p)
	m.readPolicies(p)
	m.restore(declared, step)
	if m.Autoscaling != nil {
		m.NodeCount = types.Int64Null()
	} else if n, err := j.sizes.of(ctx, j.cloud, p); err == nil {
		m.NodeCount = types.Int64Value(n)
	} else {
		addWarning(j, "Size of the node pool cannot be read", err)
	}
	m.Capacity = m.capacity(ctx, p.GetLocations(), p)
	return true, p.GetConfig().GetResourceLabels()[cloud.Mark], nil
}

// restore puts declared arguments back that a step took other ones for.
func (m *poolModel) restore(declared poolModel, step int) {
	if step < 1 || step > len(m.Fallback) {
		return
	}
	f := m.Fallback[step-1]
	if !f.Zones.IsNull() {
		m.Zones = declared.Zones
	}
	if !f.MachineType.IsNull() {
		m.MachineType = declared.MachineType
	}
	if !f.Reservation.IsNull() {
		m.Reservation = declared.Reservation
	}
	if !f.FlexStart.IsNull() {
		m.FlexStart = declared.FlexStart
	}
	if !f.Spot.IsNull() {
		m.Spot = declared.Spot
	}
}

func (m *poolModel) readNodes(j job, p *containerpb.NodePool) {
	n := p.GetConfig()
	m.Zones, m.MachineType = setOf(p.GetLocations()), textOrNull(n.GetMachineType())
	m.DiskType, m.DiskSize, m.ImageType = textOrNull(n.GetDiskType()), numberOrNull(n.GetDiskSizeGb()), textOrNull(n.GetImageType())
	m.Labels, m.Tags = mapOrNull(m.Labels, n.GetLabels()), setOrNull(m.Tags, n.GetTags())
	m.ResourceLabels = mapOrNull(m.ResourceLabels, j.cloud.Declared(n.GetResourceLabels(), texts(m.ResourceLabels)))
	var taints []taintModel
	for _, t := range n.GetTaints() {
		if !gkes(t) || m.declares(t) {
			taints = append(taints, taintModel{types.StringValue(t.GetKey()), types.StringValue(t.GetValue()), types.StringValue(t.GetEffect().String())})
		}
	}
	if len(taints) > 0 || len(m.Taints) > 0 {
		m.Taints = taints
	}
	m.ServiceAccount = link(m.ServiceAccount, n.GetServiceAccount())
	m.Scopes = scopes(m.Scopes, n.GetOauthScopes())
	m.Spot, m.FlexStart, m.Queued = types.BoolValue(n.GetSpot()), types.BoolValue(n.GetFlexStart()), types.BoolValue(p.GetQueuedProvisioning().GetEnabled())
	m.Reservation = types.StringNull()
	if r := n.GetReservationAffinity(); len(r.GetValues()) > 0 {
		m.Reservation = types.StringValue(r.GetValues()[0])
	}
	m.Compact = types.BoolValue(p.GetPlacementPolicy().GetType() == containerpb.NodePool_PlacementPolicy_COMPACT)
	m.LocalSSDs = types.Int64Value(int64(n.GetEphemeralStorageLocalSsdConfig().GetLocalSsdCount()))
	m.ImageStreaming, m.GVNIC, m.FastSocket = types.BoolValue(n.GetGcfsConfig().GetEnabled()), types.BoolValue(n.GetGvnic().GetEnabled()), types.BoolValue(n.GetFastSocket().GetEnabled())
	m.WorkloadMetadata = types.StringNull()
	if mode := n.GetWorkloadMetadataConfig().GetMode(); mode != 0 {
		m.WorkloadMetadata = types.StringValue(mode.String())
	}
	m.readGPUs(n.GetAccelerators())
}

// scopes leaves the one out that Google adds to those declared.
func scopes(was types.Set, now []string) types.Set {
	const added = "https://www.googleapis.com/auth/monitoring"
	if declared := list(was); len(declared) > 0 && !slices.Contains(declared, added) {
		now = slices.DeleteFunc(slices.Clone(now), func(s string) bool { return s == added })
	}
	return setOf(now)
}

func (m *poolModel) readGPUs(all []*containerpb.AcceleratorConfig) {
	if len(all) == 0 {
		m.Accelerator = nil
		return
	}
	a := all[0]
	out := &acceleratorModel{Type: types.StringValue(a.GetAcceleratorType()), Count: types.Int64Value(a.GetAcceleratorCount()), Partition: textOrNull(a.GetGpuPartitionSize()), Driver: types.StringNull()}
	if s := a.GetGpuSharingConfig(); s.GetGpuSharingStrategy() != 0 {
		out.Sharing, out.Clients = types.StringValue(s.GetGpuSharingStrategy().String()), numberOrNull(s.GetMaxSharedClientsPerGpu())
	}
	if d := a.GetGpuDriverInstallationConfig().GetGpuDriverVersion(); d != 0 {
		out.Driver = types.StringValue(d.String())
	}
	m.Accelerator = out
}

func (m *poolModel) readPolicies(p *containerpb.NodePool) {
	m.AutoRepair, m.AutoUpgrade = types.BoolValue(p.GetManagement().GetAutoRepair()), types.BoolValue(p.GetManagement().GetAutoUpgrade())
	m.MaxSurge, m.MaxUnavailable = types.Int64Value(int64(p.GetUpgradeSettings().GetMaxSurge())), types.Int64Value(int64(p.GetUpgradeSettings().GetMaxUnavailable()))
	m.PodsPerNode, m.PodRange = numberOrNull(p.GetMaxPodsConstraint().GetMaxPodsPerNode()), textOrNull(p.GetNetworkConfig().GetPodRange())
	a := p.GetAutoscaling()
	if !a.GetEnabled() {
		m.Autoscaling = nil
		return
	}
	was := scalingModel{}
	if m.Autoscaling != nil {
		was = *m.Autoscaling
	}
	number := func(was types.Int64, now int32) types.Int64 {
		if now == 0 && was.IsNull() {
			return was
		}
		return types.Int64Value(int64(now))
	}
	out := &scalingModel{Min: number(was.Min, a.GetMinNodeCount()), Max: number(was.Max, a.GetMaxNodeCount()), TotalMin: number(was.TotalMin, a.GetTotalMinNodeCount()), TotalMax: number(was.TotalMax, a.GetTotalMaxNodeCount())}
	if !was.Location.IsNull() { // Google's choice otherwise
		out.Location = types.StringValue(a.GetLocationPolicy().String())
	}
	m.Autoscaling = out
}

// addWarning says what could not be read beside the object itself.
func addWarning(j job, summary string, err error) { j.diags.AddWarning(summary, sentence(err)) }
