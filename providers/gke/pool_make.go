package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// at is where a pool is.
type at struct {
	cluster, pool, location string // paths of the API
}

func (m *poolModel) at(j job) (at, error) {
	project, location, cluster, err := m.place(j)
	parent := fmt.Sprintf("projects/%s/locations/%s/clusters/%s", project, location, cluster)
	return at{cluster: parent, pool: parent + "/nodePools/" + m.Name.ValueString(), location: location}, err
}

func getPool(ctx context.Context, c *cloud.Cloud, name string) (*containerpb.NodePool, error) {
	p, err := cloud.Read(ctx, c, func(ctx context.Context) (*containerpb.NodePool, error) {
		return c.Clusters.GetNodePool(ctx, &containerpb.GetNodePoolRequest{Name: name})
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil, nil
	}
	return p, err
}

// create is that of model.
func (m *poolModel) create(ctx context.Context, j job, mark string, started func()) error {
	where, err := m.at(j)
	if err != nil {
		return err
	}
	there, err := getPool(ctx, j.cloud, where.pool)
	if err != nil {
		return err
	}
	if there != nil && there.GetConfig().GetResourceLabels()[cloud.Mark] != mark {
		return taken("node pool", where.pool)
	}
	return m.walk(ctx, j, where, there, mark, 0, started)
}

// walk makes the pool by the first step, from this one on, that has capacity. A
// pool that failed is deleted before the next step; the last one stays as it is.
func (m *poolModel) walk(ctx context.Context, j job, where at, there *containerpb.NodePool, mark string, from int, started func()) error {
	for n := from; ; n++ {
		err := m.try(ctx, j, where, there, mark, n, started)
		there = nil
		if err == nil {
			m.relieve(ctx, j, where)
			return nil
		}
		kind := cloud.KindOf(err)
		if kind != cloud.StockOut && kind != cloud.Quota || n >= len(m.Fallback) {
			return err
		}
		cloud.Say(ctx, -1, "step %d of the fallback: %v", n+1, err)
		if err := deletePool(ctx, j.cloud, where, "giving up step "+strconv.Itoa(n)); err != nil {
			return err
		}
	}
}

// try makes the pool by one step and waits for it.
func (m *poolModel) try(ctx context.Context, j job, where at, there *containerpb.NodePool, mark string, n int, started func()) error {
	c, what := j.cloud, "making the node pool "+m.Name.ValueString()
	if there != nil {
		started()
		if err := c.Settle(ctx, where.pool, where.location, what); err != nil {
			return err
		}
		now, err := getPool(ctx, c, where.pool)
		if err != nil {
			return err
		}
		return failed(now)
	}
	wanted := m.step(n).wanted(j, mark, n)
	op, found, err := cloud.Make(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
		return c.Clusters.CreateNodePool(ctx, &containerpb.CreateNodePoolRequest{Parent: where.cluster, NodePool: wanted})
	}, func(ctx context.Context) (bool, error) {
		var err error
		there, err = getPool(ctx, c, where.pool)
		return there != nil, err
	})
	switch {
	case err != nil:
		return err
	case found && there.GetConfig().GetResourceLabels()[cloud.Mark] != mark:
		return taken("node pool", where.pool)
	case found:
		return m.try(ctx, j, where, there, mark, n, started)
	}
	started()
	return c.Wait(ctx, op, what)
}

// failed is why a pool that is there could not be made; nil for a good one.
func failed(p *containerpb.NodePool) error {
	if s := p.GetStatus(); s != containerpb.NodePool_ERROR && s != containerpb.NodePool_RUNNING_WITH_ERROR {
		return nil
	}
	for _, k := range p.GetConditions() {
		switch k.GetCode() { //nolint:exhaustive,staticcheck // the others are not about capacity
		case containerpb.StatusCondition_GCE_STOCKOUT:
			return &cloud.Error{Summary: "The zone has none left", Kind: cloud.StockOut, Reason: "GCE_STOCKOUT", Detail: k.GetMessage()}
		case containerpb.StatusCondition_GCE_QUOTA_EXCEEDED:
			return &cloud.Error{Summary: "Quota of the project is exhausted", Kind: cloud.Quota, Reason: "GCE_QUOTA_EXCEEDED", Detail: k.GetMessage()}
		}
	}
	return errors.New("the node pool could not be made: " + either(p.GetStatusMessage(), "it is in error")) // older answers have nothing else
}

// relieve takes the pool away that the cluster was made with, once another one
// runs pods without taints. That it cannot is no fault of the pool at hand.
func (m *poolModel) relieve(ctx context.Context, j job, where at) {
	if err := m.takeAway(ctx, j, where); err != nil {
		addWarning(j, "The cluster's first node pool is still there", fmt.Errorf("the next change of a node pool takes it away: %w", err))
	}
}

func (m *poolModel) takeAway(ctx context.Context, j job, where at) error {
	c := j.cloud
	all, err := cloud.Read(ctx, c, func(ctx context.Context) (*containerpb.ListNodePoolsResponse, error) {
		return c.Clusters.ListNodePools(ctx, &containerpb.ListNodePoolsRequest{Parent: where.cluster})
	})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all.GetNodePools(), ours) || !slices.ContainsFunc(all.GetNodePools(), general) {
		return nil
	}
	where.pool = where.cluster + "/nodePools/" + bootstrap
	return deletePool(ctx, c, where, "deleting the cluster's first node pool")
}

// general tells whether any pod may run in a pool.
func general(p *containerpb.NodePool) bool {
	s := p.GetStatus()
	peopled := p.GetInitialNodeCount() > 0 || p.GetAutoscaling().GetEnabled()
	return peopled && !ours(p) && (s == containerpb.NodePool_RUNNING || s == containerpb.NodePool_RECONCILING) &&
		len(p.GetConfig().GetAccelerators()) == 0 && !slices.ContainsFunc(p.GetConfig().GetTaints(), func(t *containerpb.NodeTaint) bool {
		return t.GetEffect() != containerpb.NodeTaint_PREFER_NO_SCHEDULE
	})
}

// deletePool deletes a pool and waits; one that is not there is as good.
func deletePool(ctx context.Context, c *cloud.Cloud, where at, what string) error {
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
		return c.Clusters.DeleteNodePool(ctx, &containerpb.DeleteNodePoolRequest{Name: where.pool})
	})
	if err == nil {
		err = c.Wait(ctx, op, what)
	}
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	return err
}

// remove is that of model.
func (m *poolModel) remove(ctx context.Context, j job) error {
	where, err := m.at(j)
	if err != nil {
		return err
	}
	return deletePool(ctx, j.cloud, where, "deleting the node pool "+m.Name.ValueString())
}

// wanted is the pool as it is asked for.
func (m *poolModel) wanted(j job, mark string, n int) *containerpb.NodePool {
	labels := j.cloud.Marked(texts(m.ResourceLabels), mark)
	if n > 0 {
		labels[cloud.Step] = strconv.Itoa(n)
	}
	config := &containerpb.NodeConfig{
		MachineType: m.MachineType.ValueString(), DiskType: m.DiskType.ValueString(), DiskSizeGb: int32(m.DiskSize.ValueInt64()), //nolint:gosec // GiB
		ImageType: m.ImageType.ValueString(), Labels: texts(m.Labels), Tags: list(m.Tags), Taints: m.taints(nil), ResourceLabels: labels,
		ServiceAccount: m.ServiceAccount.ValueString(), OauthScopes: list(m.Scopes), Spot: m.Spot.ValueBool(),
		Accelerators: m.accelerators(),
	}
	if len(config.OauthScopes) == 0 {
		config.OauthScopes = []string{"https://www.googleapis.com/auth/cloud-platform"}
	}
	if m.FlexStart.ValueBool() {
		flex := true
		config.FlexStart = &flex
	}
	config.ReservationAffinity = m.affinity()
	if given(m.WorkloadMetadata) {
		config.WorkloadMetadataConfig = m.metadata()
	}
	if k := m.LocalSSDs.ValueInt64(); k > 0 {
		config.EphemeralStorageLocalSsdConfig = &containerpb.EphemeralStorageLocalSsdConfig{LocalSsdCount: int32(k)} //nolint:gosec // a few
	}
	if given(m.ImageStreaming) {
		config.GcfsConfig = &containerpb.GcfsConfig{Enabled: m.ImageStreaming.ValueBool()}
	}
	if given(m.GVNIC) {
		config.Gvnic = &containerpb.VirtualNIC{Enabled: m.GVNIC.ValueBool()}
	}
	if given(m.FastSocket) {
		config.FastSocket = &containerpb.FastSocket{Enabled: m.FastSocket.ValueBool()}
	}
	p := &containerpb.NodePool{Name: m.Name.ValueString(), Config: config, InitialNodeCount: int32(m.NodeCount.ValueInt64()), Locations: list(m.Zones)} //nolint:gosec // nodes
	m.policies(p)
	return p
}

// policies are what is beside the nodes' configuration.
func (m *poolModel) policies(p *containerpb.NodePool) {
	if m.Autoscaling != nil {
		p.Autoscaling = m.Autoscaling.wanted()
	}
	flex := m.FlexStart.ValueBool()
	if given(m.AutoRepair) || given(m.AutoUpgrade) || flex {
		p.Management = m.management()
	}
	if given(m.MaxSurge) || given(m.MaxUnavailable) {
		p.UpgradeSettings = m.upgrade()
	}
	if k := m.PodsPerNode.ValueInt64(); k > 0 {
		p.MaxPodsConstraint = &containerpb.MaxPodsConstraint{MaxPodsPerNode: k}
	}
	if r := m.PodRange.ValueString(); r != "" {
		p.NetworkConfig = &containerpb.NodeNetworkConfig{PodRange: r}
	}
	if m.Compact.ValueBool() {
		p.PlacementPolicy = &containerpb.NodePool_PlacementPolicy{Type: containerpb.NodePool_PlacementPolicy_COMPACT}
	}
	if m.Queued.ValueBool() {
		p.QueuedProvisioning = &containerpb.NodePool_QueuedProvisioning{Enabled: true}
	}
}

// affinity is where machines are taken from. Flex-start, queued and spot ones
// never come from reservations.
func (m *poolModel) affinity() *containerpb.ReservationAffinity {
	switch r := m.Reservation.ValueString(); {
	case r != "":
		return &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_SPECIFIC_RESERVATION, Key: "compute.googleapis.com/reservation-name", Values: []string{r}}
	case m.FlexStart.ValueBool() || m.Queued.ValueBool() || m.Spot.ValueBool():
		return &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_NO_RESERVATION}
	}
	return nil
}

func (m *poolModel) metadata() *containerpb.WorkloadMetadataConfig {
	return &containerpb.WorkloadMetadataConfig{Mode: containerpb.WorkloadMetadataConfig_Mode(containerpb.WorkloadMetadataConfig_Mode_value[m.WorkloadMetadata.ValueString()])}
}

// management is as declared, on where nothing is: false there would be a choice.
func (m *poolModel) management() *containerpb.NodeManagement {
	on := func(v types.Bool, otherwise bool) bool {
		if given(v) {
			return v.ValueBool()
		}
		return otherwise
	}
	return &containerpb.NodeManagement{AutoRepair: on(m.AutoRepair, !m.FlexStart.ValueBool()), AutoUpgrade: on(m.AutoUpgrade, true)}
}

func (m *poolModel) upgrade() *containerpb.NodePool_UpgradeSettings {
	surge := containerpb.NodePoolUpdateStrategy_SURGE
	return &containerpb.NodePool_UpgradeSettings{MaxSurge: int32(m.MaxSurge.ValueInt64()), MaxUnavailable: int32(m.MaxUnavailable.ValueInt64()), Strategy: &surge} //nolint:gosec // nodes
}

func (s *scalingModel) wanted() *containerpb.NodePoolAutoscaling {
	if s == nil {
		return &containerpb.NodePoolAutoscaling{}
	}
	return &containerpb.NodePoolAutoscaling{
		Enabled: true, MinNodeCount: int32(s.Min.ValueInt64()), MaxNodeCount: int32(s.Max.ValueInt64()), //nolint:gosec // nodes
		TotalMinNodeCount: int32(s.TotalMin.ValueInt64()), TotalMaxNodeCount: int32(s.TotalMax.ValueInt64()), //nolint:gosec // nodes
		LocationPolicy: containerpb.NodePoolAutoscaling_LocationPolicy(containerpb.NodePoolAutoscaling_LocationPolicy_value[s.Location.ValueString()]),
	}
}

func (m *poolModel) accelerators() []*containerpb.AcceleratorConfig {
	a := m.Accelerator
	if a == nil {
		return nil
	}
	out := &containerpb.AcceleratorConfig{AcceleratorType: a.Type.ValueString(), AcceleratorCount: a.Count.ValueInt64(), GpuPartitionSize: a.Partition.ValueString()}
	if s := a.Sharing.ValueString(); s != "" {
		strategy := containerpb.GPUSharingConfig_GPUSharingStrategy(containerpb.GPUSharingConfig_GPUSharingStrategy_value[s])
		out.GpuSharingConfig = &containerpb.GPUSharingConfig{GpuSharingStrategy: &strategy, MaxSharedClientsPerGpu: a.Clients.ValueInt64()}
	}
	if d := a.Driver.ValueString(); d != "" {
		version := containerpb.GPUDriverInstallationConfig_GPUDriverVersion(containerpb.GPUDriverInstallationConfig_GPUDriverVersion_value[d])
		out.GpuDriverInstallationConfig = &containerpb.GPUDriverInstallationConfig{GpuDriverVersion: &version}
	}
	return []*containerpb.AcceleratorConfig{out}
}

// taints are those declared, and of those that are there the ones that GKE set
// itself: whoever sends taints replaces all.
func (m *poolModel) taints(there []*containerpb.NodeTaint) []*containerpb.NodeTaint {
	var all []*containerpb.NodeTaint
	for _, t := range m.Taints {
		all = append(all, &containerpb.NodeTaint{Key: t.Key.ValueString(), Value: t.Value.ValueString(), Effect: containerpb.NodeTaint_Effect(containerpb.NodeTaint_Effect_value[t.Effect.ValueString()])})
	}
	for _, t := range there {
		if gkes(t) && !m.declares(t) {
			all = append(all, t)
		}
	}
	return all
}

// gkes tells whether a taint is one that GKE sets by itself.
func gkes(t *containerpb.NodeTaint) bool {
	return t.GetKey() == "nvidia.com/gpu" && t.GetValue() == "present" || t.GetKey() == "cloud.google.com/gke-queued"
}

func (m *poolModel) declares(t *containerpb.NodeTaint) bool {
	return slices.ContainsFunc(m.Taints, func(d taintModel) bool {
		return d.Key.ValueString() == t.GetKey() && d.Effect.ValueString() == t.GetEffect().String()
	})
}
